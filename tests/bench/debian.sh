# Unpacks packages of a Debian suite into a folder, without root's help from dpkg: no
# maintainer script runs and nothing outside the folder is written. Sourced, not run, by the
# bench and by the ports.
#
# Shell functions only; the caller sets `set -eu`.

# Leaves with "skipped": the machine cannot do this, which is no failure of heaptap.
skip() {
    echo "$(basename "$0"): skipped: $*" >&2
    exit 77
}

fail() {
    echo "$(basename "$0"): failed: $*" >&2
    exit 1
}

# debian_mirror: the mirror this machine already uses; nothing where apt has none.
debian_mirror() {
    # sed fails over each place that is missing, which says nothing of the others.
    {
        sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources
        sed -n 's/^deb  *\(\[[^]]*\] *\)\{0,1\}\([^ ]*\).*/\2/p' \
            /etc/apt/sources.list /etc/apt/sources.list.d/*.list
    } 2>/dev/null | grep -m 1 '/debian/*$' || true
}

# debian_fetch DIR SUITE PACKAGE...: downloads the packages and what they depend on (as apt
# resolves it for an empty system) into DIR/apt/cache/archives. Uses lists, cache and status of
# its own. Returns nonzero when the archive cannot be reached.
debian_fetch() {
    dir=$1 suite=$2
    shift 2
    apt=$dir/apt
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || { echo "apt knows no mirror of Debian" >&2; return 1; }
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/state" "$apt/preferences.d"
    : > "$apt/state/status"
    cat > "$apt/sources.list" <<EOF
deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main
EOF
    cat > "$apt/apt.conf" <<EOF
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "$apt/preferences.d";
Dir::State "$apt/state";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/state/status";
Dir::Cache "$apt/cache";
Dir::Cache::archives "$apt/cache/archives";
APT::Architecture "amd64";
APT::Architectures "amd64";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Dpkg::Use-Pty "0";
EOF
    (
        export APT_CONFIG="$apt/apt.conf"
        timeout -s KILL 300 apt-get -qq update &&
            timeout -s KILL 900 apt-get -qq -y install --download-only "$@"
    ) >&2
}

# debian_unpack DIR ROOT: unpacks what debian_fetch brought into a root with merged /usr.
debian_unpack() {
    mkdir -p "$2/usr/bin" "$2/usr/sbin" "$2/usr/lib" "$2/usr/lib64"
    for d in bin sbin lib lib64; do ln -sfn "usr/$d" "$2/$d"; done
    for deb in "$1"/apt/cache/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" |
            tar -x -C "$2" --keep-directory-symlink --no-same-owner \
                --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' \
                --exclude='./usr/share/locale/*' --exclude='./usr/share/info/*' ||
            return 1
    done
}
