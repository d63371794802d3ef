#!/usr/bin/env bash
# heaptap for macOS (arm64), compiled and linked on Debian. It can't be run here: this shows that
# it builds, C parts included, and that nothing in it is for another system.
#
#   ports/macos.sh          the Mach-O executable in target/ports/macos
#
# By hand, not in CI: fetches 400 MB and needs root for a chroot. See CONTRIBUTING.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/.." && pwd)
. "$here/chroot.sh"
out=$ports/macos
target=aarch64-apple-darwin

# zig brings a linker and the system's headers; cargo-zigbuild points cargo and cc at it.
zig() {
    [ -x "$build/zig/bin/cargo-zigbuild" ] && return
    python3 -m venv "$ports/venv" &&
        "$ports/venv/bin/pip" install -q --disable-pip-version-check \
            --target "$build/zig" ziglang==0.17.0 cargo-zigbuild==0.24.0 ||
        skip "ziglang and cargo-zigbuild could not be fetched"
}

compiler
zig
mkdir -p "$out"
# No strip: that would be rust-objcopy, which Debian does not have.
inside env CARGO_ZIGBUILD_ZIG_PATH="$build/zig/ziglang/zig" CARGO_PROFILE_RELEASE_STRIP=none \
    "$build/zig/bin/cargo-zigbuild" zigbuild --locked --release \
    -Zbuild-std=std,panic_unwind --target $target
cp "$build/target/$target/release/heaptap" "$out/"
magic=$(od -An -tx4 -N8 "$out/heaptap")
# MH_MAGIC_64, CPU_TYPE_ARM64.
[ "$magic" = " feedfacf 0100000c" ] || fail "not an arm64 Mach-O executable:$magic"
ls -l "$out/heaptap"
