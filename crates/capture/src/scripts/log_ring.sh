{ read -r up idle < /proc/uptime; } 2>/dev/null; print -r -- "$up $EPOCHREALTIME"
logcat -d -v threadtime -v epoch -b main 2>/dev/null | head -n 3
