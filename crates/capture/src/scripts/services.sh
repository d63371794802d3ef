echo @@heaptap users; pm list users
echo; echo @@heaptap current_user; am get-current-user
echo; echo @@heaptap screen; dumpsys power | grep mWakefulness=
echo; echo @@heaptap version; perfetto --version 2>&1
