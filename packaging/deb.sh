#!/usr/bin/env bash
# Makes the Debian package of a program: packaging/deb.sh PROGRAM OUT
# Needs cargo-deb. The metadata is in Cargo.toml. The architecture is that of PROGRAM; if PROGRAM does
# not run here, HEAPTAP_RUN is one that does.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
program=$(realpath "${1:?a program}") out=${2:?a directory}
mkdir -p "$out"
out=$(cd "$out" && pwd)
run=${HEAPTAP_RUN:-$program}

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
# The machine of an ELF file is at byte 18.
case $(od -An -tu2 -j18 -N2 "$program" | tr -d ' ') in
  62) target=x86_64-unknown-linux-musl ;;
  183) target=aarch64-unknown-linux-musl ;;
  *) echo "deb.sh: $program is not a program for x86_64 or aarch64 Linux" >&2; exit 1 ;;
esac
package=$root/target/package
rm -rf "$package"
mkdir -p "$package"
"$root/packaging/documents.sh" "$(realpath "$run")" "$package"
cp "$program" "$package/heaptap"
# Debian's machine-readable format; the texts of other licenses are in THIRD-PARTY-LICENSES.txt.
{
  printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n'
  printf 'Upstream-Name: heaptap\n\nFiles: *\nCopyright: The heaptap authors\n'
  printf 'License: Apache-2.0 or Expat\n\n'
  printf 'License: Apache-2.0\n On Debian systems, the text is /usr/share/common-licenses/Apache-2.0.\n\n'
  printf 'License: Expat\n'
  sed -e '/./!s/.*/./' -e 's/^/ /' "$root/LICENSE-MIT"
} > "$package/copyright"
find "$package" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
cd "$root"
if readelf -d "$program" | grep -q NEEDED; then
  # Its Rust target need not be installed: nothing is built.
  cargo deb --no-build --no-strip --locked --target "${target%musl}gnu" --output "$out"
else
  cargo deb --no-build --no-strip --locked --target "$target" --variant static --output "$out"
fi
