#!/usr/bin/env bash
# Passes the tests on a fresh machine: tests/run.sh [fast]
#
# Installs what the tests need where it can (Debian or Ubuntu, as root or with passwordless
# sudo): adb, Go's pprof, llvm-symbolizer, hprof-conv, VisualVM's reader, a Python with
# Perfetto's protos. What can't be had is skipped, and said so. `fast` is the inner loop: no
# installing, no bench, the dev profile.
set -euo pipefail
cd "$(dirname "$0")/.."

tier=${1:-full}
case $tier in full|fast) ;; *) echo "usage: tests/run.sh [fast]" >&2; exit 2 ;; esac

say() { printf '\n== %s\n' "$*"; }
skipped=()
skip() { skipped+=("$1"); echo "skipped: $1"; }

if [ "$tier" = fast ]; then
  cargo fmt --check
  cargo clippy --all-targets --locked -- -D warnings
  exec cargo test --locked
fi

# --- what the judges need -------------------------------------------------------------
root=()
if [ "$(id -u)" != 0 ]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then root=(sudo -n); else root=(false); fi
fi
apt_updated=no
apt_install() { # package...
  command -v apt-get >/dev/null || return 1
  if [ $apt_updated = no ]; then "${root[@]}" apt-get update -qq || true; apt_updated=yes; fi
  DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
need() { command -v "$1" >/dev/null || apt_install "$2"; } # command, package

say "tools"
command -v cc >/dev/null || apt_install gcc libc6-dev ||
  { echo "no C compiler, and none could be installed" >&2; exit 1; }
need adb adb || skip "real adb (not installed, and no apt to install it with)"
need go golang-go || skip "go tool pprof (not installed, and no apt to install it with)"
need python3 python3 || true
# The symbolizer is measured by llvm-symbolizer 19, on the debug file of this machine's libc.
# Answers of other versions differ in places; the newest there is will do.
has_llvm() { compgen -c llvm-symbolizer >/dev/null; }
if ! command -v llvm-symbolizer-19 >/dev/null; then
  apt_install llvm-19 2>/dev/null || has_llvm || apt_install llvm 2>/dev/null || true
fi
has_llvm || skip "llvm-symbolizer (not installed, and no apt to install it with)"
libc_id=$(readelf -n /lib/*/libc.so.6 2>/dev/null | sed -n 's/.*Build ID: //p' | head -1) || true
if [ ! -f "/usr/lib/debug/.build-id/${libc_id:0:2}/${libc_id:2}.debug" ]; then
  apt_install libc6-dbg 2>/dev/null || skip "libc's debug file (libc6-dbg could not be installed)"
fi
# The path of Debian's hprof-conv is known to the tests; VisualVM's reader needs a JDK.
conv=/usr/lib/android-sdk/platform-tools/hprof-conv
command -v hprof-conv >/dev/null || [ -x $conv ] || apt_install hprof-conv ||
  skip "hprof-conv (not installed, and no apt to install it with)"
need javac default-jdk-headless && [ -d /usr/share/visualvm ] || apt_install visualvm ||
  skip "VisualVM's reader of heap dumps (not installed, and no apt to install it with)"
venv=target/judges-venv
protos() { [ -x $venv/bin/python ] && $venv/bin/python -c 'import perfetto.protos' 2>/dev/null; }
if ! protos; then
  { python3 -m venv $venv || { apt_install python3-venv && python3 -m venv $venv; }; } >/dev/null 2>&1 || true
  [ ! -x $venv/bin/pip ] || $venv/bin/pip install -q --disable-pip-version-check perfetto || true
fi
if protos; then
  export HEAPTAP_PERFETTO_PYTHON=$PWD/$venv/bin/python
else
  skip "Perfetto's own protos (the Python package perfetto could not be installed)"
fi

# DuckDB opens what `convert --format parquet` writes.
[ ! -x $venv/bin/pip ] || $venv/bin/pip install -q --disable-pip-version-check duckdb || true
if [ -x $venv/bin/python ] && $venv/bin/python -c 'import duckdb' 2>/dev/null; then
  export HEAPTAP_EXPORT_PYTHON=$PWD/$venv/bin/python
else
  skip "DuckDB on Parquet (the Python package duckdb could not be installed)"
fi

# The report's viewer: node builds it again and must get the same bytes, Chromium looks at it.
viewer=yes
need node nodejs && need npm npm || viewer=no
[ $viewer = no ] || (cd viewer && npm ci --ignore-scripts --no-audit --no-fund --silent) || viewer=no
[ $viewer = yes ] || skip "the viewer's build and tests (no node, npm or its packages could be had)"
browser=no
for command in chromium chromium-browser google-chrome; do
  if command -v $command >/dev/null; then browser=yes; fi
done
[ $browser = yes ] || { apt_install chromium 2>/dev/null && browser=yes; } ||
  skip "the report in a browser (no Chromium, and none could be installed)"

say "format and lints"
cargo fmt --check
cargo clippy --locked --profile ci --all-targets -- -D warnings

say "tests"
cargo test --locked --profile ci

if [ $viewer = yes ]; then
  say "the report's viewer"
  (cd viewer && npm run --silent check && npm run --silent build)
  git diff --exit-code -- viewer/dist ||
    { echo "viewer/dist is not what its sources build: run npm run build in viewer/" >&2; exit 1; }
  if [ $browser = yes ]; then
    # The page's figures come from `npm run speed`; here only what is of another kind may fail.
    (cd viewer && HEAPTAP_SLACK=10 HEAPTAP=$PWD/../target/ci/heaptap npm test --silent)
  fi
fi

if [ -x tests/bench/bench.sh ]; then
  say "the real bench: adb, adbd, perfetto and traced"
  tests/bench/bench.sh test
fi

if [ ${#skipped[@]} -gt 0 ]; then
  say "skipped on this machine"
  printf '  %s\n' "${skipped[@]}"
fi
