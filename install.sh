#!/usr/bin/env sh
# Builds heaptap and installs it: ./install.sh [--prefix DIR] [--no-completions]
# Checks what the build needs first and says what is missing. Changes nothing outside the
# prefix (default: ~/.local) and this folder's target/.
set -eu

prefix=${PREFIX:-"${HOME:?}/.local"}
completions=yes
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) prefix=${2:?--prefix needs a folder}; shift 2 ;;
    --prefix=*) prefix=${1#--prefix=}; shift ;;
    --no-completions) completions=no; shift ;;
    -h|--help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
    *) echo "install.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
  esac
done
cd "$(dirname "$0")"

fail() { echo "install.sh: $1" >&2; exit 1; }

command -v cargo >/dev/null 2>&1 || fail "cargo was not found: install Rust 1.88 or newer (rustup, or your system's packages)"
version=$(cargo --version | sed -n 's/^cargo \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
major=${version% *}; minor=${version#* }
if [ "$major" -eq 1 ] && [ "$minor" -lt 88 ]; then
  fail "cargo is $(cargo --version), heaptap needs 1.88 or newer"
fi
command -v cc >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 ||
  fail "no C compiler was found (cc, gcc or clang): the compression libraries need one"

cargo build --profile dist --locked

mkdir -p "$prefix/bin"
# Under its final name only when whole: a running heaptap keeps its old file.
cp target/dist/heaptap "$prefix/bin/.heaptap.new"
chmod 755 "$prefix/bin/.heaptap.new"
mv -f "$prefix/bin/.heaptap.new" "$prefix/bin/heaptap"

if [ "$completions" = yes ]; then
  install_completion() { # shell, file
    mkdir -p "$(dirname "$2")"
    "$prefix/bin/heaptap" completions "$1" > "$2.new" && mv -f "$2.new" "$2"
  }
  install_completion bash "$prefix/share/bash-completion/completions/heaptap"
  install_completion zsh "$prefix/share/zsh/site-functions/_heaptap"
  install_completion fish "$prefix/share/fish/vendor_completions.d/heaptap.fish"
fi

echo "installed: $("$prefix/bin/heaptap" --version) in $prefix/bin"
case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *) echo "note: $prefix/bin is not in PATH" ;;
esac
command -v adb >/dev/null 2>&1 ||
  echo "note: adb was not found; recording from a phone needs Android's platform-tools (the demo does not)"
