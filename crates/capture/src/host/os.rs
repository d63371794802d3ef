//! Permissions of files, which differ between systems.

use std::fs::Metadata;

/// Returns whether the file may be executed.
#[cfg(unix)]
pub(super) fn is_executable(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

/// Returns whether the file may be executed.
#[cfg(not(unix))]
pub(super) fn is_executable(metadata: &Metadata) -> bool {
    metadata.is_file()
}

/// Returns whether the program would run as another user or group. The dynamic linker then ignores
/// preloaded libraries outside of the system's directories.
#[cfg(unix)]
pub(super) fn changes_user(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let mode = metadata.mode();
    let user = mode & 0o4000 != 0 && metadata.uid() != rustix::process::geteuid().as_raw();
    let group = mode & 0o2010 == 0o2010 && metadata.gid() != rustix::process::getegid().as_raw();
    user || group
}

/// Returns whether the program would run as another user or group.
#[cfg(not(unix))]
pub(super) fn changes_user(_: &Metadata) -> bool {
    false
}

/// Returns whether files can be created in the directory.
#[cfg(unix)]
pub(super) fn is_writable(folder: &std::path::Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
}

/// Returns whether files can be created in the directory.
#[cfg(not(unix))]
pub(super) fn is_writable(_: &std::path::Path) -> bool {
    true
}
