//! A program on the phone: its environment, how it finds and runs other programs, and how it ends.
//! `commands` implements the programs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::access::Cred;
use super::clock::MILLI;
use super::fs::Errno;
use super::io::{Fd, Fds, WriteError};
use super::kernel::Kernel;
use super::process::{Pid, SIGPIPE, Stop};

/// Stack size of a thread that runs commands: nested shells need a deep stack.
pub(crate) const STACK: usize = 16 << 20;

/// Programs that ask a service of Android.
const SERVICES: [&str; 9] = [
    "am", "cmd", "dumpsys", "input", "monkey", "pm", "settings", "svc", "wm",
];

/// A program to run: its process, arguments and open files.
#[derive(Clone)]
pub(crate) struct Cmd {
    pub(crate) kernel: Arc<Kernel>,
    /// Programs that it can run.
    pub(crate) programs: Programs,
    pub(crate) pid: Pid,
    pub(crate) cred: Cred,
    pub(crate) argv: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: String,
    pub(crate) fds: Fds,
    /// Number of enclosing shells.
    pub(crate) depth: usize,
}

/// Reason why a program ends early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Halt {
    /// It prints this to stderr and ends with this status.
    Refused(u8, String),
    Stop(Stop),
    /// A file operation failed.
    Failed(Errno),
}

impl Halt {
    /// Returns the end of a program that refuses its arguments; `text` has no newline at its end.
    pub(crate) fn refused(status: u8, text: impl std::fmt::Display) -> Halt {
        Halt::Refused(status, format!("{text}\n"))
    }
}

/// Refuses the arguments of a program, as [`Halt::refused`].
pub(crate) fn refuse<T>(status: u8, text: impl std::fmt::Display) -> Result<T, Halt> {
    Err(Halt::refused(status, text))
}

impl From<Errno> for Halt {
    fn from(errno: Errno) -> Halt {
        Halt::Failed(errno)
    }
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Halt {
        Halt::Stop(stop)
    }
}

/// Exit status, or the reason for an early end.
pub(crate) type Done = Result<u8, Halt>;

/// Arguments of a program: options with their values, and the rest.
#[derive(Default)]
pub(crate) struct Arguments {
    options: Vec<(String, String)>,
    pub(crate) rest: Vec<String>,
}

/// Error in the arguments of a program: the option.
pub(crate) enum BadOption {
    Unknown(String),
    NoValue(String),
}

impl Arguments {
    /// Splits arguments. `known` lists the options; one before a colon has a value.
    pub(crate) fn split(args: &[String], known: &str) -> Result<Arguments, BadOption> {
        let has_value = |option: &str| {
            let mut known = known
                .split_whitespace()
                .map(|k| (k.trim_end_matches(':'), k));
            known.find(|(k, _)| *k == option).map(|(k, word)| k != word)
        };
        let mut split = Arguments::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let (option, inline) = match arg.split_once('=') {
                Some((option, value)) if arg.starts_with("--") => (option, Some(value.to_owned())),
                _ => (arg.as_str(), None),
            };
            let value = match has_value(option) {
                _ if arg == "--" => {
                    split.rest.extend(args.cloned());
                    break;
                }
                Some(true) => {
                    let value = inline.or_else(|| args.next().cloned());
                    value.ok_or_else(|| BadOption::NoValue(option.to_owned()))?
                }
                Some(false) if inline.is_none() => String::new(),
                _ if arg.starts_with('-') && arg.len() > 1 => {
                    return Err(BadOption::Unknown(arg.clone()));
                }
                _ => {
                    split.rest.push(arg.clone());
                    continue;
                }
            };
            split.options.push((option.to_owned(), value));
        }
        Ok(split)
    }

    pub(crate) fn has(&self, option: &str) -> bool {
        self.values(option).next().is_some()
    }

    /// Returns the values of an option, which can be repeated.
    pub(crate) fn values(&self, option: &str) -> impl Iterator<Item = &str> {
        let those = self
            .options
            .iter()
            .filter(move |(known, _)| known == option);
        those.map(|(_, value)| value.as_str())
    }

    /// Returns the value of an option, the last one if it is repeated.
    pub(crate) fn value(&self, option: &str) -> Option<&str> {
        self.values(option).last()
    }

    pub(crate) fn number(&self, option: &str) -> Option<u64> {
        self.value(option)?.parse().ok()
    }
}

/// Implementation of a program.
pub(crate) type Program = fn(&mut Cmd) -> Done;

