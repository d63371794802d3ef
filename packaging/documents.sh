#!/usr/bin/env bash
# Writes what is installed next to the program: packaging/documents.sh HEAPTAP DIR
# Man pages, completions, licenses, and what README and --help name. HEAPTAP is a
# program that runs here.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
heaptap=${1:?a program that runs here} out=${2:?a directory}

mkdir -p "$out/completions"
"$heaptap" -q man -o "$out/man"
"$heaptap" completions bash > "$out/completions/heaptap.bash"
"$heaptap" completions zsh > "$out/completions/_heaptap"
"$heaptap" completions fish > "$out/completions/heaptap.fish"
"$heaptap" completions powershell > "$out/completions/_heaptap.ps1"
"$heaptap" licenses > "$out/THIRD-PARTY-LICENSES.txt"
cp "$root/LICENSE-APACHE" "$root/LICENSE-MIT" "$root"/{README,CHANGELOG,CONTRIBUTING,SECURITY}.md "$out/"
# Not scripts, nor what an editor leaves.
(cd "$root" && find docs configs benches -type f \( -name '*.md' -o -name '*.png' -o -name '*.txt' -o -name '*.yaml' \)) |
while IFS= read -r file; do
  mkdir -p "$out/$(dirname "$file")"
  cp "$root/$file" "$out/$file"
done
