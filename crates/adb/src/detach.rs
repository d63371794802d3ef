//! Starts a program that outlives this process: without a terminal, standard streams or inherited
//! files, in its own session (on Windows: process group). Owns the differences between systems.

use std::io;
use std::process::{Child, Command, Stdio};

/// Starts `command` detached. The child is neither awaited nor killed when dropped.
pub(super) fn spawn(mut command: Command) -> io::Result<Child> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    system::spawn(command)
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::os::fd::RawFd;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    pub(super) fn spawn(mut command: Command) -> io::Result<Child> {
        let inherited = inheritable_files();
        // SAFETY: between fork and exec only setsid and fcntl are called, which POSIX allows
        // there; nothing allocates or takes a lock.
        unsafe {
            command.pre_exec(move || {
                rustix::process::setsid()?;
                for &fd in &inherited {
                    // A file that was closed after the list was made is not an error.
                    // SAFETY: only a flag is set; the number is not kept.
                    let fd = std::os::fd::BorrowedFd::borrow_raw(fd);
                    let _ = rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC);
                }
                Ok(())
            });
        }
        command.spawn()
    }

    /// Returns the open files of this process beyond the standard streams. Files that this process
    /// opened close at exec; files inherited from the parent do not.
    fn inheritable_files() -> Vec<RawFd> {
        let Ok(entries) = std::fs::read_dir("/dev/fd") else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|&fd: &RawFd| fd > 2)
            .collect()
    }
}

#[cfg(windows)]
mod system {
    use std::io;
    use std::os::windows::io::AsRawHandle;
    use std::os::windows::process::CommandExt;
    use std::process::{Child, Command};

    const DETACHED_PROCESS: u32 = 0x0000_0008;
    const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;
    const HANDLE_FLAG_INHERIT: u32 = 1;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GetHandleInformation(handle: *mut std::ffi::c_void, flags: *mut u32) -> i32;
        fn SetHandleInformation(handle: *mut std::ffi::c_void, mask: u32, flags: u32) -> i32;
    }

    pub(super) fn spawn(mut command: Command) -> io::Result<Child> {
        command.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP);
        // std lets a child inherit every inheritable handle. Our own standard streams are
        // inheritable if our parent passed pipes; then the parent would wait for the child to close
        // them.
        let streams = [
            io::stdin().as_raw_handle(),
            io::stdout().as_raw_handle(),
            io::stderr().as_raw_handle(),
        ];
        let mut restore = Vec::new();
        for handle in streams {
            let mut flags = 0;
            // SAFETY: the handles are this process's standard streams; an absent one is null
            // and refused with an error code.
            unsafe {
                if GetHandleInformation(handle, &mut flags) != 0 && flags & HANDLE_FLAG_INHERIT != 0
                {
                    SetHandleInformation(handle, HANDLE_FLAG_INHERIT, 0);
                    restore.push(handle);
                }
            }
        }
        let child = command.spawn();
        for handle in restore {
            // SAFETY: as above.
            unsafe {
                SetHandleInformation(handle, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
            }
        }
        child
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn a_detached_program_has_a_session_of_its_own_and_none_of_our_files() {
        let directory = tempfile::tempdir().unwrap();
        let seen = directory.path().join("seen");
        // A file that a careless parent left open across exec.
        let leaked = std::fs::File::open("/dev/zero").unwrap();
        rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", "readlink /proc/$$/fd/* >\"$0\"; read end"])
            .arg(&seen);
        let mut child = spawn(command).unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        // Its stdin is empty, so it ends by itself; its session exists until it is waited for.
        assert_eq!(rustix::process::getsid(Some(pid)).unwrap(), pid);
        child.wait().unwrap();
        let seen = std::fs::read_to_string(&seen).unwrap();
        assert!(seen.matches("/dev/null").count() >= 2, "{seen}");
        assert!(!seen.contains("/dev/zero"), "{seen}");
        assert!(leaked.as_raw_fd() > 2);
    }
}
