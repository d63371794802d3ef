for p in "$@"; do
echo; echo "@@heaptap cmdline $p"; cat /proc/$p/cmdline
echo; echo "@@heaptap adj $p"; cat /proc/$p/oom_score_adj
echo; echo "@@heaptap label $p"; cat /proc/$p/attr/current
echo; echo "@@heaptap events $p"
cat /sys/fs/cgroup/uid_*/pid_$p/cgroup.events /sys/fs/cgroup/*/uid_*/pid_$p/cgroup.events
done
