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
    let own = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    elevates(metadata.mode(), (metadata.uid(), metadata.gid()), own)
}

/// `owner` and `own` are a user and a group.
#[cfg(unix)]
fn elevates(mode: u32, owner: (u32, u32), own: (u32, u32)) -> bool {
    let user = mode & 0o4000 != 0 && owner.0 != own.0;
    // Without the right to execute, the group bit means something else.
    let group = mode & 0o2010 == 0o2010 && owner.1 != own.1;
    user || group
}

/// Returns whether the program would run as another user or group.
#[cfg(not(unix))]
pub(super) fn changes_user(_: &Metadata) -> bool {
    false
}

/// Returns whether files can be created in the directory.
#[cfg(unix)]
pub(super) fn is_writable(directory: &std::path::Path) -> bool {
    rustix::fs::access(
        directory,
        rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
    )
    .is_ok()
}

/// Returns whether files can be created in the directory.
#[cfg(not(unix))]
pub(super) fn is_writable(_: &std::path::Path) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_a_set_id_program_of_another_owner_changes_the_user() {
        let (mine, root) = ((1000, 1000), (0, 0));
        assert!(elevates(0o104_755, root, mine));
        assert!(elevates(0o102_755, root, mine));
        assert!(!elevates(0o104_755, mine, mine));
        assert!(!elevates(0o100_755, root, mine));
        assert!(
            !elevates(0o102_745, root, mine),
            "a locked file, not a program"
        );
    }
}
