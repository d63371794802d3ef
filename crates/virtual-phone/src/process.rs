//! The phone's processes: the output of `ps`, signal permissions, and the effects of signals.

use std::collections::{BTreeMap, BTreeSet};

use super::clock::BootNs;

/// A process ID on the phone.
pub(crate) type Pid = u32;

/// UID of the processes that adb starts without root.
pub(crate) const SHELL: u32 = 2000;
pub(crate) const ROOT: u32 = 0;
/// UID of perfetto's daemons.
pub(crate) const NOBODY: u32 = 9999;

/// Reason why a command stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The process was ended by this signal.
    Killed(u8),
    /// A caught signal is pending.
    Signal,
}

impl Stop {
    /// Returns the exit status of a process that stopped so.
    pub(crate) fn status(self) -> u8 {
        match self {
            Stop::Killed(signal) => 128 + signal,
            Stop::Signal => 1,
        }
    }
}

/// Returns the name of a UID as Android's libc returns it.
pub(crate) fn user_name(uid: u32) -> String {
    let (user, appid) = (uid / 100_000, uid % 100_000);
    match uid {
        0 => "root".to_owned(),
        1000 => "system".to_owned(),
        1001 => "radio".to_owned(),
        1010 => "wifi".to_owned(),
        1013 => "media".to_owned(),
        1015 => "sdcard_rw".to_owned(),
        1017 => "keystore".to_owned(),
        1036 => "logd".to_owned(),
        1040 => "mediaex".to_owned(),
        1041 => "audioserver".to_owned(),
        1046 => "mediacodec".to_owned(),
        1047 => "cameraserver".to_owned(),
        1053 => "webview_zygote".to_owned(),
        1066 => "statsd".to_owned(),
        1069 => "lmkd".to_owned(),
        2000 => "shell".to_owned(),
        9999 => "nobody".to_owned(),
        _ if appid >= 90_000 => format!("u{user}_i{}", appid - 90_000),
        _ if appid >= 10_000 => format!("u{user}_a{}", appid - 10_000),
        _ => uid.to_string(),
    }
}

/// Signals with a name.
const SIGNALS: [(u8, &str); 17] = [
    (SIGHUP, "HUP"),
    (SIGINT, "INT"),
    (SIGQUIT, "QUIT"),
    (4, "ILL"),
    (6, "ABRT"),
    (8, "FPE"),
    (SIGKILL, "KILL"),
    (SIGUSR1, "USR1"),
    (SIGSEGV, "SEGV"),
    (12, "USR2"),
    (SIGPIPE, "PIPE"),
    (14, "ALRM"),
    (SIGTERM, "TERM"),
    (SIGCHLD, "CHLD"),
    (SIGCONT, "CONT"),
    (SIGSTOP, "STOP"),
    (20, "TSTP"),
];

pub(crate) const SIGHUP: u8 = 1;
pub(crate) const SIGINT: u8 = 2;
pub(crate) const SIGQUIT: u8 = 3;
pub(crate) const SIGKILL: u8 = 9;
pub(crate) const SIGUSR1: u8 = 10;
pub(crate) const SIGSEGV: u8 = 11;
pub(crate) const SIGPIPE: u8 = 13;
pub(crate) const SIGTERM: u8 = 15;
const SIGCHLD: u8 = 17;
pub(crate) const SIGCONT: u8 = 18;
pub(crate) const SIGSTOP: u8 = 19;

/// Parses a signal given as `9`, `KILL` or `SIGKILL`.
pub(crate) fn signal_number(name: &str) -> Option<u8> {
    if let Ok(number) = name.parse::<u8>() {
        return (number < 65).then_some(number);
    }
    let upper = name.to_ascii_uppercase();
    let plain = upper.strip_prefix("SIG").unwrap_or(&upper);
    SIGNALS.iter().find(|(_, n)| *n == plain).map(|(n, _)| *n)
}

/// Role of a process in Android.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// A kernel thread, without a command line.
    Kernel,
    /// A native daemon or command.
    Native,
    Zygote,
    SystemServer,
    /// A process of an app's package.
    App {
        package: String,
        user: u32,
    },
    /// A program started over adb; a thread of the host runs it.
    Command,
}

