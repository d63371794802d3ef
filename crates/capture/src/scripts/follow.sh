pid=$1; file=$2; targets=$3; shift 3
echo "boot $(cat /proc/sys/kernel/random/boot_id)"
while [ -d /proc/$pid ]; do
  echo "up $(cat /proc/uptime)"
  echo "stat $(cat /proc/$pid/stat 2>/dev/null)"
  for f in $file; do echo "size $(stat -c %s "$f" 2>/dev/null)"; done
  echo "free $(df -k /data 2>/dev/null | tail -n 1)"
  live=
  for p in $targets; do if [ -d /proc/$p ]; then live="$live $p"; fi; done
  if [ $# -gt 0 ]; then live="$live $(pidof "$@")"; fi
  echo "pids $live"
  status=
  for p in $live; do status="$status /proc/$p/status"; done
  if [ -n "$status" ]; then grep -h VmRSS $status 2>/dev/null; fi
  echo report
  for i in 1 2 3 4 5; do if [ -d /proc/$pid ]; then sleep 0.2; fi; done
done
echo "up $(cat /proc/uptime)"
echo over
