log=$1; script=$2; shift 2
if ! : > "$log"; then echo "cannot write $log" >&2; exit 1; fi
sh -c "$script" heaptap-dumpheap "$log" "$@" </dev/null >/dev/null 2>&1 &
echo $!
