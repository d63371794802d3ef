#!/usr/bin/env bash
# Fuzzes heaptap's readers with libFuzzer and the stable compiler. docs/internals/fuzzing.md
#
#   fuzz/run.sh build                 target/ci/heaptap-fuzz
#   fuzz/run.sh list                  the targets
#   fuzz/run.sh smoke [SECONDS]       every target from its corpus, two at once; 60 s in all
#   fuzz/run.sh TARGET SECONDS [...]  a long run; further arguments go to libFuzzer
#   fuzz/run.sh minimise [TARGET...]  what long runs found goes into fuzz/corpus
#   fuzz/run.sh table                 fuzz/ledger.csv into docs/internals/fuzzing.md
set -euo pipefail
cd "$(dirname "$0")/.."

program=target/ci/heaptap-fuzz
work=target/fuzz
artifacts=$work/artifacts
ledger=fuzz/ledger.csv
page=docs/internals/fuzzing.md
# Names of libFuzzer's files for `find`, whose own expressions have no intervals.
hashed=(-regextype posix-basic -regex '.*/[0-9a-f]\{40\}')
# Limits of a corpus in fuzz/corpus.
max_files=32
max_bytes=$((96 << 10))
# libFuzzer measures wall time: a busy machine needs more.
common="-rss_limit_mb=2048 -timeout=${HEAPTAP_FUZZ_TIMEOUT:-10} -print_final_stats=1"

fail() { echo "error: $*" >&2; exit 2; }

build() {
  # Only crates of the workspace have counters, so target/ci serves the other crates.
  RUSTC_WORKSPACE_WRAPPER=$PWD/fuzz/rustc.sh \
    cargo build --profile ci --locked -p heaptap-fuzz --features libfuzzer
}
targets() { "$program" --list 2>/dev/null | cut -d' ' -f1; }
max_len() { "$program" --list 2>/dev/null | awk -v target="$1" '$1 == target { print $2 }'; }
sources() { "$program" --list 2>/dev/null | awk -v target="$1" '$1 == target { print $3 }' | tr , ' '; }
is_built() { [ -x "$program" ] || fail "$program is missing: run \`fuzz/run.sh build\`"; }
is_target() { targets | grep -qx "$1" || fail "\`$1\` is not a target: run \`fuzz/run.sh list\`"; }

# Words of the sources of a target: libFuzzer does not see what memcmp compares.
dictionary() { # target
  local file=$work/$1.dict
  # shellcheck disable=SC2046
  grep -rhoE '"[]A-Za-z0-9_.,:;=/<>{}()@#%*+ $!?&|~^-]{2,40}"|\[' --include='*.rs' $(sources "$1") |
    grep '^"' | sort -u >"$file"
  echo "$file"
}

# Files of temporary directories go into memory if possible, and away with this script.
temporary() {
  local base=$work
  [ ! -w /dev/shm ] || base=/dev/shm
  mkdir -p "$work"
  TMPDIR=$(mktemp -d "$base/heaptap-fuzz-XXXXXX")
  export TMPDIR
  trap 'rm -rf "$TMPDIR"' EXIT
}

# The last figures in a log: CPU seconds, executions, edges.
figures() { # log
  awk '/^heaptap-fuzz: cpu / { cpu = $3; if (NF > 3) runs = $5 }
    / cov: / { for (at = 1; at < NF; at++) if ($at == "cov:") edges = $(at + 1) }
    /^stat::number_of_executed_units:/ { runs = $2 }
    END { printf "%.1f %d %d\n", cpu, runs, edges }' "$1"
}

# CPU seconds of the children that have ended.
children() {
  times >"$TMPDIR/times"
  tail -n 1 "$TMPDIR/times" | tr 'ms' '  ' | awk '{ printf "%.2f\n", $1 * 60 + $2 + $3 * 60 + $4 }'
}

