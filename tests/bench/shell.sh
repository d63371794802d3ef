#!/usr/bin/mksh
# The phone's sh. adbd's shell is uid 2000 on a phone; Debian's adbd stays root, so it drops
# here, unless /data/fake/adb-root says that `adb root` was run. Where a user namespace maps one
# uid alone (init.sh looks), it stays root.
if [ "$USER_ID" = 0 ] && [ -e /run/drop-to-shell ] && [ ! -e /data/fake/adb-root ]; then
    exec /usr/bin/setpriv --reuid 2000 --regid 2000 --clear-groups /usr/bin/mksh "$@"
fi
exec /usr/bin/mksh "$@"
