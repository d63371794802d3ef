echo "@@heaptap thermal"; dumpsys thermalservice
echo "@@heaptap battery"; dumpsys battery
echo "@@heaptap saver"; settings get global low_power
echo "@@heaptap screen"; dumpsys power | grep mWakefulness=
echo "@@heaptap df"; df -k /data/misc/perfetto-traces
echo "@@heaptap exits"; dumpsys activity exit-info "$1"
echo "@@heaptap log"; logcat -d -v threadtime -s lowmemorykiller:I | tail -n 200
