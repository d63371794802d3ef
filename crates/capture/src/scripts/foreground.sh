cat /proc/uptime
x=$(dumpsys activity activities | grep -E "^Display #|ResumedActivity|FocusedActivity")
case "$x" in
  *Activity*) echo "$x" ;;
  *) dumpsys window | grep -E "Display: mDisplayId=|mCurrentFocus" ;;
esac
