if ps -A -o ARGS | grep -F " $1" | grep -v -F "$3" | grep -q -F "perfetto -"; then echo busy; else export "$4"; exec perfetto -c - -o "$1" "$2"; fi