# Adds a log to the ledger, then removes it.
count() { # target, log
  local cpu runs edges
  read -r cpu runs edges < <(figures "$2")
  (
    ! command -v flock >/dev/null || flock 9
    awk -F, -v OFS=, -v target="$1" -v cpu="$cpu" -v runs="$runs" -v edges="$edges" '
      $1 == target { $2 += cpu; $3 += runs; if (edges > $4) $4 = edges; found = 1 }
      { print }
      END { if (!found) print target, cpu, runs, edges, "" }' "$ledger" >"$ledger.new"
    mv "$ledger.new" "$ledger"
  ) 9>"$work/lock"
  rm "$2"
}

# Counts the logs of runs that were killed.
count_killed() {
  local log name pid
  for log in "$work"/logs/*.log; do
    [ -e "$log" ] || continue
    name=$(basename "$log" .log)
    pid=${name##*.}
    kill -0 "$pid" 2>/dev/null || count "${name%.*}" "$log"
  done
}

run() { # target, seconds, libFuzzer's options
  local target=$1 seconds=$2 log status=0
  shift 2
  is_built; is_target "$target"
  temporary
  mkdir -p "$work/$target" "$work/logs" "$artifacts"
  count_killed
  # The process that runs is this one's child; a log with a dead process is counted later.
  log=$work/logs/$target.$$.log
  local dict; dict=$(dictionary "$target")
  local before; children >"$TMPDIR/before"; before=$(cat "$TMPDIR/before")
  "$program" "$target" $common -max_len="$(max_len "$target")" -dict="$dict" \
    -max_total_time="$seconds" -artifact_prefix="$artifacts/$target-" "$@" \
    "$work/$target" "fuzz/corpus/$target" >"$log" 2>&1 &
  local child=$!
  trap 'kill -INT '$child' 2>/dev/null; wait '$child' || true' INT TERM
  wait $child || status=$?
  trap - INT TERM
  # All of it; the lines in the log are for runs that are killed.
  children >"$TMPDIR/after"
  awk -v before="$before" '{ printf "heaptap-fuzz: cpu %.2f\n", $1 - before }' "$TMPDIR/after" >>"$log"
  figures "$log" | { read -r cpu runs edges; echo "$target: $cpu s CPU, $runs executions, $edges edges"; }
  # 72 is libFuzzer's code for an interrupt.
  case $status in
    0 | 72 | 130 | 143) count "$target" "$log" ;;
    *)
      tail -n 60 "$log"
      cp "$log" "$artifacts/$target.log"
      count "$target" "$log"
      again "$target"
      exit 1 ;;
  esac
}

again() { # target
  local newest
  newest=$(ls -t "$artifacts/$1"-* 2>/dev/null | head -1)
  echo "show it again: $program $1 $newest" >&2
}

smoke_one() { # target, seconds
  local target=$1 log=$work/smoke/$1.log
  mkdir -p "$TMPDIR/$target"
  # A fixed seed: runs of a commit start with the same inputs. Long runs have others.
  if "$program" "$target" $common -max_len="$(max_len "$target")" -seed=1 \
    -dict="$(dictionary "$target")" -max_total_time="$2" \
    -artifact_prefix="$artifacts/$target-" "$TMPDIR/$target" "fuzz/corpus/$target" \
    >"$log" 2>&1; then
    figures "$log" | { read -r _ runs edges; echo "$target: $runs executions, $edges edges"; }
  else
    tail -n 40 "$log"
    echo "$target: failed" >&2
    again "$target"
    return 1
  fi
}

smoke() { # seconds
  is_built
  temporary
  mkdir -p "$work/smoke" "$artifacts"
  local all; all=$(targets)
  # Two at once.
  local each=$(($1 * 2 / $(wc -w <<<"$all")))
  [ $each -gt 0 ] || each=1
  export -f smoke_one figures again max_len sources dictionary
  export program work artifacts common
  xargs -P 2 -I{} bash -euo pipefail -c "smoke_one {} $each" <<<"$all" ||
    { echo "error: fuzzing found something, see above" >&2; exit 1; }
}

# Sizes and names of the seeds that did not come from libFuzzer.
named() { find "fuzz/corpus/$1" -type f ! "${hashed[@]}" -printf '%s %p\n'; } # target

minimise() {
  is_built
  temporary
  count_killed
  local target file size total count
  for target in ${*:-$(targets)}; do
    is_target "$target"
    [ -d "$work/$target" ] || continue
    local merged=$TMPDIR/merged-$target
    mkdir "$merged"
    # Named seeds stay; libFuzzer's files have hashes as names.
    find "fuzz/corpus/$target" -type f ! "${hashed[@]}" -exec cp {} "$merged" \;
    "$program" "$target" $common -max_len="$(max_len "$target")" -merge=1 \
      "$merged" "fuzz/corpus/$target" "$work/$target" >"$work/merge-$target.log" 2>&1 ||
      { tail -n 20 "$work/merge-$target.log"; fail "the merge of $target failed"; }
    count=$(named "$target" | wc -l)
    total=$(named "$target" | awk '{ sum += $1 } END { print sum + 0 }')
    # The smallest first, spread over all sizes if they are too many.
    find "$merged" -type f "${hashed[@]}" -printf '%s %p\n' | sort -n >"$TMPDIR/list"
    local step=1 room=$((max_files - count))
    [ $room -gt 0 ] || room=1
    step=$((($(wc -l <"$TMPDIR/list") + room - 1) / room))
    [ "$step" -gt 0 ] || step=1
    awk -v step="$step" 'NR % step == 0' "$TMPDIR/list" | while read -r size file; do
      total=$((total + size))
      [ $total -le $max_bytes ] || break
      echo "$file"
    done >"$TMPDIR/chosen"
    # The new files first, then the old ones away: whenever this ends, nothing is lost.
    while read -r file; do
      cp "$file" "$work/copy-$target"
      mv "$work/copy-$target" "fuzz/corpus/$target/$(basename "$file")"
    done <"$TMPDIR/chosen"
    find "fuzz/corpus/$target" -type f "${hashed[@]}" | while read -r file; do
      grep -q "/$(basename "$file")\$" "$TMPDIR/chosen" || rm "$file"
    done
    echo "$target: $(find "fuzz/corpus/$target" -type f | wc -l) files"
  done
}

table() {
  is_built
  mkdir -p "$work"
  count_killed
  local rows=$work/table
  {
    echo '| target | covers | CPU hours | executions | edges | finds |'
    echo '|---|---|---|---|---|---|'
    "$program" --list 2>/dev/null | while read -r target _ _ covers; do
      awk -F, -v target="$target" -v covers="$covers" '
        $1 == target {
          gsub(/ /, "`, `", $5)
          finds = $5 == "" ? "" : "`" $5 "`"
          printf "| `%s` | %s | %.2f | %d | %d | %s |\n", target, covers, $2 / 3600, $3, $4, finds
          found = 1
        }
        END { if (!found) printf "| `%s` | %s | 0.00 | 0 | 0 | |\n", target, covers }' "$ledger"
    done
  } >"$rows"
  awk -v rows="$rows" '
    /<!-- end of the table -->/ { inside = 0 }
    !inside { print }
    /<!-- table: fuzz\/run.sh table -->/ {
      inside = 1
      while ((getline line < rows) > 0) print line
    }' "$page" >"$page.new"
  mv "$page.new" "$page"
}

case ${1:-} in
  build) build ;;
  list) is_built; targets ;;
  smoke) smoke "${2:-60}" ;;
  minimise) shift; minimise "$@" ;;
  table) table ;;
  "" | -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0" ;;
  *) [ $# -ge 2 ] || fail "usage: fuzz/run.sh TARGET SECONDS"; run "$@" ;;
esac
