dumpsys power | grep mWakefulness=
dumpsys window | grep -E "KeyguardShowing|mShowingLockscreen"
