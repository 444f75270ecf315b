#!/bin/sh
# The service is stopped before its program is removed, which dpkg calls `remove` and rpm `0`.
set -e
case "$1" in
remove | 0)
    if [ -d /run/systemd/system ]; then
        systemctl --quiet disable --now linerate-agent.service || true
    fi
    ;;
esac
