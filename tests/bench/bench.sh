#!/usr/bin/env bash
# The real bench: Debian's adbd, perfetto and traced as a phone, in a network namespace of its
# own, reached by the real adb.
#
#   bench.sh test [CARGO ARGUMENTS]   install, then run the stories (main.rs) on it
#   bench.sh install                  fetch and unpack the phone (kept; 15 s the first time)
#   bench.sh up NAME [PORT]           boot a phone; adbd listens on PORT (default 5601)
#   bench.sh also NAME OTHER PORT     boot phone OTHER in the network of phone NAME
#   bench.sh run NAME CMD...          run a host's command in that network (exec: same pid)
#   bench.sh on NAME CMD...           run a command on the phone, as its root, without adb
#   bench.sh down NAME                end the phone and all that runs in its network
#
# Needs Debian on amd64, and root or unprivileged user namespaces. What is missing for that is
# a skip: one line, exit 77. What fails once a phone is being booted is an error.
# Everything lives in HEAPTAP_BENCH_DIR (default target/bench). See CONTRIBUTING.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../.." && pwd)
. "$here/debian.sh"

bench=${HEAPTAP_BENCH_DIR:-$repo/target/bench}
mkdir -p "$bench"
bench=$(cd "$bench" && pwd)
root=$bench/rootfs

if [ "$(id -u)" = 0 ]; then userns=() enter=(); else
    userns=(--user --map-root-user) enter=(--user --preserve-credentials)
fi

# --- install --------------------------------------------------------------------------

install() {
    [ -e /etc/debian_version ] && command -v apt-get dpkg-deb >/dev/null ||
        skip "the phone is made of Debian's packages, and this is no Debian"
    [ "$(dpkg --print-architecture)" = amd64 ] || skip "only made for amd64"
    [ -r /usr/share/keyrings/debian-archive-keyring.gpg ] ||
        skip "the keys of Debian's archive are not installed (debian-archive-keyring)"
    command -v unshare nsenter >/dev/null || skip "unshare and nsenter are missing (util-linux)"
    unshare "${userns[@]}" --net --mount --pid --fork true 2>/dev/null ||
        skip "namespaces are not allowed here (needs root, or unprivileged user namespaces)"
    install_adb
    # The recipe is part of what was installed: another one installs anew.
    local recipe
    recipe=$({ declare -f install_phone && cat "$here/debian.sh"; } | cksum)
    [ "$(cat "$root/.installed" 2>/dev/null)" = "$recipe" ] || install_phone "$recipe"
    install_shims
}

install_adb() {
    command -v adb >/dev/null && return
    [ "$(id -u)" = 0 ] || skip "adb is not installed (apt install adb), and this is not root"
    { timeout -s KILL 120 apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
        timeout -s KILL 300 apt-get -qq -y install --no-install-recommends adb; } >/dev/null ||
        skip "adb could not be installed"
}

install_phone() { # recipe
    rm -rf "$root" "$root.new"
    # perfetto is in sid only; the root brings its own libc, so the host's does not matter.
    debian_fetch "$bench" sid adbd perfetto mksh toybox coreutils util-linux ||
        skip "the phone's packages could not be fetched"
    local new=$root.new
    debian_unpack "$bench" "$new"
    mkdir -p "$new"/system/bin "$new"/{data,sdcard,proc,sys,dev,tmp,run,etc,root}
    local tool
    # No list of applets is kept here: toybox knows its own.
    for tool in $("$new/usr/lib64/ld-linux-x86-64.so.2" \
        --library-path "$new/usr/lib/x86_64-linux-gnu" "$new/usr/bin/toybox"); do
        ln -sfn /usr/bin/toybox "$new/system/bin/$tool"
    done
    # Android's toybox has these too, Debian's has not.
    for tool in tr dd expr; do ln -sfn "/usr/bin/$tool" "$new/system/bin/$tool"; done
    ln -sfn /usr/bin/perfetto "$new/system/bin/perfetto"
    ln -sfn /usr/bin/sh "$new/system/bin/sh"
    # Names that the phone's own tools print (ps, ls, id).
    printf '%s\n' root:x:0:0::/:/system/bin/sh shell:x:2000:2000::/data/local/tmp:/system/bin/sh \
        u0_a123:x:10123:10123::/:/system/bin/sh u0_a124:x:10124:10124::/:/system/bin/sh \
        >"$new/etc/passwd"
    printf '%s\n' root:x:0: shell:x:2000: u0_a123:x:10123: u0_a124:x:10124: >"$new/etc/group"
    echo "$1" >"$new/.installed"
    mv "$new" "$root"
}

# The commands of Android that Debian lacks; they answer from the phone's /data/fake.
install_shims() {
    local shim
    cp "$here/init.sh" "$root/init.sh"
    cp "$here/shell.sh" "$root/usr/bin/sh"
    chmod 755 "$root/usr/bin/sh"
    for shim in "$here"/shims/*; do
        # A shim may shadow a symlink to toybox: never write through it.
        rm -f "$root/system/bin/${shim##*/}"
        cp "$shim" "$root/system/bin/"
        chmod 755 "$root/system/bin/${shim##*/}"
    done
}

# --- one phone ------------------------------------------------------------------------

home() { echo "$bench/run/$1"; }

# The phone's pid 1 as the host counts.
init_of() {
    local outer init=
    outer=$(cat "$(home "$1")/pid" 2>/dev/null) || fail "no phone $1 is up"
    read -r init _ <"/proc/$outer/task/$outer/children" 2>/dev/null || true
    [ -n "$init" ] || fail "phone $1 is not running: $(tail -n 3 "$(home "$1")/log")"
    echo "$init"
}

