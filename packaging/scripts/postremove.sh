#!/bin/sh
# Purging, which only dpkg does, removes the agent's key, tokens and invitations too. systemd keeps them for the service's dynamic user.
set -e
case "$1" in
purge)
    rm -rf /var/lib/private/linerate-agent /var/lib/linerate-agent
    ;;
remove | 0)
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload || true
    fi
    ;;
esac
