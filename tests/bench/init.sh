# Process 1 of the bench's phone, inside its root: the tracing daemons, an app, and adbd.
# Runs in Debian's mksh, as root of its namespaces.
# Only what a phone has is in the PATH.
export PATH=/system/bin HOME=/ TMPDIR=/data/local/tmp
export ANDROID_ROOT=/system ANDROID_DATA=/data
port=$1

ifconfig lo up
/usr/bin/setpriv --reuid 2000 --regid 2000 --clear-groups true 2>/dev/null && : >/run/drop-to-shell

# World-writable sockets, as Android's init makes them for the shell's uid.
umask 0
/usr/sbin/traced >/data/traced.log 2>&1 &
tries=0
while [ ! -S /tmp/perfetto-consumer ] && [ $tries -lt 100 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
/usr/sbin/traced_probes >/data/traced_probes.log 2>&1 &
umask 022

# The apps of /data/fake/packages that run: idle processes with their name and uid. Each waits
# on a pipe that nobody writes.
mkfifo /tmp/never
while read -r package uid _ running; do
    [ "$running" = running ] || continue
    /usr/bin/setpriv --reuid "$uid" --regid "$uid" --clear-groups \
        /usr/bin/mksh -c 'exec -a "$0" /usr/bin/mksh -c "read line </tmp/never"' "$package" 2>>/data/init.log &
done </data/fake/packages

# adbd takes its port from here and comes back when it is killed, as under Android's init,
# unless a test says otherwise.
export ADBD_PORT=$port
while :; do
    /usr/sbin/adbd >>/data/adbd.log 2>&1
    echo "adbd ended: $?" >>/data/init.log
    while [ -e /data/fake/no-respawn ]; do sleep 0.1; done
    sleep 0.2
done
