if grep -q monkey /proc/$1/cmdline 2>/dev/null; then
  kill -KILL $1 && echo ended
fi
