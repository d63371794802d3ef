cat /proc/uptime
dumpsys activity top | grep -E "^ *(ACTIVITY|Local Activity|mResumed)"
