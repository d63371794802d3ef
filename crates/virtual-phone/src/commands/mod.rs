//! The phone's programs. Owns finding one by name, its surroundings and how it ends; each
//! file holds programs of one kind.

mod activity;
mod dumpheap;
mod dumpsys;
mod files;
pub(crate) mod format;
mod front;
mod input;
mod launch;
mod logcat;
mod meminfo;
mod memory;
mod packages;
mod perfetto;
mod processes;
mod procstats;
mod search;
mod storage;
mod system;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use self::files::user_name;
use super::fs::Errno;
use super::io::{Fd, Fds, Stop, WriteError};
use super::kernel::{Cred, Kernel};
use super::process::{Pid, SIGPIPE};
use super::shell::Shell;
use super::spec::PhoneSpec;

/// Stack of a thread that runs commands: shells within shells are deep.
pub(crate) const STACK: usize = 16 << 20;

/// A program that is to run: its process, arguments and open files.
pub(crate) struct Cmd {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) pid: Pid,
    pub(crate) cred: Cred,
    pub(crate) argv: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: String,
    pub(crate) fds: Fds,
    /// Shells around it.
    pub(crate) depth: usize,
}

/// Why a program ends before its last line.
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

/// Exit status, or why there is none yet.
pub(crate) type Done = Result<u8, Halt>;

type Program = fn(&mut Cmd) -> Done;

/// Programs by name.
const PROGRAMS: &[(&str, Program)] = &[
    ("am", activity::am),
    ("basename", text::basename),
    ("cat", files::cat),
    ("chmod", files::chmod),
    ("cmd", packages::cmd),
    ("cp", files::cp),
    ("cut", text::cut),
    ("date", system::date),
    ("dd", files::dd),
    ("df", storage::df),
    ("dirname", text::dirname),
    ("du", storage::du),
    ("dmabuf_dump", memory::dmabuf_dump),
    ("dumpsys", dumpsys::dumpsys),
    ("echo", text::echo),
    ("env", launch::env),
    ("expr", text::expr),
    ("false", system::no),
    ("find", storage::find),
    ("getenforce", system::getenforce),
    ("getprop", system::getprop),
    ("grep", search::grep),
    ("head", text::head),
    ("hostname", system::hostname),
    ("id", system::id),
    ("input", input::input),
    ("kill", processes::kill),
    ("killall", processes::killall),
    ("ln", files::ln),
    ("log", system::log),
    ("logcat", logcat::logcat),
    ("ls", files::ls),
    ("md5sum", text::digest),
    ("mkdir", files::mkdir),
    ("monkey", input::monkey),
    ("mv", files::mv),
    ("nohup", launch::nohup),
    ("perfetto", perfetto::perfetto),
    ("pgrep", processes::pgrep),
    ("pidof", processes::pidof),
    ("pkill", processes::pgrep),
    ("pm", packages::pm),
    ("printenv", launch::printenv),
    ("printf", text::printf),
    ("procrank", memory::procrank),
    ("ps", processes::ps),
    ("pwd", system::pwd),
    ("readlink", files::readlink),
    ("realpath", files::readlink),
    ("rm", files::rm),
    ("rmdir", files::rm),
    ("run-as", launch::run_as),
    ("sed", search::sed),
    ("seq", text::seq),
    ("setenforce", system::setenforce),
    ("setprop", system::setprop),
    ("setsid", launch::setsid),
    ("settings", input::settings),
    ("sh", launch::sh),
    ("sha256sum", text::digest),
    ("simpleperf_app_runner", packages::simpleperf_app_runner),
    ("showmap", memory::showmap),
    ("sleep", system::sleep),
    ("sort", text::sort),
    ("stat", storage::stat),
    ("su", launch::su),
    ("svc", input::svc),
    ("sync", system::yes),
    ("tail", text::tail),
    ("tee", text::tee),
    ("test", text::test),
    ("[", text::test),
    ("timeout", launch::timeout),
    ("touch", files::touch),
    ("toybox", launch::toybox),
    ("tr", text::tr),
    ("true", system::yes),
    ("uname", system::uname),
    ("uniq", text::uniq),
    ("uptime", system::uptime),
    ("wc", text::wc),
    ("which", launch::which),
    ("whoami", system::id),
    ("wm", input::wm),
    ("xargs", launch::xargs),
    ("xxd", text::xxd),
];

/// Whether a phone of this kind has the program.
fn exists(spec: &PhoneSpec, name: &str) -> bool {
    match name {
        "su" => super::access::has_su(spec),
        "simpleperf_app_runner" => spec.android >= 12,
        "dmabuf_dump" => spec.android >= 11,
        _ => true,
    }
}

/// Names of all programs of a phone.
pub(crate) fn names(spec: &PhoneSpec) -> Vec<&'static str> {
    let all = PROGRAMS.iter().map(|(name, _)| *name);
    all.filter(|n| exists(spec, n)).collect()
}

/// Path of a program that is in PATH.
pub(crate) fn find(spec: &PhoneSpec, name: &str) -> Option<String> {
    names(spec)
        .contains(&name)
        .then(|| format!("/system/bin/{name}"))
}

