trap "" HUP INT TERM
n=0
while [ $n -lt 240 ]; do
  if ps -A -o ARGS | grep -q "^perfetto .*$1"; then n=1000; else n=$((n+1)); sleep 0.5; fi
done
while ps -A -o ARGS | grep -q "^perfetto .*$1"; do sleep 0.3; done
setenforce 1
