#!/bin/sh
# Stands for `linerate agent`: says where it is, keeps its arguments in its environment to be looked at, and waits.
[ "$1" = agent ] || exit 9
[ "$FAKE_AGENT" ] || FAKE_AGENT="$*" exec "$0" "$@"
secret=0123456789abcdef0123456789abcdef
echo "linerate://127.0.0.1:4747#$secret.$secret$secret"
exec sleep 600