/// Runs a thread for commands; false where the host gives none.
pub(crate) fn on_thread(kernel: &Arc<Kernel>, run: impl FnOnce() + Send + 'static) -> bool {
    let name = format!("phone-{}", kernel.serial);
    std::thread::Builder::new()
        .name(name)
        .stack_size(STACK)
        .spawn(run)
        .is_ok()
}

/// Runs a program to its end.
pub(crate) fn run(cmd: &mut Cmd) -> Result<u8, Stop> {
    cmd.kernel.check(cmd.pid)?;
    let Some(argv0) = cmd.argv.first().cloned() else {
        return Ok(0);
    };
    let name = match argv0.rsplit_once('/') {
        Some((dir, name)) if dir == "/system/bin" || dir == "/bin" || dir == "/vendor/bin" => name,
        Some(_) => return run_file(cmd, &argv0),
        None => &argv0,
    };
    let program = PROGRAMS.iter().find(|(n, _)| *n == name);
    let Some((_, program)) = program.filter(|(n, _)| exists(&cmd.kernel.spec, n)) else {
        return complain(
            cmd,
            &format!("sh: {argv0}: inaccessible or not found\n"),
            127,
        );
    };
    match program(cmd) {
        Ok(status) | Err(Halt::Exit(status)) => Ok(status),
        Err(Halt::Stop(stop)) => Err(stop),
    }
}

fn complain(cmd: &Cmd, text: &str, status: u8) -> Result<u8, Stop> {
    if let Some(fd) = cmd.fds.get(2) {
        // Nowhere is left to say that stderr can't be written.
        let _ = fd.write(&cmd.kernel, cmd.pid, text.as_bytes());
    }
    Ok(status)
}

/// A script given by its path.
fn run_file(cmd: &mut Cmd, path: &str) -> Result<u8, Stop> {
    let entry = cmd.kernel.entry(&cmd.cred, &cmd.cwd, path, true);
    let status = match entry {
        Err(_) => {
            return complain(
                cmd,
                &format!("sh: {path}: inaccessible or not found\n"),
                127,
            );
        }
        Ok(entry) => entry.stat.mode & 0o111,
    };
    let Ok(bytes) = cmd.kernel.read_all(&cmd.cred, &cmd.cwd, path) else {
        return complain(
            cmd,
            &format!("sh: {path}: can't execute: Permission denied\n"),
            126,
        );
    };
    if status == 0 {
        return complain(
            cmd,
            &format!("sh: {path}: can't execute: Permission denied\n"),
            126,
        );
    }
    if bytes.starts_with(b"\x7fELF") {
        return complain(
            cmd,
            &format!("sh: {path}: not executable: 64-bit ELF file\n"),
            126,
        );
    }
    let shell = Shell::new(cmd, path.to_owned(), cmd.argv[1..].to_vec());
    shell.run_script(&String::from_utf8_lossy(&bytes))
}

impl Cmd {
    /// Arguments without the name.
    pub(crate) fn args(&self) -> Vec<String> {
        self.argv[1..].to_vec()
    }

    /// The name it was called by.
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
                        // Nowhere is left to say that stderr can't be written.
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

    /// Bytes to stdout.
    pub(crate) fn out_bytes(&self, bytes: &[u8]) -> Result<(), Halt> {
        self.write(1, bytes)
    }

    /// Prints to stderr.
    pub(crate) fn err(&self, text: &str) -> Result<(), Halt> {
        self.write(2, text.as_bytes())
    }

    /// `name: what: why` on stderr.
    pub(crate) fn failed(&self, what: &str, errno: Errno) -> Result<(), Halt> {
        self.err(&format!("{}: {what}: {}\n", self.name(), errno.text()))
    }

    /// All of stdin.
    pub(crate) fn stdin(&self) -> Result<Vec<u8>, Halt> {
        let mut all = Vec::new();
        self.each_block(&self.fds.get(0).cloned().unwrap_or(Fd::Null), |b| {
            all.extend_from_slice(b);
            Ok(())
        })?;
        Ok(all)
    }

    /// Every block of an input, to its end.
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

    /// Contents of the named files, or of stdin where there are none; failures are told and
    /// the rest goes on. Second: whether one failed.
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

    /// Another program in this one's place, with the same files.
    pub(crate) fn exec(&mut self, argv: Vec<String>) -> Done {
        if let Some(p) = self.kernel.state().processes.get_mut(self.pid) {
            p.argv.clone_from(&argv);
        }
        self.argv = argv;
        Ok(run(self)?)
    }
}

/// Splits arguments into single-letter flags and the rest; `valued` letters take a value.
pub(crate) fn flags(args: &[String], valued: &str) -> (Vec<(char, Option<String>)>, Vec<String>) {
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
            if valued.contains(*c) {
                let inline: String = letters[i + 1..].iter().collect();
                let value = if inline.is_empty() {
                    args.next().cloned()
                } else {
                    Some(inline)
                };
                flags.push((*c, value));
                break;
            }
            flags.push((*c, None));
        }
    }
    (flags, rest)
}
