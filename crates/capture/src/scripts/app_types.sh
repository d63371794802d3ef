for p in "$@"; do
echo; echo "@@heaptap $p"; simpleperf_app_runner "$p" --show-app-type
done
