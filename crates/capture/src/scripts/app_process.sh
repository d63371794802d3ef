cat /proc/uptime
for p in $(pidof "$1"); do
  echo "pid $p"
  cat /proc/$p/stat /proc/$p/status 2>/dev/null
done
