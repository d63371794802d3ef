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
    /// A file operation failed.
    Failed(Errno),
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

/// Arguments of a program: single-letter flags with their values, and the rest.
#[derive(Default)]
pub(crate) struct Arguments {
    flags: Vec<(char, Option<String>)>,
    pub(crate) rest: Vec<String>,
}

impl Arguments {
    pub(crate) fn has(&self, letter: char) -> bool {
        self.flags.iter().any(|(flag, _)| *flag == letter)
    }

    /// Returns the value of a flag.
    pub(crate) fn value(&self, letter: char) -> Option<&str> {
        let flag = self.flags.iter().find(|(flag, _)| *flag == letter)?;
        flag.1.as_deref()
    }

    /// Splits arguments as `getopt` does: a letter of `known` before a colon has a value. Returns a
    /// letter that is not known as an error.
    fn split(args: &[String], known: &str) -> Result<Arguments, char> {
        let mut split = Arguments::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if arg == "--" {
                split.rest.extend(args.cloned());
                break;
            }
            if !arg.starts_with('-') || arg.len() == 1 || arg.starts_with("--") {
                split.rest.push(arg.clone());
                continue;
            }
            for (at, letter) in arg.char_indices().skip(1) {
                let found = known.split_once(letter).filter(|_| letter != ':');
                let (_, after) = found.ok_or(letter)?;
                if !after.starts_with(':') {
                    split.flags.push((letter, None));
                    continue;
                }
                let inline = &arg[at + letter.len_utf8()..];
                let value = match inline.is_empty() {
                    true => args.next().cloned(),
                    false => Some(inline.to_owned()),
                };
                split.flags.push((letter, value));
                break;
            }
        }
        Ok(split)
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
        Ok(status) | Err(Halt::Exit(status)) => Ok(status),
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
                    complain(self, &text, 1).map_or_else(Halt::Stop, Halt::Exit)
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

    /// Prints to stdout and ends with 0.
    pub(crate) fn answer(&self, text: &str) -> Done {
        self.out(text)?;
        Ok(0)
    }

    /// Prints an error and ends with this status.
    pub(crate) fn refuse(&self, status: u8, text: &str) -> Done {
        self.err(text)?;
        Ok(status)
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

    /// Splits these arguments into flags and the rest. A flag that is not `known` ends the program: a
    /// phone that ignored it would give a wrong answer.
    pub(crate) fn flags_of(&self, args: &[String], known: &str) -> Result<Arguments, Halt> {
        Arguments::split(args, known).or_else(|letter| {
            self.err(&format!("{}: Unknown option '{letter}'\n", self.name()))?;
            Err(Halt::Exit(1))
        })
    }

    /// As [`Cmd::flags_of`], of all arguments.
    pub(crate) fn flags(&self, known: &str) -> Result<Arguments, Halt> {
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
