#!/usr/bin/env bash
# Writes the CycloneDX SBOM of the program: packaging/sbom.sh OUT
# Needs cargo-cyclonedx. It lists the crates of all systems, without build tools.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?a directory}
mkdir -p "$out"
out=$(cd "$out" && pwd)

version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' "$root/Cargo.toml")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
# The tool writes into the directory of each crate.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git -C "$root" archive HEAD | tar -x -C "$copy"
cargo cyclonedx -q --manifest-path "$copy/Cargo.toml" --format json --spec-version 1.5 \
  --target all --no-build-deps
sed "s|$copy|heaptap|g" "$copy/heaptap.cdx.json" > "$out/heaptap-$version.cdx.json"