/// The programs of a phone by name.
#[derive(Clone)]
pub(crate) struct Programs(Arc<BTreeMap<&'static str, Program>>);

impl Programs {
    pub(crate) fn new(all: impl Iterator<Item = (&'static str, Program)>) -> Programs {
        Programs(Arc::new(all.collect()))
    }

    /// Returns the names of the programs.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.0.keys().copied().collect()
    }

    fn by_name(&self, name: &str) -> Option<Program> {
        self.0.get(name).copied()
    }
}

/// Runs commands on a new thread; returns false if the host cannot create one.
pub(crate) fn on_thread(kernel: &Arc<Kernel>, run: impl FnOnce() + Send + 'static) -> bool {
    let name = format!("phone-{}", kernel.serial);
    std::thread::Builder::new()
        .name(name)
        .stack_size(STACK)
        .spawn(run)
        .is_ok()
}

/// Runs commands as the process `pid` on a new thread, and ends it with their status. Returns false
/// if the host cannot create the thread; then the process ends with 1.
pub(crate) fn run_as(
    kernel: &Arc<Kernel>,
    pid: Pid,
    run: impl FnOnce() -> u8 + Send + 'static,
) -> bool {
    let running = kernel.clone();
    let started = on_thread(kernel, move || {
        let status = run();
        running.end_process(pid, status);
    });
    if !started {
        kernel.end_process(pid, 1);
    }
    started
}

/// Runs a program to its end.
pub(crate) fn run(cmd: &mut Cmd) -> Result<u8, Stop> {
    cmd.kernel.check(cmd.pid)?;
    let Some(argv0) = cmd.argv.first().cloned() else {
        return Ok(0);
    };
    let name = match argv0.rsplit_once('/') {
        Some((dir, name)) if dir == "/system/bin" || dir == "/bin" || dir == "/vendor/bin" => name,
        // No other file is a program.
        Some(_) => "",
        None => &argv0,
    };
    let Some(program) = cmd.programs.by_name(name) else {
        let text = format!("sh: {argv0}: inaccessible or not found\n");
        return complain(cmd, &text, 127);
    };
    if SERVICES.contains(&name) && !cmd.kernel.is_up() {
        return complain(cmd, &format!("cmd: Can't find service: {name}\n"), 20);
    }
    if let Some(process) = cmd.kernel.state().processes.get_mut(cmd.pid) {
        process.env.clone_from(&cmd.env);
    }
    match program(cmd) {
        Ok(status) => Ok(status),
        Err(Halt::Refused(status, text)) => complain(cmd, &text, status),
        Err(Halt::Failed(_)) => Ok(1),
        Err(Halt::Stop(stop)) => Err(stop),
    }
}

fn complain(cmd: &Cmd, text: &str, status: u8) -> Result<u8, Stop> {
    if let Some(fd) = cmd.fds.get(2) {
        // The message that stderr is not writable could not be written either.
        let _ = fd.write(&cmd.kernel, cmd.pid, text.as_bytes());
    }
    Ok(status)
}

impl Cmd {
    /// Returns the arguments without the name.
    pub(crate) fn args(&self) -> Vec<String> {
        self.argv[1..].to_vec()
    }

    /// Returns the name that the program was called by.
    pub(crate) fn name(&self) -> String {
        let argv0 = self.argv.first().map_or("", String::as_str);
        argv0.rsplit('/').next().unwrap_or(argv0).to_owned()
    }

    /// Waits some milliseconds on the phone's clock.
    pub(crate) fn wait(&self, ms: u64) -> Result<(), Halt> {
        let until = self.kernel.clock.boot() + ms * MILLI;
        Ok(self.kernel.sleep(self.pid, until)?)
    }

    fn write(&self, fd: u32, bytes: &[u8]) -> Result<(), Halt> {
        let full = || {
            let text = format!("{}: write: {}", self.name(), Errno::NoSpace.text());
            Halt::refused(1, text)
        };
        let fd = self.fds.get(fd).ok_or_else(full)?;
        fd.write(&self.kernel, self.pid, bytes)
            .map_err(|error| match error {
                WriteError::Broken => Halt::Stop(Stop::Killed(SIGPIPE)),
                WriteError::Stopped(stop) => Halt::Stop(stop),
                WriteError::Full | WriteError::NotWritable => full(),
            })
    }

    /// Prints to stdout.
    pub(crate) fn out(&self, text: &str) -> Result<(), Halt> {
        self.write(1, text.as_bytes())
    }

    /// Writes bytes to stdout.
    pub(crate) fn out_bytes(&self, bytes: &[u8]) -> Result<(), Halt> {
        self.write(1, bytes)
    }

    /// Prints to stderr.
    pub(crate) fn err(&self, text: &str) -> Result<(), Halt> {
        self.write(2, text.as_bytes())
    }

    /// Prints to stdout and ends with this status.
    pub(crate) fn end(&self, status: u8, text: &str) -> Done {
        self.out(text)?;
        Ok(status)
    }

    /// Prints to stdout and ends with 0.
    pub(crate) fn answer(&self, text: &str) -> Done {
        self.end(0, text)
    }

    /// Refuses what the phone's version of this program lacks.
    pub(crate) fn only<T>(&self, what: &str) -> Result<T, Halt> {
        let name = self.name();
        refuse(
            1,
            format!("{name}: only {what} is there on this virtual phone"),
        )
    }

    /// Prints `name: what: why` to stderr.
    pub(crate) fn failed(&self, what: &str, errno: Errno) -> Result<(), Halt> {
        self.err(&format!("{}: {what}: {}\n", self.name(), errno.text()))
    }

    /// Returns stdin.
    pub(crate) fn stdin(&self) -> Fd {
        self.fds.get(0).cloned().unwrap_or(Fd::Null)
    }

    /// Returns all bytes of a file, or of stdin for `-`.
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, Halt> {
        let mut all = Vec::new();
        if path != "-" {
            return Ok(self.kernel.read_all(&self.cred, &self.cwd, path)?);
        }
        self.each_block(&self.stdin(), |block| {
            all.extend_from_slice(block);
            Ok(())
        })?;
        Ok(all)
    }

    /// Copies up to `limit` bytes of an input to stdout; returns their number.
    pub(crate) fn copy(&self, input: &Fd, limit: u64) -> Result<u64, Halt> {
        let mut left = limit;
        while left > 0 {
            let block = input.read(&self.kernel, self.pid, left.min(64 << 10) as usize)?;
            if block.is_empty() {
                break;
            }
            left -= block.len() as u64;
            self.out_bytes(&block)?;
        }
        Ok(limit - left)
    }

    /// Reads every block of an input to its end.
    pub(crate) fn each_block(
        &self,
        input: &Fd,
        mut take: impl FnMut(&[u8]) -> Result<(), Halt>,
    ) -> Result<(), Halt> {
        loop {
            let block = input.read(&self.kernel, self.pid, 64 << 10)?;
            if block.is_empty() {
                return Ok(());
            }
            take(&block)?;
        }
    }

    /// Acts on each path; reports those that fail. The status is 1 if one failed.
    pub(crate) fn each_path(
        &self,
        paths: &[String],
        mut act: impl FnMut(&str) -> Result<(), Halt>,
    ) -> Done {
        let mut status = 0;
        for path in paths {
            match act(path) {
                Err(Halt::Failed(errno)) => {
                    self.failed(path, errno)?;
                    status = 1;
                }
                other => other?,
            }
        }
        Ok(status)
    }

    /// Returns the contents of the named files, or of stdin if none are named. Reports failures and
    /// continues; the second value is whether one failed.
    pub(crate) fn inputs(&self, paths: &[String]) -> Result<(Vec<Vec<u8>>, bool), Halt> {
        if paths.is_empty() {
            return Ok((vec![self.read("-")?], false));
        }
        let mut all = Vec::new();
        let status = self.each_path(paths, |path| {
            all.push(self.read(path)?);
            Ok(())
        })?;
        Ok((all, status > 0))
    }

    /// Splits these arguments into options and the rest. An option that is not `known` ends the
    /// program: a phone that ignored it would give a wrong answer.
    pub(crate) fn options_of(&self, args: &[String], known: &str) -> Result<Arguments, Halt> {
        Arguments::split(args, known).map_err(|bad| {
            let text = match bad {
                BadOption::Unknown(option) => format!("unrecognized option '{option}'"),
                BadOption::NoValue(option) => format!("option requires an argument -- '{option}'"),
            };
            Halt::refused(1, format!("{}: {text}", self.name()))
        })
    }

    /// As [`Cmd::options_of`], of all arguments.
    pub(crate) fn options(&self, known: &str) -> Result<Arguments, Halt> {
        self.options_of(&self.args(), known)
    }

    /// Replaces this program with another one that inherits its files.
    pub(crate) fn exec(&mut self, argv: Vec<String>) -> Done {
        if let Some(p) = self.kernel.state().processes.get_mut(self.pid) {
            p.argv.clone_from(&argv);
        }
        self.argv = argv;
        Ok(run(self)?)
    }
}
