#!/usr/bin/env sh
# Installs heaptap: ./install.sh [--prefix DIR] [--version V] [--from DIR|URL]
#                   ./install.sh --build | --uninstall [--prefix DIR]
#
# --from DIR|URL   where the files of a release are; {version} in it is the version
# --version V      another version than that of this script
# --build          build from this checkout, with cargo and a C compiler
# --uninstall      remove what was installed below the prefix
# --no-completions no completions for bash, zsh and fish
#
# The prefix is --prefix, otherwise PREFIX, otherwise ~/.local. Nothing outside of it changes. The
# archive must have the SHA-256 that SHA256SUMS of the same release lists. Variables: HEAPTAP_FROM
# for --from, and the proxies of curl or wget. Without an address, a checkout is built.
set -eu

# A release fills these in.
address='@ADDRESS@'
version='@VERSION@'
case $address in @*) address='' version='' ;; esac

say() { printf '%s\n' "$*"; }
fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }
usage() { printf 'install.sh: %s (see --help)\n' "$*" >&2; exit 2; }

prefix=${PREFIX:-}
released=$version version=
address=${HEAPTAP_FROM:-$address}
action=install
completions=yes
while [ $# -gt 0 ]; do
  case $1 in
    --prefix | --version | --from)
      if [ $# -lt 2 ] || [ -z "$2" ]; then usage "$1 needs a value"; fi
      option=$1 value=$2; shift 2 ;;
    --prefix=?* | --version=?* | --from=?*)
      option=${1%%=*} value=${1#*=}; shift ;;
    --build) action=build; shift; continue ;;
    --uninstall) action=uninstall; shift; continue ;;
    --no-completions) completions=no; shift; continue ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) usage "unknown option $1" ;;
  esac
  case $option in
    --prefix) prefix=$value ;;
    --version) version=${value#v} ;;
    --from) address=$value ;;
  esac
done
[ -n "$prefix" ] || prefix=${HOME:?}/.local
case $version in *[!0-9A-Za-z.-]*) usage "not a version: $version" ;; esac
case $prefix in
  /*) ;;
  *) prefix=$PWD/$prefix ;;
esac
# Paths of the installed files below the prefix; directories that were made for them end in /.
list=share/heaptap/installed

# uninstall: removes the files of the list, then the directories that were made and are empty.
uninstall() {
  [ -f "$prefix/$list" ] || fail "no heaptap was installed below $prefix (no $list)"
  while IFS= read -r path; do
    case $path in
      '' | /* | *..*) fail "$prefix/$list has a path that this script does not write: $path" ;;
      */) ;;
      *) rm -f "$prefix/$path" "$prefix/$path.new" ;;
    esac
  done <"$prefix/$list"
  directories=$(grep '/$' "$prefix/$list" | LC_ALL=C sort -r || true)
  rm -f "$prefix/$list" "$prefix/$list.new"
  printf '%s\n' "$directories" | while IFS= read -r path; do
    case $path in
      '') ;;
      ./) rmdir "$prefix" 2>/dev/null || true ;;
      *) rmdir "$prefix/$path" 2>/dev/null || true ;;
    esac
  done
  say "removed: heaptap below $prefix"
}

