#!/usr/bin/env bash
# Builds the program of a release: packaging/build.sh [TARGET]   (default: this computer's)
#
# The same commit and compilers are meant to give the same bytes: paths of the computer are replaced,
# see packaging/reproducible.sh. The path of the program is the last line of the output.
# CARGO_TARGET_DIR is the directory of the build (default target), HEAPTAP_COMMIT the commit that
# `heaptap --version` shows.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
target=${1:-$host}
output=${CARGO_TARGET_DIR:-target}
cargo_home=${CARGO_HOME:-$HOME/.cargo}
sysroot=$(rustc --print sysroot)
here=$PWD
if command -v cygpath >/dev/null; then # Windows: the paths as the compilers see them
  here=$(cygpath -w "$here") cargo_home=$(cygpath -w "$cargo_home")
fi

# One flag a line, because paths can have spaces.
flags=()
c_flags=()
for pair in "$cargo_home=/cargo" "$sysroot=/rust" "$here=/heaptap"; do
  flags+=("--remap-path-prefix=$pair")
  c_flags+=("-ffile-prefix-map=$pair")
done
case $target in
  *-windows-msvc)
    flags+=("-Ctarget-feature=+crt-static" "-Clink-arg=/Brepro")
    c_flags=() # cl.exe writes paths only into debug information
    ;;
  *-linux-musl) flags+=("-Ctarget-feature=+crt-static") ;;
esac
CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f'; echo "${flags[*]}")
export CARGO_ENCODED_RUSTFLAGS
if [ ${#c_flags[@]} -gt 0 ]; then
  # The crate `cc` then reads CFLAGS as a shell does.
  export CC_SHELL_ESCAPED_FLAGS=1
  CFLAGS="${CFLAGS:-}$(printf ' %q' "${c_flags[@]}")"
fi
export CFLAGS="${CFLAGS:-}"
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null) || SOURCE_DATE_EPOCH=0
fi
export SOURCE_DATE_EPOCH ZERO_AR_DATE=1

cargo build --profile dist --locked --bin heaptap --target "$target"
program=$output/$target/dist/heaptap
case $target in *-windows-*) program=$program.exe ;; esac
echo "$program"
