#!/usr/bin/env bash
# heaptap for macOS and for Linux with musl, compiled and linked on Debian with zig's linker and
# headers.
#
#   ports/cross.sh             all four targets, into target/ports/TARGET
#   ports/cross.sh TARGET…     some of them
#
# A macOS program can't be run here: this shows that it builds, C parts included. The Linux ones run
# the demo, arm64 under qemu. By hand, not in CI: fetches 400 MB and needs root for a chroot.
# See CONTRIBUTING.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/.." && pwd)
. "$here/chroot.sh"

[ $# -gt 0 ] || set -- aarch64-apple-darwin x86_64-apple-darwin \
    x86_64-unknown-linux-musl aarch64-unknown-linux-musl

# The first eight bytes of a program, and the machine of an ELF file.
kind_of() { # file
    od -An -tx4 -N8 "$1" | tr -d '\n'
    [ "$(od -An -tx1 -N4 "$1")" != " 7f 45 4c 46" ] || od -An -tx2 -j18 -N2 "$1"
}
expected() { # target: MH_MAGIC_64 and the CPU type; ELF64 and e_machine
    case $1 in
    aarch64-apple-darwin) echo " feedfacf 0100000c" ;;
    x86_64-apple-darwin) echo " feedfacf 01000007" ;;
    x86_64-unknown-linux-musl) echo " 464c457f 00010102 003e" ;;
    aarch64-unknown-linux-musl) echo " 464c457f 00010102 00b7" ;;
    *) fail "no target $1: see the head of this script" ;;
    esac
}

# cargo-zigbuild points cargo and cc at zig.
zig() {
    [ -x "$build/zig/bin/cargo-zigbuild" ] && return
    python3 -m venv "$ports/venv" &&
        "$ports/venv/bin/pip" install -q --disable-pip-version-check \
            --target "$build/zig" ziglang==0.17.0 cargo-zigbuild==0.24.0 ||
        skip "ziglang and cargo-zigbuild could not be fetched"
}

# What heaptap's crates call of the frameworks of macOS, which zig does not have: a directory like
# Apple's SDK, with the names alone.
frameworks() {
    local targets="[ x86_64-macos, arm64-macos ]" name=CoreFoundation
    local folder=$build/sdk/System/Library/Frameworks/$name.framework
    mkdir -p "$folder" "$build/sdk/usr/lib" "$build/sdk/usr/include"
    cat >"$folder/$name.tbd" <<EOF
--- !tapi-tbd
tbd-version: 4
targets: $targets
install-name: /System/Library/Frameworks/$name.framework/Versions/A/$name
exports:
  - targets: $targets
    symbols: [ _CFRelease, _CFStringGetBytes, _CFStringGetCStringPtr, _CFStringGetLength,
               _CFTimeZoneCopySystem, _CFTimeZoneGetName, _CFTimeZoneResetSystem ]
...
EOF
}

emulator() { # target: the words before a program of it, nothing for this machine's own
    [ "${1%%-*}" != "$(uname -m)" ] || return 0
    command -v qemu-aarch64-static >/dev/null ||
        { apt-get -qq update && apt-get -qq -y install --no-install-recommends \
            qemu-user-static; } >&2 || skip "qemu-user-static could not be installed"
    echo qemu-aarch64-static
}

build_and_check() { # target
    local target=$1 program=$ports/$1/heaptap kind
    mkdir -p "$ports/$target"
    # No strip: that would be rust-objcopy, which Debian does not have. The C library is zig's.
    inside env RUSTFLAGS="$([[ $target != *-musl ]] || echo -Clink-self-contained=no)" \
        SDKROOT="$build/sdk" CARGO_ZIGBUILD_ZIG_PATH="$build/zig/ziglang/zig" CARGO_PROFILE_RELEASE_STRIP=none \
        "$build/zig/bin/cargo-zigbuild" zigbuild --locked --release \
        -Zbuild-std=std,panic_unwind --target "$target"
    cp "$build/target/$target/release/heaptap" "$program"
    kind=$(kind_of "$program")
    [ "$kind" = "$(expected "$target")" ] || fail "not a program for $target:$kind"
    ls -l "$program"
    case $target in
    *-linux-*) demo "$target" "$program" ;;
    esac
}

demo() { # target, program
    local folder words headers
    words=$(emulator "$1")
    headers=$(readelf -lW "$2")
    case $headers in *INTERP*) fail "$2 needs a loader: it is not static" ;; esac
    folder=$(mktemp -d)
    $words "$2" --version
    (cd "$folder" && time $words "$2" demo -o out)
    [ -s "$folder/out/report.html" ] || fail "the demo left no page in $folder"
    rm -r "$folder"
}

for target; do expected "$target" >/dev/null; done
compiler
zig
frameworks
for target; do build_and_check "$target"; done
