//! Signals to a child. On Windows these are Ctrl-C and Ctrl-Break, which need a console.

#[cfg(unix)]
pub use system::hang_up;
pub use system::send;

#[cfg(unix)]
mod system {
    use rustix::process::{Pid, Signal, kill_process};

    /// Returns SIGHUP, or what ends heaptap alike if these tests run under `nohup`.
    pub fn hang_up() -> Signal {
        match heaptap_base::hangup::is_ignored() {
            true => Signal::TERM,
            false => Signal::HUP,
        }
    }

    /// Sends `INT`, `TERM`, `HUP`, `KILL`, `STOP` or `CONT` to a child of this process.
    pub fn send(child: u32, signal: &str) {
        let signal = match signal {
            "INT" => Signal::INT,
            "TERM" => Signal::TERM,
            "HUP" => hang_up(),
            "KILL" => Signal::KILL,
            "STOP" => Signal::STOP,
            "CONT" => Signal::CONT,
            other => panic!("no signal {other}"),
        };
        let pid = i32::try_from(child).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a pid"), signal).expect("our own child");
    }
}

#[cfg(windows)]
mod system {
    use std::ffi::c_void;
    use std::io::Error;

    const CTRL_C_EVENT: u32 = 0;
    const CTRL_BREAK_EVENT: u32 = 1;
    const PROCESS_TERMINATE: u32 = 1;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GenerateConsoleCtrlEvent(event: u32, group: u32) -> i32;
        fn OpenProcess(access: u32, inherit: i32, pid: u32) -> *mut c_void;
        fn TerminateProcess(process: *mut c_void, code: u32) -> i32;
        fn CloseHandle(handle: *mut c_void) -> i32;
    }

    /// Sends `INT`, `TERM`, `HUP` or `KILL` to a child of this process that leads a group.
    pub fn send(child: u32, signal: &str) {
        let sent = match signal {
            "INT" => key(CTRL_C_EVENT, child),
            // wine 8 has no Ctrl-Break.
            "TERM" | "HUP" => key(CTRL_BREAK_EVENT, child) || key(CTRL_C_EVENT, child),
            "KILL" => terminate(child),
            other => panic!("no signal {other}"),
        };
        assert!(sent, "{signal} to {child}: {}", Error::last_os_error());
    }

    fn key(event: u32, group: u32) -> bool {
        // SAFETY: takes two numbers.
        unsafe { GenerateConsoleCtrlEvent(event, group) != 0 }
    }

    fn terminate(child: u32) -> bool {
        // SAFETY: the handle is checked, used, and closed once.
        unsafe {
            let process = OpenProcess(PROCESS_TERMINATE, 0, child);
            if process.is_null() {
                return false;
            }
            let terminated = TerminateProcess(process, 137) != 0;
            CloseHandle(process);
            terminated
        }
    }
}
