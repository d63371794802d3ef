#!/usr/bin/env bash
# heaptap for Windows, built on Debian and tried under wine.
#
#   ports/windows.sh build     heaptap.exe (release) in target/ports/windows
#   ports/windows.sh run ARG…  heaptap.exe ARG… under wine, in the current folder
#   ports/windows.sh test [SUITE [NAME…]]  tests under wine: `lib` (the default), or one of tests/
#   ports/windows.sh capture   what a console shows of some commands, into docs/ports/windows.txt
#   ports/windows.sh bench     heaptap.exe records from the real bench (tests/bench)
#   ports/windows.sh           build, then run the demo into a fresh folder and show it
#
# By hand, not in CI: fetches 300 MB and needs root for a chroot. See CONTRIBUTING.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/.." && pwd)
. "$here/chroot.sh"
out=$ports/windows
target=x86_64-pc-windows-gnu

cargo_inside() {
    compiler
    mkdir -p "$out"
    inside env CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc \
        cargo "$1" --locked --release \
        -Zbuild-std=std,panic_unwind,test --target $target "${@:2}"
}

build() {
    cargo_inside build
    cp "$build/target/$target/release/heaptap.exe" "$out/"
    prng_stub
}

run_tests() { # suite, names...
    local suite=${1:-lib} said programs what=(--lib)
    [ "$suite" = lib ] || what=(--test "$suite")
    # cargo says on stderr where it put the program; the one under test it builds along.
    said=$(cargo_inside test "${what[@]}" --no-run 2>&1) || fail "the tests do not build: $said"
    program=$(sed -n 's/.*Executable.*(\(.*\.exe\))/\1/p' <<<"$said" | tail -n 1)
    prng_stub
    for folder in "$(dirname "$program")" "$build/target/$target/release"; do
        cp "$out/bcryptprimitives.dll" "$folder/"
    done
    cd "$repo"
    console=yes run "${@:2}"
}

# wine 8 lacks bcryptprimitives.dll, which std takes its random numbers from; this one passes
# the call on to the older name of the same thing.
prng_stub() {
    cat >"$build/stub.c" <<'EOF'
unsigned char __stdcall SystemFunction036(void *buffer, unsigned long length);
__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *buffer, unsigned long long length) {
    while (length) {
        unsigned long step = length > 0x10000000 ? 0x10000000 : (unsigned long)length;
        if (!SystemFunction036(buffer, step)) return 0;
        buffer += step;
        length -= step;
    }
    return 1;
}
EOF
    inside x86_64-w64-mingw32-gcc -O1 -shared -o "$build/bcryptprimitives.dll" "$build/stub.c" -ladvapi32
    cp "$build/bcryptprimitives.dll" "$out/"
}

wine_installed() {
    command -v wine64 >/dev/null || [ -x /usr/lib/wine/wine64 ] ||
        { apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
            apt-get -qq -y install --no-install-recommends wine64; } ||
        skip "wine64 could not be installed"
}

run() {
    wine_installed
    local wine
    wine=$(command -v wine64 || echo /usr/lib/wine/wine64)
    set -- env "WINEPREFIX=$ports/wine" "WINEDEBUG=${WINEDEBUG:--all}" \
        timeout --foreground -s KILL "${HEAPTAP_WINE_SECONDS:-180}" \
        "$wine" "${program:-$out/heaptap.exe}" "$@"
    if [ "${console:-no}" = yes ]; then
        # Ctrl-C needs a console, which wine makes of a terminal. It draws each character alone.
        script -qefc "stty cols 100 rows 40; $(printf '%q ' "$@")" "${terminal:-/dev/null}" </dev/null |
            sed -u 's/\x1b\[[?0-9;]*[a-zA-Z]//g; s/\x1b([A-Z]//g; s/\r$//'
    else
        "$@"
    fi
}

demo() {
    local folder rc=0
    folder=$(mktemp -d "$out/demo.XXXXXX")
    cd "$folder"
    echo "== heaptap.exe --version"
    run --version
    echo "== heaptap.exe demo -o out"
    time run demo -o out || rc=$?
    echo "== exit code $rc, left in $folder:"
    find out -type f -exec ls -l {} +
    return $rc
}

# pyte is a terminal: it draws what wine's console sends, which moves the cursor. wine 8 counts the
# characters of escape sequences as columns: no colors, and no status line.
capture() {
    local line words python=$ports/venv/bin/python
    [ -x "$python" ] || python3 -m venv "$ports/venv"
    "$ports/venv/bin/pip" install -q --disable-pip-version-check pyte==0.8.2
    cd "$(mktemp -d "$out/capture.XXXXXX")"
    mkdir -p "$repo/docs/ports"
    for line in "demo -o out" "top out" "diff out@1 out@last" "leaks out/java" \
        "doctor --virtual" "record -n com.example.nothing --virtual" "top missing"; do
        read -ra words <<<"$line"
        console=yes terminal=$PWD/typed NO_COLOR=1 run "${words[@]}" --no-progress \
            >/dev/null || true
        printf '> heaptap %s\n\n' "$line"
        "$python" - "$PWD/typed" <<'EOF'
import sys, pyte
typed = open(sys.argv[1], "rb").read()
screen = pyte.HistoryScreen(100, 40, history=1000)
# The first line is of `script`, as is the last one.
pyte.ByteStream(screen).feed(typed.split(b"\n", 1)[1].rsplit(b"\nScript done", 1)[0])
lines = ["".join(line[x].data for x in range(100)) for line in screen.history.top]
print("\n".join(line.rstrip() for line in lines + screen.display).strip(), end="\n\n")
EOF
    done >"$repo/docs/ports/windows.txt"
}

# A recording by the real adb and perfetto, ended by Ctrl-C; without heapprofd it stays empty.
bench() {
    local rc=0 folder wine
    bench=$repo/tests/bench/bench.sh
    folder=$(mktemp -d "$out/bench.XXXXXX")
    cd "$folder"
    "$bench" install
    "$bench" up windows
    trap '"$bench" down windows' EXIT
    "$bench" run windows adb connect 127.0.0.1:5601
    "$bench" run windows "$here/windows.sh" run doctor
    "$bench" run windows "$here/windows.sh" run record -n com.example.app -o out >said 2>&1 &
    until grep -qs "Ctrl-C ends the recording" said; do
        [ -d "/proc/$!" ] || fail "it does not record: $(cat said)"
        sleep 0.2
    done
    # wine makes a Ctrl-C of it. The process is the one that wine calls by its program.
    for wine in /proc/[0-9]*; do
        ! { tr '\0' ' ' <"$wine/cmdline"; } 2>/dev/null | grep -q "^$out/heaptap.exe record" ||
            kill -INT "${wine##*/}"
    done
    wait $! || rc=$?
    cat said
    ls -l out
    [ $rc = 7 ] || fail "exit code $rc, not 7 (no samples)"
}

case ${1:-all} in
build) build ;;
run) shift; run "$@" ;;
test) shift; run_tests "$@" ;;
bench) bench ;;
capture) capture ;;
all) build; demo ;;
*) sed -n '2,/^set -e/s/^#\( \|$\)//p' "$0"; exit 2 ;;
esac
