if ps -A -o ARGS | grep -q "[h]eaptap-guard"; then echo guarded; exit 0; fi
if [ "$(getenforce)" != Enforcing ]; then echo unchanged; exit 0; fi
sh -c "$2" heaptap"-guard" "$1" </dev/null >/dev/null 2>&1 &
if setenforce 0; then echo permissive; else echo refused; fi
