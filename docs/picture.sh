#!/usr/bin/env bash
# Makes docs/demo.svg: the demo in a terminal of its own. Needs tmux and python3.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --locked
work=$(mktemp -d)
session=heaptap-picture-$$
trap 'tmux kill-session -t "$session" 2>/dev/null || true; rm -rf "$work"' EXIT
tmux new-session -d -s "$session" -x 104 -y 60 -c "$work" "PS1='$ ' PATH='$PWD/target/release:$PATH' bash --norc"
tmux send-keys -t "$session" "clear; heaptap demo -o out; touch done" Enter
for _ in $(seq 300); do [ -e "$work/done" ] && break; sleep 0.1; done
tmux capture-pane -t "$session" -p -e | sed 's/; touch done//' | python3 docs/picture.py > docs/demo.svg.new
mv docs/demo.svg.new docs/demo.svg