# plan_directory PATH: lists a directory below the prefix, and each above it, if it is missing.
plan_directory() {
  [ -d "$prefix/$1" ] && return
  case $1 in */*) plan_directory "${1%/*}" ;; esac
  say "$1/" >>"$stage/installed"
}

# plan FILE PATH MODE: lists a file, and the directories that have to be made for it.
plan() {
  plan_directory "${2%/*}"
  say "$2" >>"$stage/installed"
}

# place FILE PATH MODE: under its final name only when it is whole, so a running heaptap keeps its
# old file.
place() {
  mkdir -p "$prefix/${2%/*}"
  cp "$1" "$prefix/$2.new"
  chmod "$3" "$prefix/$2.new"
  mv -f "$prefix/$2.new" "$prefix/$2"
}

# each DO DIR: calls DO with the file, path and mode of each file to install.
each() {
  "$1" "$2/heaptap" bin/heaptap 755
  if [ "$completions" = yes ]; then
    "$1" "$2/completions/heaptap.bash" share/bash-completion/completions/heaptap 644
    "$1" "$2/completions/_heaptap" share/zsh/site-functions/_heaptap 644
    "$1" "$2/completions/heaptap.fish" share/fish/vendor_completions.d/heaptap.fish 644
  fi
  for page in "$2"/man/*.1; do "$1" "$page" "share/man/man1/${page##*/}" 644; done
  for file in LICENSE-APACHE LICENSE-MIT THIRD-PARTY-LICENSES.txt; do
    "$1" "$2/$file" "share/doc/heaptap/$file" 644
  done
  (cd "$2" && find ./*.md docs configs benches -type f) >"$stage/documents"
  while IFS= read -r file; do
    "$1" "$2/$file" "share/doc/heaptap/${file#./}" 644
  done <"$stage/documents"
}

# place_all DIR: the files of an archive, or of a build and packaging/documents.sh.
place_all() {
  if [ ! -d "$prefix" ]; then say "./" >>"$stage/installed"; fi
  # What an earlier version installed is in the new list too, so that --uninstall removes it.
  if [ -f "$prefix/$list" ]; then cat "$prefix/$list" >>"$stage/installed"; fi
  each plan "$1"
  plan_directory "${list%/*}"
  # The list is there before the files: an install that is interrupted can be uninstalled.
  mkdir -p "$prefix/${list%/*}" || fail "cannot make $prefix/${list%/*}"
  LC_ALL=C sort -u "$stage/installed" >"$prefix/$list.new"
  mv -f "$prefix/$list.new" "$prefix/$list"
  each place "$1"

  say "installed: $("$prefix/bin/heaptap" --version) in $prefix/bin"
  case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) say "note: $prefix/bin is not in PATH" ;;
  esac
  command -v adb >/dev/null 2>&1 ||
    say "note: adb was not found; recording from a phone needs Android's platform-tools (the demo does not)"
}

# build: builds in this checkout.
build() {
  here=$(cd "$(dirname "$0")" && pwd)
  [ -f "$here/Cargo.toml" ] || fail "--build needs a checkout of heaptap; this script is in $here"
  command -v cargo >/dev/null 2>&1 || fail "cargo was not found: install Rust 1.88 or newer (rustup, or your system's packages)"
  cargo=$(cargo --version | sed -n 's/^cargo \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
  if [ "${cargo% *}" -eq 1 ] && [ "${cargo#* }" -lt 88 ]; then
    fail "cargo is $(cargo --version), heaptap needs 1.88 or newer"
  fi
  command -v cc >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 ||
    fail "no C compiler was found (cc, gcc or clang): the compression libraries need one"
  (cd "$here" && cargo build --profile dist --locked)
  built=${CARGO_TARGET_DIR:-target}
  case $built in /*) ;; *) built=$here/$built ;; esac
  mkdir "$stage/heaptap"
  bash "$here/packaging/documents.sh" "$built/dist/heaptap" "$stage/heaptap"
  cp "$built/dist/heaptap" "$stage/heaptap/heaptap"
  place_all "$stage/heaptap"
}

# target: the archive for this system.
target() {
  case $(uname -s) in
    Linux) system=unknown-linux-musl ;;
    Darwin) say universal-apple-darwin; return ;;
    *) fail "there is no archive for $(uname -s); on Windows use install.ps1, elsewhere --build" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) say "x86_64-$system" ;;
    aarch64 | arm64) say "aarch64-$system" ;;
    *) fail "there is no archive for $(uname -m); use --build in a checkout" ;;
  esac
}

# fetch NAME: a file of the release, into the stage.
fetch() {
  case $base in
    https://* | http://*)
      if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --retry 3 --output "$stage/$1" "$base/$1"
      elif command -v wget >/dev/null 2>&1; then
        wget -q -O "$stage/$1" "$base/$1"
      else
        fail "curl or wget is needed"
      fi ;;
    *)
      [ -f "${base#file://}/$1" ] || fail "$base has no $1: --from names a directory or an address with the files of a release"
      cp "${base#file://}/$1" "$stage/$1" ;;
  esac || fail "cannot get $base/$1"
}

sha256() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum "$1"
  elif command -v shasum >/dev/null 2>&1; then shasum -a 256 "$1"
  else openssl dgst -sha256 -r "$1"
  fi | cut -d ' ' -f 1
}

download() {
  target=$(target)
  case $address in
    *'{version}'*)
      version=${version:-$released}
      [ -n "$version" ] || usage "$address needs --version"
      base=${address%%'{version}'*}$version${address#*'{version}'} ;;
    *) base=$address ;;
  esac
  base=${base%/}
  fetch SHA256SUMS
  # Its lines are a checksum, two spaces and a name.
  archive=$(sed -n 's/^[0-9a-f]\{64\}  \(heaptap-[0-9A-Za-z.-]*-'"$target"'\.tar\.gz\)$/\1/p' "$stage/SHA256SUMS")
  if [ -n "$version" ]; then
    archive=$(printf '%s\n' "$archive" | grep -Fx "heaptap-$version-$target.tar.gz" || true)
  fi
  case $archive in
    '') fail "$base has no archive of heaptap $version for $target" ;;
    *"
"*) fail "$base has several versions; choose one with --version" ;;
  esac
  fetch "$archive"
  expected=$(grep -F "  $archive" "$stage/SHA256SUMS" | cut -d ' ' -f 1)
  actual=$(sha256 "$stage/$archive")
  [ "$actual" = "$expected" ] ||
    fail "$archive is damaged or was changed: its SHA-256 is $actual, SHA256SUMS has $expected. Nothing was installed"
  mkdir "$stage/archive"
  tar -xzf "$stage/$archive" -C "$stage/archive"
  folder=$stage/archive/${archive%.tar.gz}
  "$folder/heaptap" --version >/dev/null || fail "the program of $archive does not run here"
  place_all "$folder"
}

if [ "$action" = uninstall ]; then uninstall; exit 0; fi
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
trap 'exit 130' INT TERM
if [ "$action" = build ]; then
  build
elif [ -n "$address" ]; then
  download
elif [ -n "$version" ]; then
  usage "--version needs --from, or install.sh of a release"
else
  build
fi