#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) ppid: Pid,
    pub(crate) uid: u32,
    pub(crate) argv: Vec<String>,
    /// Environment of its program.
    pub(crate) env: BTreeMap<String, String>,
    /// SELinux domain, such as `untrusted_app`.
    pub(crate) domain: String,
    pub(crate) role: Role,
    pub(crate) started: BootNs,
    pub(crate) bits_32: bool,
    /// Whether the system froze it: none of its code runs.
    pub(crate) frozen: bool,
    /// Whether it does not allocate.
    pub(crate) idle: bool,
    pub(crate) oom_score_adj: i32,
    pub(crate) stopped: bool,
    pub(crate) caught: BTreeSet<u8>,
    /// Signals in `caught` whose handler handles only one signal (SA_RESETHAND).
    pub(crate) one_shot: BTreeSet<u8>,
    pub(crate) ignored: BTreeSet<u8>,
    pub(crate) pending: Vec<u8>,
    /// Whether it is writing to its file. A fatal signal ends it only once that write is over, as
    /// the kernel does with a process in an uninterruptible write.
    pub(crate) writing: bool,
    /// A fatal signal that waits for the end of the write.
    pub(crate) fatal: Option<u8>,
}

impl Process {
    /// Creates a running process.
    pub(crate) fn new(
        (pid, ppid): (Pid, Pid),
        uid: u32,
        argv: Vec<String>,
        domain: &str,
        role: Role,
        started: BootNs,
    ) -> Process {
        Process {
            pid,
            ppid,
            uid,
            argv,
            env: BTreeMap::new(),
            domain: domain.to_owned(),
            role,
            started,
            bits_32: false,
            frozen: false,
            idle: false,
            oom_score_adj: -1000,
            stopped: false,
            caught: BTreeSet::new(),
            one_shot: BTreeSet::new(),
            ignored: BTreeSet::new(),
            pending: Vec::new(),
            writing: false,
            fatal: None,
        }
    }

    /// Creates a running app in the foreground.
    #[cfg(test)]
    pub(crate) fn for_tests(name: &str, role: Role, started: BootNs) -> Process {
        let argv = vec![name.to_owned()];
        Process {
            oom_score_adj: 0,
            ..Process::new((6_201, 811), 10_234, argv, "untrusted_app", role, started)
        }
    }

    /// Returns package and user of an app's process.
    pub(crate) fn app(&self) -> Option<(&str, u32)> {
        match &self.role {
            Role::App { package, user } => Some((package, *user)),
            _ => None,
        }
    }

    /// Returns whether it is a process of an app of this user, or of any.
    pub(crate) fn is_app_of(&self, user: Option<u32>) -> bool {
        self.app()
            .is_some_and(|(_, u)| user.is_none_or(|user| user == u))
    }

    /// Returns whether it is a process of this package.
    pub(crate) fn is_of(&self, package: &str) -> bool {
        self.app().is_some_and(|(name, _)| name == package)
    }

    /// Returns the name in `ps`: argv0, or the thread's name in brackets.
    pub(crate) fn name(&self) -> &str {
        self.argv.first().map_or("", String::as_str)
    }

    /// Returns the last part of argv0.
    pub(crate) fn base_name(&self) -> &str {
        self.name().rsplit('/').next().unwrap_or_default()
    }

    /// Returns the kernel's 15-byte name: the end of an app's name, the start of a program's.
    pub(crate) fn comm(&self) -> String {
        match self.role {
            Role::App { .. } => {
                let skip = self.name().chars().count().saturating_sub(15);
                self.name().chars().skip(skip).collect()
            }
            _ => self.base_name().chars().take(15).collect(),
        }
    }

    /// Returns the state letter, as in /proc/PID/stat.
    pub(crate) fn state(&self) -> char {
        match self.role {
            _ if self.stopped => 'T',
            Role::Kernel => 'I',
            _ => 'S',
        }
    }

    /// Returns the command line with its NUL terminators; empty for kernel threads.
    pub(crate) fn cmdline(&self) -> String {
        let argv = self.argv.iter().filter(|_| self.role != Role::Kernel);
        argv.map(|arg| format!("{arg}\0")).collect()
    }

    /// Returns the environment with its NUL terminators.
    pub(crate) fn environ(&self) -> String {
        let variables = self.env.iter();
        let lines = variables.map(|(name, value)| format!("{name}={value}\0"));
        lines.collect()
    }
}

