echo @@heaptap getprop; getprop
echo; echo @@heaptap id; id -u
echo; echo @@heaptap boot_id; cat /proc/sys/kernel/random/boot_id
echo; echo @@heaptap uptime; cat /proc/uptime
echo; echo @@heaptap date; date +%s
echo; echo @@heaptap memory; grep MemTotal /proc/meminfo
echo; echo @@heaptap getenforce; getenforce
echo; echo @@heaptap df; df -k /data/misc/perfetto-traces
