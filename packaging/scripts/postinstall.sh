#!/bin/sh
# After an upgrade a running service is restarted with the new program. A masked unit cannot be, and is no error.
# dpkg calls this with `configure`, rpm with the number of installed versions.
set -e
case "$1" in
configure | [0-9]*)
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload || true
        systemctl try-restart linerate-agent.service || true
    fi
    ;;
esac
