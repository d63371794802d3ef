# A Rust compiler for other systems, out of Debian sid's packages: rustc, cargo, rust-src (so
# that std can be built for any target) and mingw, in a root file system of their own. Sourced
# by the ports' scripts; a compiler from rustup without that target's std can't do this.

. "$here/../tests/bench/debian.sh"

ports=${HEAPTAP_PORTS_DIR:-$repo/target/ports}
mkdir -p "$ports"
ports=$(cd "$ports" && pwd)
root=$ports/root
build=$ports/build

# compiler: fetches and unpacks the root once (300 MB to fetch, 1.7 GB on disk, 25 s).
compiler() {
    [ ! -e "$root/.installed" ] || return 0
    rm -rf "$root"
    debian_fetch "$ports" sid rustc cargo rust-src gcc-mingw-w64-x86-64-win32 gcc libc6-dev \
        ca-certificates dash coreutils || skip "the compiler's packages could not be fetched"
    debian_unpack "$ports" "$root"
    # What maintainer scripts would have linked.
    ln -sfn dash "$root/usr/bin/sh"
    ln -sfn gcc "$root/usr/bin/cc"
    for tool in gcc g++ cpp; do
        ln -sfn "x86_64-w64-mingw32-$tool-win32" "$root/usr/bin/x86_64-w64-mingw32-$tool"
    done
    mkdir -p "$root"/{proc,dev,sys,tmp,root,etc/ssl/certs}
    rm -f "$root/etc/ssl/certs/ca-certificates.crt"
    find "$root/usr/share/ca-certificates" -name '*.crt' -exec cat {} + \
        >"$root/etc/ssl/certs/ca-certificates.crt"
    touch "$root/.installed"
}

# inside CMD...: runs CMD in the root, in the repository (read-only), with a build folder, both at
# their own paths: tests look for data and programs where these were when they were compiled.
# RUSTC_BOOTSTRAP lets a stable compiler build its own std.
inside() {
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
    cp -n /etc/nsswitch.conf "$root/etc/" 2>/dev/null || true
    # A machine behind a proxy that opens TLS has its own list.
    [ ! -s /etc/ssl/certs/ca-certificates.crt ] ||
        cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    mkdir -p "$build" "$root$repo" "$root$build"
    unshare --mount --pid --fork --kill-child --propagation private bash -c '
        set -e; root=$1 src=$2 build=$3; shift 3
        mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"
        mount --bind "$src" "$root$src"; mount -o remount,ro,bind "$root$src"
        mount --bind "$build" "$root$build"
        exec env -i PATH=/usr/bin:/usr/sbin HOME=/root TERM=dumb \
            SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt RUSTC_BOOTSTRAP=1 \
            CARGO_HOME="$build/cargo" CARGO_TARGET_DIR="$build/target" \
            CARGO_BUILD_JOBS="$CARGO_BUILD_JOBS" \
            "$(command -v chroot)" "$root" sh -c "cd \"\$0\" && exec \"\$@\"" "$src" "$@"
    ' bash "$root" "$repo" "$build" "$@"
}
CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-$(nproc)}
export CARGO_BUILD_JOBS
