//! A program on the phone: its environment, how it finds and runs other programs, and how it ends.
//! `commands` implements the programs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::access::Cred;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halt {
    Exit(u8),
    Stop(Stop),
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Halt {
        Halt::Stop(stop)
    }
}

/// Exit status, or the reason for an early end.
pub(crate) type Done = Result<u8, Halt>;

/// Single-letter flags with their values.
pub(crate) type Flags = Vec<(char, Option<String>)>;

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

    /// Returns the path of a program in PATH.
    pub(crate) fn find(&self, name: &str) -> Option<String> {
        self.by_name(name).map(|_| format!("/system/bin/{name}"))
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
        return complain(
            cmd,
            &format!("sh: {argv0}: inaccessible or not found\n"),
            127,
        );
    };
    if SERVICES.contains(&name) && !cmd.kernel.is_up() {
        return complain(cmd, &format!("cmd: Can't find service: {name}\n"), 20);
    }
    if let Some(process) = cmd.kernel.state().processes.get_mut(cmd.pid) {
        process.env.clone_from(&cmd.env);
    }
    match program(cmd) {
        Ok(status) | Err(Halt::Exit(status)) => Ok(status),
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

    fn write(&self, fd: u32, bytes: &[u8]) -> Result<(), Halt> {
        let Some(fd) = self.fds.get(fd) else {
            return Err(Halt::Exit(1));
        };
        fd.write(&self.kernel, self.pid, bytes)
            .map_err(|e| match e {
                WriteError::Broken => Halt::Stop(Stop::Killed(SIGPIPE)),
                WriteError::Stopped(stop) => Halt::Stop(stop),
                WriteError::Full | WriteError::NotWritable => {
                    let text = format!("{}: write: {}\n", self.name(), Errno::NoSpace.text());
                    if let Some(err) = self.fds.get(2) {
                        // The message that stderr is not writable could not be written either.
                        let _ = err.write(&self.kernel, self.pid, text.as_bytes());
                    }
                    Halt::Exit(1)
                }
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

    /// Prints `name: what: why` to stderr.
    pub(crate) fn failed(&self, what: &str, errno: Errno) -> Result<(), Halt> {
        self.err(&format!("{}: {what}: {}\n", self.name(), errno.text()))
    }

    /// Reads all of stdin.
    pub(crate) fn stdin(&self) -> Result<Vec<u8>, Halt> {
        let mut all = Vec::new();
        self.each_block(&self.fds.get(0).cloned().unwrap_or(Fd::Null), |b| {
            all.extend_from_slice(b);
            Ok(())
        })?;
        Ok(all)
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

    /// Returns the contents of the named files, or of stdin if none are named. Reports failures and
    /// continues; the second value is whether one failed.
    pub(crate) fn inputs(&self, paths: &[String]) -> Result<(Vec<Vec<u8>>, bool), Halt> {
        if paths.is_empty() {
            return Ok((vec![self.stdin()?], false));
        }
        let mut all = Vec::new();
        let mut failed = false;
        for path in paths {
            if path == "-" {
                all.push(self.stdin()?);
                continue;
            }
            match self.kernel.read_all(&self.cred, &self.cwd, path) {
                Ok(bytes) => all.push(bytes),
                Err(errno) => {
                    self.failed(path, errno)?;
                    failed = true;
                }
            }
        }
        Ok((all, failed))
    }

    /// Splits these arguments into flags and the rest. After a flag that is not `known`, complains and
    /// returns nothing: a phone that ignored it would give a wrong answer.
    pub(crate) fn flags_of(
        &self,
        args: &[String],
        known: &str,
    ) -> Result<Option<(Flags, Vec<String>)>, Halt> {
        match split_flags(args, known) {
            Ok(split) => Ok(Some(split)),
            Err(letter) => {
                self.err(&format!("{}: Unknown option '{letter}'\n", self.name()))?;
                Ok(None)
            }
        }
    }

    /// As [`Cmd::flags_of`], of all arguments.
    pub(crate) fn flags(&self, known: &str) -> Result<Option<(Flags, Vec<String>)>, Halt> {
        self.flags_of(&self.args(), known)
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

/// Splits arguments into single-letter flags and the rest, as `getopt` does: a letter of `known` before
/// a colon has a value. Returns a letter that is not known as an error.
fn split_flags(args: &[String], known: &str) -> Result<(Flags, Vec<String>), char> {
    let mut flags = Vec::new();
    let mut rest = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--" {
            rest.extend(args.cloned());
            break;
        }
        if !arg.starts_with('-') || arg.len() == 1 || arg.starts_with("--") {
            rest.push(arg.clone());
            continue;
        }
        let letters: Vec<char> = arg.chars().skip(1).collect();
        for (i, c) in letters.iter().enumerate() {
            let (_, after) = known.split_once(*c).filter(|_| *c != ':').ok_or(*c)?;
            if !after.starts_with(':') {
                flags.push((*c, None));
                continue;
            }
            let inline: String = letters[i + 1..].iter().collect();
            let value = match inline.is_empty() {
                true => args.next().cloned(),
                false => Some(inline),
            };
            flags.push((*c, value));
            break;
        }
    }
    Ok((flags, rest))
}
