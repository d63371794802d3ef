//! Whether the terminal on stderr can draw a line again. A console of Windows can after a program
//! asks for escape sequences; older ones cannot, and begin a new line after the last column.

/// Returns whether a status line can be drawn again on stderr, which is a terminal.
#[cfg(not(windows))]
pub(super) fn is_possible() -> bool {
    true
}

/// Returns whether a status line can be drawn again on stderr, which is a terminal.
#[cfg(windows)]
pub(super) fn is_possible() -> bool {
    use std::ffi::c_void;
    use std::os::windows::io::AsRawHandle as _;

    /// `ENABLE_VIRTUAL_TERMINAL_PROCESSING`
    const SEQUENCES: u32 = 4;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GetConsoleMode(console: *mut c_void, mode: *mut u32) -> i32;
        fn SetConsoleMode(console: *mut c_void, mode: u32) -> i32;
    }

    let stderr = std::io::stderr().as_raw_handle();
    let mut mode = 0;
    // SAFETY: the handle is that of this process, and `mode` is ours.
    let is_console = unsafe { GetConsoleMode(stderr, &raw mut mode) } != 0;
    // A terminal that is no console, such as that of Git for Windows, has sequences.
    // SAFETY: as above.
    !is_console || unsafe { SetConsoleMode(stderr, mode | SEQUENCES) } != 0
}
