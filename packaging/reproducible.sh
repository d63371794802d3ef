#!/usr/bin/env bash
# Builds the program of a release twice and compares the bytes: packaging/reproducible.sh [TARGET]
#
# The two copies of the committed files are in directories of different names and lengths, their
# files have different times, and nothing is shared but the sources of the dependencies. In a checkout
# of a release's tag, the SHA-256 that it prints is that of the program in the release.
# HEAPTAP_REPRODUCIBLE_DIR is the place (default target/reproducible); the programs stay there.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${1:-$(rustc -vV | sed -n 's/^host: //p')}
place=${HEAPTAP_REPRODUCIBLE_DIR:-target/reproducible}
mkdir -p "$place"
place=$(cd "$place" && pwd)
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

build() { # name, time of the files
  local copy=$place/$1
  rm -rf "$copy"
  mkdir -p "$copy"
  git archive --mtime="$2" "$commit" | tar -x -C "$copy"
  HEAPTAP_COMMIT=${commit::12} CARGO_TARGET_DIR=$copy/target bash "$copy/packaging/build.sh" "$target"
}
build one 2024-01-01T00:00:00Z
build another-directory-with-a-longer-name 2025-06-07T08:09:10Z

programs=("$place"/*/target/"$target"/dist/heaptap*)
found=()
for program in "${programs[@]}"; do
  case $program in *.d | *.pdb) ;; *) found+=("$program") ;; esac
done
[ ${#found[@]} = 2 ] || { echo "reproducible.sh: ${#found[@]} programs, not 2" >&2; exit 1; }
sha256sum "${found[@]}"
if ! cmp "${found[@]}"; then
  echo "reproducible.sh: the programs differ" >&2
  exit 1
fi
if grep -aqF "$place" "${found[0]}"; then
  echo "reproducible.sh: the program has a path of this computer" >&2
  exit 1
fi
echo "equal: $(wc -c < "${found[0]}") bytes"
