#!/usr/bin/env bash
# Installs a .deb in a clean root of Debian, runs the demo and removes it: packaging/test_deb.sh DEB
# Needs Debian or Ubuntu and root. HEAPTAP_DEB_SUITE is the suite (default bookworm).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
given=$(realpath "${1:?a .deb}")
place=${HEAPTAP_DEB_DIR:-$here/../target/deb-root}
suite=${HEAPTAP_DEB_SUITE:-bookworm}
. "$here/../tests/bench/debian.sh"

mkdir -p "$place"
place=$(cd "$place" && pwd)
root=$place/root
# dpkg, what it needs, and the packages that every Debian has.
debian_fetch "$place" "$suite" dpkg libc6 libc-bin coreutils dash bash tar sed grep diffutils findutils perl-base debconf ||
  { echo "test_deb.sh: Debian's packages could not be fetched" >&2; exit 1; }
rm -rf "$root"
debian_unpack "$place" "$root"
ln -sfn dash "$root/usr/bin/sh"
mkdir -p "$root"/{proc,dev,tmp,root,etc,var/lib/dpkg/info,var/lib/dpkg/updates,var/log}
: > "$root/var/lib/dpkg/status"
: > "$root/var/lib/dpkg/available"
# dpkg knows the packages that were unpacked, so that dependencies are checked.
for package in "$place"/apt/cache/archives/*.deb; do
  dpkg-deb --field "$package" | sed '/^Package:/a Status: install ok installed' >> "$root/var/lib/dpkg/status"
  echo >> "$root/var/lib/dpkg/status"
  name=$(dpkg-deb --field "$package" Package)
  : > "$root/var/lib/dpkg/info/$name.list"
  : > "$root/var/lib/dpkg/info/$name:$(dpkg --print-architecture).list"
done
cp "$given" "$root/tmp/heaptap.deb"

unshare --mount --pid --fork --kill-child --propagation private bash -c '
  set -eu
  root=$1
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  exec env -i PATH=/usr/bin:/usr/sbin:/bin:/sbin HOME=/root TERM=dumb chroot "$root" bash -euc "
    cd /
    list() { find / -xdev \\( -path /proc -o -path /dev -o -path /tmp -o -path /var/lib/dpkg -o -path /var/log \\) -prune -o -print | sort; }
    # Packages of a whole Debian own these.
    touch /usr/share/doc/.keep /usr/share/man/.keep
    ldconfig
    list > /tmp/before
    dpkg --install /tmp/heaptap.deb
    list > /tmp/installed
    test -x /usr/bin/heaptap
    test -s /usr/share/man/man1/heaptap-record.1.gz
    test -s /usr/share/doc/heaptap/copyright
    test -s /usr/share/doc/heaptap/docs/guide/recording.md
    test -s /usr/share/doc/heaptap/benches/README.md
    test -s /usr/share/doc/heaptap/CONTRIBUTING.md
    test -s /usr/share/doc/heaptap/configs/peak.yaml
    cd /tmp
    HEAPTAP_STATE_DIR=/tmp/state HEAPTAP_CACHE_DIR=/tmp/cache heaptap demo -o /tmp/demo > /tmp/demo.txt
    tail -n 3 /tmp/demo.txt
    test -f /tmp/demo/report.html
    dpkg --purge heaptap
    list > /tmp/after
    diff /tmp/before /tmp/after
  "
' bash "$root"
echo "test_deb.sh: $(basename "$given") was installed, ran, and left no file"
