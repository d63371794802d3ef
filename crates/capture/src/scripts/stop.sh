case "$(cat /proc/sys/kernel/random/boot_id)" in "$3") ;; "") exit 1;; *) echo rebooted; exit 0;; esac
if stat=$(cat /proc/$1/stat 2>/dev/null) && args=$(cat /proc/$1/cmdline 2>/dev/null); then :
elif [ -d /proc/$1 ]; then exit 1
else echo over; exit 0; fi
case "$stat" in *" $2 "*) ;; *) echo over; exit 0;; esac
case "$args" in *"$4"*) ;; *) echo over; exit 0;; esac
n=0
while [ $n -lt 20 ]; do
  case "$(grep SigCgt /proc/$1/status 2>/dev/null)" in
    *[4567cdef]???) kill -TERM $1 && echo sent; n=99;;
    "") n=100;;
    *) up=$(cat /proc/uptime); up=${up%%.*}
      if [ $((up - $2 / 100)) -lt 5 ]; then n=$((n+1)); sleep 0.1; else n=99; fi;;
  esac
done
if [ $n = 20 ] && [ "$5" = first ]; then kill -TERM $1 && echo sent; fi
while [ -d /proc/$1 ]; do sleep 0.02; done
echo over