boot() { # name port [name of the phone whose network it joins]
    local name=$1 port=$2 join=${3:-} dir network=() first=()
    dir=$(home "$name")
    [ ! -e "$dir" ] || down "$name"
    [ -e "$root/.installed" ] || fail "nothing is installed: bench.sh install"
    mkdir -p "$dir"/{home,tmp} "$dir"/data/{local/tmp,misc/perfetto-traces,misc/perfetto-configs}
    cp -r "$here/fake" "$dir/data/fake"
    chmod 0777 "$dir"/data/{local/tmp,misc/perfetto-traces,misc/perfetto-configs}
    if [ -n "$join" ]; then
        first=(nsenter "${enter[@]}" --net -t "$(init_of "$join")" --)
    else
        network=("${userns[@]}" --net)
    fi
    # setsid: Ctrl-C is for the tests, which then take the phone down.
    env "$mark=$dir" setsid "${first[@]}" bash -c 'echo $$ >"$1"; shift; exec "$@"' bash "$dir/pid" \
        unshare "${network[@]}" --mount --pid --fork --kill-child --propagation private \
        bash -c '
            set -e; root=$1 data=$2 port=$3
            mount -t proc proc "$root/proc"
            mount --rbind /dev "$root/dev"; mount --rbind /sys "$root/sys"
            for d in run tmp; do mount -t tmpfs tmpfs "$root/$d"; done
            # Without ftrace, which most machines have and containers do not.
            for d in tracing debug; do
                [ ! -d "$root/sys/kernel/$d" ] || mount -t tmpfs tmpfs "$root/sys/kernel/$d"
            done
            mount --bind "$data" "$root/data"
            exec env -i "$(command -v chroot)" "$root" /usr/bin/mksh /init.sh "$port"
        ' bash "$root" "$dir/data" "$port" >"$dir/log" 2>&1 </dev/null &
    local tries=0 listening
    # /proc/net of the phone: address:port in hex, state 0A is listening.
    listening=$(printf ':%04X [0-9A-F]*:0000 0A' "$port")
    until grep -qs "$listening" /proc/"$(init_of "$name" 2>/dev/null)"/net/tcp{,6}; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || fail "phone $name does not listen after 10 s: $(tail -n 5 "$dir/log")"
        sleep 0.05
    done
}

# exec, so that the caller's child is the command itself and signals reach it.
run() { # name cmd...
    local name=$1 dir
    shift
    dir=$(home "$name")
    # An adb server of its own: the network is, and so are its key, its log and heaptap's state.
    exec env -u ANDROID_SERIAL -u ADB_SERVER_SOCKET -u ANDROID_ADB_SERVER_ADDRESS \
        -u ANDROID_ADB_SERVER_PORT -u ADB_VENDOR_KEYS \
        "$mark=$dir" HOME="$dir/home" TMPDIR="$dir/tmp" XDG_STATE_HOME="$dir/home/state" \
        nsenter "${enter[@]}" --net -t "$(init_of "$name")" -- "$@"
}

on() { # name cmd...
    local init
    init=$(init_of "$1")
    shift
    exec env -i PATH=/system/bin:/usr/bin:/usr/sbin HOME=/ \
        nsenter "${enter[@]}" --net --mount --pid --root --wd=/ -t "$init" -- "$@"
}

# Every process that boot and run start carries the phone's folder in its environment: that, and
# no number out of a file, says what is ours to kill.
mark=HEAPTAP_BENCH_PHONE

ours() { # dir: the pids
    local proc
    for proc in /proc/[0-9]*; do
        ! grep -qszxF "$mark=$1" "$proc/environ" || echo "${proc##*/}"
    done
}

down() { # name
    local dir pids
    dir=$(home "$1")
    [ -d "$dir" ] || return 0
    # The phone (unshare --fork ignores SIGTERM; its death takes the pid namespace along), the
    # adb server, and whatever a failed story left.
    while pids=$(ours "$dir") && [ -n "$pids" ]; do
        # shellcheck disable=SC2086 # a list
        kill -KILL $pids 2>/dev/null || true
        sleep 0.02
    done
    rm -rf "$dir"
}

up() { # name [port]
    boot "$1" "${2:-5601}"
}

# --- all of it ------------------------------------------------------------------------

down_all() {
    local dir
    for dir in "$bench"/run/*; do [ ! -d "$dir" ] || down "${dir##*/}"; done
}

case ${1:-} in
install) install ;;
up) up "${@:2}" ;;
also) boot "$3" "$4" "$2" ;;
run) run "${@:2}" ;;
on) on "${@:2}" ;;
down) down "$2" ;;
test)
    rc=0
    (install) || rc=$?
    [ $rc = 0 ] || exit $rc
    shift
    [ $# -gt 0 ] || set -- --locked --profile ci
    trap down_all EXIT
    trap 'exit 130' INT TERM HUP
    cd "$repo"
    skipped=()
    [ -n "${HEAPTAP_PERFETTO_PYTHON:-}" ] || skipped=(--skip perfetto_protos_)
    # Stories mostly wait, each for a phone of its own.
    RUST_TEST_THREADS=${RUST_TEST_THREADS:-6} HEAPTAP_BENCH="$here/bench.sh" \
        HEAPTAP_BENCH_DIR=$bench cargo test --workspace "$@" --test bench -- --ignored \
        "${skipped[@]}"
    ;;
*)
    sed -n '2,/^set -e/s/^#\( \|$\)//p' "$here/bench.sh"
    exit 2
    ;;
esac
