cat /proc/$1/stat 2>/dev/null && cat /proc/$1/cmdline 2>/dev/null || [ ! -d /proc/$1 ]
