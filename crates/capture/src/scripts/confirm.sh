n=0
while [ $n -lt 60 ] && [ ! -s "$2" ] && [ -d /proc/$1 ]; do n=$((n+1)); sleep 0.1; done
if [ ! -d /proc/$1 ] && [ ! -s "$2" ]; then echo gone; fi
