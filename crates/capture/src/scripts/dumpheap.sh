log=$1; most=$2; shift 2; stop=;
trap "stop=1" TERM; trap "" HUP INT;
while [ $# -gt 2 ]; do
  pid=$1; flags=$2; file=$3; shift 3;
  if [ -n "$stop" ]; then continue; fi;
  echo "begin $file" >> "$log";
  (am dumpheap $flags $pid "$file" > "$file.said" 2>&1 </dev/null;
    echo "end $file $?" >> "$log") &
  last=none; still=0;
  while ! grep -q "^end $file " "$log"; do
    sleep 0.2;
    size=$(stat -c %s "$file" 2>/dev/null);
    if [ "$size" = "$last" ]; then still=$((still+1)); else still=0; last=$size; fi;
    if [ $still -ge $most ]; then echo "late $file" >> "$log"; break; fi;
    if [ $still -ge 5 ] && [ ! -d /proc/$pid ]; then
      echo "gone $file" >> "$log"; break;
    fi;
  done;
done;
echo over >> "$log"
