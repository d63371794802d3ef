#!/usr/bin/env bash
# The way of a newcomer: README's two commands in a clean Debian, from nothing, with the time and
# the download of each step.
#
#   ports/newcomer.sh              installs Debian sid and Rust, runs the demo, then the tests
#   ports/newcomer.sh demo         without the tests
#   SUITE=forky ports/newcomer.sh  another suite that has Rust 1.88 or newer
#
# By hand, not in CI: needs root for a chroot, fetches 1 GB, and the tests take half an hour.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/.." && pwd)
. "$repo/tests/bench/debian.sh"
suite=${SUITE:-sid}
folder=${HEAPTAP_NEWCOMER_DIR:-$repo/target/newcomer}
root=$folder/root

command -v mmdebstrap >/dev/null ||
    { apt-get -qq update && apt-get -qq -y install --no-install-recommends mmdebstrap; } ||
    skip "mmdebstrap could not be installed"
mirror=$(debian_mirror)
[ -n "$mirror" ] || skip "apt knows no mirror of Debian"

# As after a fresh installation: what is essential, apt, and the certificates of this machine,
# which may be behind a proxy.
clean_root() {
    rm -rf "$root"
    mkdir -p "$folder"
    # A mirror can be older than its lists are valid.
    mmdebstrap --quiet --aptopt='Acquire::Check-Valid-Until "false"' --variant=apt --include=ca-certificates "$suite" "$root" "$mirror"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    rm -rf "$root"/var/cache/apt/archives/*.deb
}

# inside CMD: a login of the newcomer's, in namespaces that end with it. The repository can be
# cloned from /repo.
inside() {
    mkdir -p "$root/repo"
    unshare --mount --pid --fork --kill-child --propagation private bash -c '
        set -e; root=$1 repo=$2
        mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"
        mount -t sysfs -o ro sys "$root/sys"
        mount --bind "$repo" "$root/repo"; mount -o remount,ro,bind "$root/repo"
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LANG=C.UTF-8 CI="$4" \
            SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
            "$(command -v chroot)" "$root" bash -ec "$3"
    ' bash "$root" "$repo" "$1" "${CI:-}"
}

# What cargo, apt, pip and npm fetched so far, MiB. apt keeps no package: its log has the sizes.
fetched() {
    local registry=$root/root/.cargo/registry/cache pip=$root/root/.cache/pip npm=$root/root/.npm
    local apt
    apt=$(sed -n 's/^Get:.*\[\([0-9.,]*\) \([kM]\)\{0,1\}B\]$/\1 \2/p' "$folder/log" | tr -d , |
        awk '{ sum += $2 == "M" ? $1 : $2 == "k" ? $1 / 1000 : $1 / 1e6 } END { print int(sum) }')
    echo $((apt + $(du -scm "$registry" "$pip" "$npm" 2>/dev/null | tail -n 1 | cut -f 1)))
}

steps=""
step() { # name, command
    local begun=$SECONDS before
    before=$(fetched)
    echo "== $1: $2"
    inside "cd /root; $2" >>"$folder/log" 2>&1 ||
        { tail -n 40 "$folder/log" >&2; fail "$1 failed: see $folder/log"; }
    steps+=$(printf '\n%-28s %6d s %8d MB' "$1" $((SECONDS - begun)) $(($(fetched) - before)))
}

clean_root
: >"$folder/log"
step "install Rust and C" "apt-get update; apt-get install -y --no-install-recommends git cargo gcc libc6-dev; cargo --version"
step "clone" "git -c safe.directory='*' clone /repo heaptap"
step "the demo (README)" "cd heaptap; cargo run --release -- demo -o out; ls -l out/report.html"
[ "${1:-all}" = demo ] || step "the tests (README)" "cd heaptap; tests/run.sh"
echo "$suite, $(nproc) cores:$steps"
sed -n 's/^\(test result:.*\)/\1/p' "$folder/log" | awk '{ passed += $4; failed += $6 } END { if (NR) print passed " tests passed, " failed " failed" }'
sed -n '/== not run on this machine/,$p' "$folder/log"
