#!/usr/bin/env bash
# Makes the files of a release from programs that are built:
#
#   packaging/package.sh PROGRAMS OUT
#
# PROGRAMS has a directory for each target with `heaptap` or `heaptap.exe` in it; OUT receives the
# archives and SHA256SUMS. One of the programs has to run here, for man pages and completions:
# HEAPTAP_RUN, otherwise that of this computer's system. Files that are already in OUT (an SBOM, a
# .deb) get a checksum too. If HEAPTAP_ADDRESS is set, the installers and the manifests of package
# managers are made as well, with HEAPTAP_HOMEPAGE and HEAPTAP_PUBLISHER; see manifests.py.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/..
programs=${1:?directory of the programs} out=${2:?directory of the result}

version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' "$root/Cargo.toml")
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
fi
export SOURCE_DATE_EPOCH
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$out"

run=${HEAPTAP_RUN:-}
if [ -z "$run" ]; then
  case $(uname -sm) in
    "Linux x86_64") run=$(echo "$programs"/x86_64-unknown-linux-*/heaptap) ;;
    "Linux aarch64") run=$(echo "$programs"/aarch64-unknown-linux-*/heaptap) ;;
    Darwin*) run=$programs/universal-apple-darwin/heaptap ;;
    *) echo "package.sh: set HEAPTAP_RUN to a program that runs here" >&2; exit 1 ;;
  esac
  chmod +x "$run"
fi
"$here/documents.sh" "$run" "$stage/documents"

for folder in "$programs"/*/; do
  target=$(basename "$folder")
  name=heaptap-$version-$target
  mkdir "$stage/$name"
  cp -R "$stage/documents/." "$stage/$name"
  case $target in
    *-windows-*) cp "$folder/heaptap.exe" "$stage/$name/"; archive=$name.zip ;;
    *) cp "$folder/heaptap" "$stage/$name/"; archive=$name.tar.gz ;;
  esac
  python3 "$here/archive.py" "$stage/$name" "$out/$archive"
done

(
  cd "$out"
  find . -maxdepth 1 -type f \( -name 'heaptap*.tar.gz' -o -name 'heaptap*.zip' \
    -o -name 'heaptap*.deb' -o -name 'heaptap*.cdx.json' \) -printf '%f\n' | LC_ALL=C sort |
    xargs -r sha256sum > SHA256SUMS.new
  mv SHA256SUMS.new SHA256SUMS
)
if [ -n "${HEAPTAP_ADDRESS:-}" ]; then
  python3 "$here/manifests.py" --version "$version" --address "$HEAPTAP_ADDRESS" \
    --homepage "${HEAPTAP_HOMEPAGE:?}" --publisher "${HEAPTAP_PUBLISHER:?}" "$out"
fi
cat "$out/SHA256SUMS"
