#!/usr/bin/env bash
# Makes docs/report.png, the report of the demo's recording as the README shows it, and, with a
# folder as argument, pictures of its pages in light, dark and narrow to look at.
# Needs node, npm and Chromium. HEAPTAP names the program; else it is built.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${HEAPTAP:-}" ]; then
  cargo build --release --locked
  HEAPTAP=$PWD/target/release/heaptap
fi
[ -d viewer/node_modules ] || (cd viewer && npm ci --ignore-scripts --no-audit --no-fund --silent)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && "$HEAPTAP" demo -o rec >/dev/null && "$HEAPTAP" report rec -o report.html && "$HEAPTAP" report rec/java -o java.html)
node viewer/test/screenshots.mjs "$work/report.html" "$work/java.html" docs/report.png "${1:-}"
"$HEAPTAP" explore fixtures/hprof/leaklab-before.hprof.zst fixtures/hprof/leaklab-after.hprof.zst \
  -o "$work/heap.html"
node viewer/test/screenshots.mjs --explore "$work/heap.html" docs/explore.png
