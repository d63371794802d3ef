#!/usr/bin/env bash
# What heaptap itself adds between the phone's last byte and the finished pprofs, for a trace of
# about 10 MB from the virtual phone: the steps `received` and `converted` of the manifest.
#
#   benches/stop_to_pprof.sh [HEAPTAP] [RUNS]     (default target/dist/heaptap, 5 runs)
set -euo pipefail
heaptap=$(realpath "${1:-target/dist/heaptap}")
runs=${2:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HEAPTAP_STATE_DIR=$work/state
for run in $(seq "$runs"); do
    "$heaptap" record --virtual=android=14,build=userdebug,app=heavy -n com.example.app \
        -d 2s -o "$work/$run" -q >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    python3 - "$work/$run/manifest.json" <<'PY'
import datetime, json, sys
manifest = json.load(open(sys.argv[1]))
# Python reads microseconds at most.
at = {s["step"]: datetime.datetime.fromisoformat(s["at"].rstrip("Z")[:26]) for s in manifest["steps"]}
ms = lambda a, b: (at[b] - at[a]).total_seconds() * 1000
print(f"{manifest['trace']['size'] / 1e6:5.1f} MB, {manifest['dumps'][-1]['callsites']} callsites: "
      f"checked and synced {ms('received', 'pulled'):4.0f} ms, converted {ms('pulled', 'converted'):4.0f} ms, "
      f"together {ms('received', 'converted'):4.0f} ms")
PY
done
