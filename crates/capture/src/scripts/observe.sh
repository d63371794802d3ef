every=$1; parts=$2; graphics=$3; flags=$4; pids=$5; shift 5
{ read -r boot < /proc/sys/kernel/random/boot_id; } 2>/dev/null
dmabuf=no; if type dmabuf_dump >/dev/null 2>&1; then dmabuf=yes; fi
print -r -- "b $boot $(id -u 2>/dev/null) $dmabuf"
clock() { { read -r up idle < /proc/uptime; } 2>/dev/null; }
ask() {
  kind=$1; pid=$2; shift 2
  clock; print -r -- "M $kind $pid $up"
  "$@" 2>&1 | while IFS= read -r text; do print -r -- "m $kind $pid $text"; done
  clock; print -r -- "N $kind $pid $up"
}
started() { set -- ${1##*\)}; start=${20}; ticks="${12} ${13} ${14} ${15}"; }
look() {
  stat=; { read -r stat < /proc/$1/stat; } 2>/dev/null
  if [ -z "$stat" ]; then
    if [ -d /proc/$1 ]; then print -r -- "h $1"; else look=0; fi
    return
  fi
  started "$stat"
  adj=; { read -r adj < /proc/$1/oom_score_adj; } 2>/dev/null
  fields=
  { while read -r key value unit; do
    case $key in State:|VmHWM:|VmRSS:|VmSwap:|RssAnon:|RssFile:|RssShmem:) fields="$fields|$key $value $unit";; esac
  done < /proc/$1/status; } 2>/dev/null
  print -r -- "s $1 $start ${adj:-x}$fields"
}
found=; look=0; next=0; later=0; job=
while :; do
  clock; print -r -- "t $up $EPOCHREALTIME" || exit 1
  now=${up%%.*}
  if [ $# -gt 0 ] && [ $look -le 0 ]; then
    found=; look=5; index=0
    for name in "$@"; do
      some=$(pidof "$name" 2>/dev/null)
      print -r -- "n $index $some"
      found="$found $some"; index=$((index+1))
    done
  fi
  look=$((look-1))
  for pid in $pids $found; do look $pid; done
  if [ $parts -gt 0 ] && [ $now -ge $next ] && { [ -z "$job" ] || ! kill -0 $job 2>/dev/null; }; then
    next=$((now+parts)); images=no
    if [ $graphics -gt 0 ] && [ $now -ge $later ]; then images=yes; later=$((now+graphics)); fi
    fields=
    { while read -r key value unit; do
      case $key in MemTotal:|MemFree:|MemAvailable:|SwapFree:) fields="$fields|$key $value $unit";; esac
    done < /proc/meminfo; } 2>/dev/null
    print -r -- "y$fields"
    ( for pid in $pids $found; do
      [ -d /proc/$pid ] || continue
      ask p $pid dumpsys meminfo $flags $pid
      if [ $images = yes ]; then
        ask g $pid dumpsys gfxinfo $pid
        if [ $dmabuf = yes ]; then ask d $pid dmabuf_dump $pid; fi
      fi
    done ) &
    job=$!
  fi
  stat=; { read -r stat < /proc/$$/stat; } 2>/dev/null
  started "$stat"
  clock; print -r -- "e $up $ticks"
  sleep $every
done
