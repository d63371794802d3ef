//! Whether a closed terminal ends this process. Windows does not let a program ask.

/// Returns whether SIGHUP is ignored, as `nohup` starts a program that outlives its terminal. After a
/// handler is registered, it is not.
pub fn is_ignored() -> bool {
    // SAFETY: without a new action, the call only writes the current one, for which zeros are valid.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}