/// Result of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    NoProcess,
    /// Not allowed.
    Denied,
    /// The process exists; the signal was ignored, caught, or stopped or continued it.
    Alive,
    /// The process ended.
    Ended,
}

/// All processes of a phone, and the exit statuses that other processes can wait for.
#[derive(Default)]
pub(crate) struct Processes {
    table: BTreeMap<Pid, Process>,
    statuses: BTreeMap<Pid, u8>,
    next: Pid,
    /// Counter of changes for processes that watch others.
    changes: u64,
}

impl Processes {
    /// Allocates an unused PID. PIDs count up and continue at 300 after 32767.
    pub(crate) fn allocate(&mut self) -> Pid {
        loop {
            self.next = if self.next >= 32_767 {
                300
            } else {
                self.next + 1
            };
            if !self.table.contains_key(&self.next) {
                self.statuses.remove(&self.next);
                return self.next;
            }
        }
    }

    /// Makes the next PID larger than `pid`.
    pub(crate) fn skip_to(&mut self, pid: Pid) {
        self.next = self.next.max(pid);
    }

    pub(crate) fn insert(&mut self, process: Process) {
        self.changes += 1;
        self.table.insert(process.pid, process);
    }

    pub(crate) fn get(&self, pid: Pid) -> Option<&Process> {
        self.table.get(&pid)
    }

    pub(crate) fn get_mut(&mut self, pid: Pid) -> Option<&mut Process> {
        self.changes += 1;
        self.table.get_mut(&pid)
    }

    /// Returns the first process with this name.
    pub(crate) fn pid_of(&self, name: &str) -> Option<Pid> {
        let mut all = self.table.values();
        all.find(|p| p.name() == name).map(|p| p.pid)
    }

    /// Returns copies of some processes.
    pub(crate) fn select(&self, is_wanted: impl Fn(&Process) -> bool) -> Vec<Process> {
        let wanted = self.table.values().filter(|process| is_wanted(process));
        wanted.cloned().collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Process> {
        self.table.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Process> {
        self.changes += 1;
        self.table.values_mut()
    }

    /// Removes a process; init adopts its children.
    pub(crate) fn end(&mut self, pid: Pid, status: u8) {
        if self.table.remove(&pid).is_some() {
            self.changes += 1;
            self.statuses.insert(pid, status);
            for p in self.table.values_mut().filter(|p| p.ppid == pid) {
                p.ppid = 1;
            }
        }
    }

    /// Removes all processes and exit statuses.
    pub(crate) fn clear(&mut self) {
        *self = Processes {
            changes: self.changes + 1,
            ..Processes::default()
        };
    }

    /// Returns the counter of changes.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the exit status of an ended process.
    pub(crate) fn status(&self, pid: Pid) -> Option<u8> {
        self.statuses.get(&pid).copied()
    }

    /// Sends a signal as `sender` (a UID); SELinux must have allowed it already.
    pub(crate) fn signal(&mut self, sender: u32, pid: Pid, signal: u8) -> Delivered {
        let Some(process) = self.table.get_mut(&pid) else {
            return Delivered::NoProcess;
        };
        if sender != ROOT && sender != process.uid {
            return Delivered::Denied;
        }
        if signal == 0 || process.role == Role::Kernel {
            return Delivered::Alive;
        }
        match signal {
            SIGKILL => {}
            SIGSTOP => {
                process.stopped = true;
                return Delivered::Alive;
            }
            SIGCONT => {
                process.stopped = false;
                return Delivered::Alive;
            }
            s if process.caught.contains(&s) => {
                process.pending.push(s);
                if process.one_shot.contains(&s) {
                    process.caught.remove(&s);
                }
                return Delivered::Alive;
            }
            s if process.ignored.contains(&s) || s == SIGCHLD => return Delivered::Alive,
            _ => {}
        }
        if process.writing {
            process.fatal = Some(signal);
            return Delivered::Alive;
        }
        self.end(pid, 128 + signal);
        Delivered::Ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        assert_eq!(signal_number("9"), Some(9));
        assert_eq!(signal_number("SIGTERM"), Some(15));
        assert_eq!(signal_number("usr1"), Some(10));
        assert_eq!(signal_number("NOPE"), None);
    }
}
