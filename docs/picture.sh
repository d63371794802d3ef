#!/usr/bin/env bash
# Makes docs/demo.svg: the demo in a terminal of its own. Needs tmux and python3.
# HEAPTAP names the program; else it is built.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${HEAPTAP:-}" ]; then
  cargo build --release --locked
  HEAPTAP=$PWD/target/release/heaptap
fi
HEAPTAP=$(realpath "$HEAPTAP")
work=$(mktemp -d)
session=heaptap-picture-$$
trap 'tmux kill-session -t "$session" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$HEAPTAP" "$work/bin/heaptap"
tmux new-session -d -s "$session" -x 104 -y 120 -c "$work" "PS1='$ ' PATH='$work/bin:$PATH' bash --norc"
tmux send-keys -t "$session" "clear; echo '$ heaptap demo -o out'; heaptap demo -o out; touch done" Enter
for _ in $(seq 1200); do [ -e "$work/done" ] && break; sleep 0.1; done
[ -e "$work/done" ] || { echo "the demo did not end within two minutes" >&2; exit 1; }
# The picture ends where the demo begins to tell what comes next: nobody reads eighty lines of one.
tmux capture-pane -t "$session" -p -e | sed '/^[^ ]*next[^ ]*:/,$d' |
  python3 docs/picture.py > docs/demo.svg.new
mv docs/demo.svg.new docs/demo.svg
