//! `am dumpheap`: options by API level, refusals by system_server, and the app that writes its heap
//! to the file while `am` waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use time::macros::format_description;

use super::refusals::{bad_option, exception};
use super::{Arguments, Cmd, Done, Halt, refuse};
use crate::clock::{BootNs, MILLI};
use crate::faults::FaultKind;
use crate::fs::{FileData, normalize};
use crate::io::Fd;
use crate::java::{self, JavaDumpKind, PictureFormat};
use crate::kernel::Kernel;
use crate::packages::Package;
use crate::process::{Pid, Process, Role, SIGSEGV};
use crate::spec::BuildType;
use crate::traced::JavaDump;
use crate::{program, tracing};

/// Delay in nanoseconds until the app's main thread has received the request and stopped all
/// others.
const BEGINS_AFTER: u64 = 80 * MILLI;
/// Number of bytes that ART writes per millisecond.
const BYTES_PER_MS: u64 = 40_000;
/// Number of pieces in which a file is written.
const PIECES: u64 = 16;
/// Directory that system_server can write to for the shell.
const SHELL_DATA: &str = "/data/local/tmp/";
const ILLEGAL: &str = "java.lang.IllegalArgumentException";
/// API level that added `-b`.
const BITMAPS_SINCE: u32 = 35;

/// Splits the arguments: options, then the process and the file.
fn split(cmd: &Cmd, args: &[String]) -> Result<Arguments, Halt> {
    let known = match cmd.kernel.spec.sdk() >= BITMAPS_SINCE {
        true => "-n -g -m -b:",
        false => "-n -g -m",
    };
    let split = Arguments::split(args, known).map_err(bad_option)?;
    if split.rest.is_empty() {
        let last = args.last().map_or("dumpheap", String::as_str);
        let text = format!("{ILLEGAL}: Argument expected after \"{last}\"");
        return Err(exception(cmd, "dumpheap", &text));
    }
    Ok(split)
}

pub(super) fn dumpheap(cmd: &mut Cmd, args: &[String], user: u32) -> Done {
    let kernel = cmd.kernel.clone();
    let args = split(cmd, args)?;
    let file = match args.rest.get(1) {
        Some(file) => file.clone(),
        None => {
            let format = format_description!("[year][month][day]-[hour][minute][second]");
            let date = crate::logcat::date(kernel.clock.real(), format);
            format!("{SHELL_DATA}heapdump-{date}.prof")
        }
    };
    let Some(data) = open(cmd, &file) else {
        let help = match file.starts_with(SHELL_DATA) {
            true => String::new(),
            false => format!("\nConsider using a file under {SHELL_DATA}"),
        };
        return refuse(255, format!("Error: Unable to open file: {file}{help}"));
    };
    cmd.out(&format!("File: {file}\n"))?;
    let process = target(&kernel, &args.rest[0], user);
    let process = process.map_err(|why| exception(cmd, "dumpheap", &why))?;
    let done = Arc::new(AtomicBool::new(false));
    let job = Job {
        kernel: kernel.clone(),
        pid: process.pid,
        args,
        file,
        data,
        done: done.clone(),
    };
    // The app continues to write even if `am` ends.
    if !program::on_thread(&kernel, move || job.run()) {
        return refuse(255, "HEAP DUMP FAILED");
    }
    cmd.out("Waiting for dump to finish...\n")?;
    kernel.block(cmd.pid, None, || done.load(Ordering::SeqCst).then_some(()))?;
    Ok(0)
}

/// Opens the file as `am` does for system_server, which SELinux permits to write only in one place.
fn open(cmd: &Cmd, file: &str) -> Option<Arc<FileData>> {
    let parts = normalize(&cmd.cwd, file);
    let (_, above) = parts.split_last()?;
    {
        let state = cmd.kernel.state();
        let resolved = state.tree.resolve(above, true).ok()?;
        let label = state.tree.node(&resolved)?.label;
        if state.enforcing && label != "shell_data_file" {
            return None;
        }
    }
    let opened = cmd
        .kernel
        .open_write(&cmd.cred, &cmd.cwd, file, 0o660, false);
    match opened {
        Ok(Fd::File { data, .. }) => Some(data),
        _ => None,
    }
}

/// Returns the selected process, or the exception if it cannot be dumped.
fn target(kernel: &Kernel, wanted: &str, of: u32) -> Result<Process, String> {
    let state = kernel.state();
    let of_user = |p: &&Process| match &p.role {
        Role::App { user, .. } => *user == of,
        Role::SystemServer => true,
        _ => false,
    };
    let by_pid = wanted.parse::<Pid>().ok();
    let by_pid = by_pid.and_then(|pid| state.processes.get(pid));
    let by_name = || {
        // Within system_server, its process has another name.
        let is = |p: &&Process| {
            p.name() == wanted || (p.role == Role::SystemServer && wanted == "system")
        };
        state.processes.iter().filter(of_user).find(is)
    };
    let java = |p: &&Process| matches!(p.role, Role::App { .. } | Role::SystemServer);
    let found = by_pid.filter(java).or_else(by_name).cloned();
    let process = found.ok_or_else(|| format!("{ILLEGAL}: Unknown process: {wanted}"))?;
    let debuggable = state.package_of(&process).is_some_and(Package::debuggable);
    if !debuggable && kernel.spec.build == BuildType::User {
        let uid = match process.uid {
            uid if uid >= 10_000 => format!("u{}a{}", uid / 100_000, uid % 100_000 - 10_000),
            uid => uid.to_string(),
        };
        let (pid, name) = (process.pid, process.name());
        let record = pid.wrapping_mul(0x9e_3779) & 0xfff_ffff;
        return Err(format!(
            "java.lang.SecurityException: Process not debuggable: \
             ProcessRecord{{{record:07x} {pid}:{name}/{uid}}}"
        ));
    }
    Ok(process)
}

/// A dump written by an app.
struct Job {
    kernel: Arc<Kernel>,
    pid: Pid,
    args: Arguments,
    file: String,
    data: Arc<FileData>,
    done: Arc<AtomicBool>,
}

impl Job {
    fn run(self) {
        // An app that is gone never calls back: `am` waits forever.
        if self.write().is_some() {
            self.done.store(true, Ordering::SeqCst);
            self.kernel.events.notify();
        }
    }

    /// Waits on the app's clock; `None` if it died or the phone was switched off.
    fn wait(&self, until: BootNs) -> Option<()> {
        self.kernel.sleep(self.pid, until).ok()?;
        // While it is frozen, none of its threads run.
        let thawed = || {
            let state = self.kernel.state();
            let frozen = state.processes.get(self.pid).is_some_and(|p| p.frozen);
            (!frozen).then_some(())
        };
        self.kernel.block(self.pid, None, thawed).ok()?;
        Some(())
    }

    /// Writes the whole file; `None` if it never ends.
    fn write(&self) -> Option<()> {
        let kernel = &self.kernel;
        let began = kernel.clock.boot() + BEGINS_AFTER;
        self.wait(began)?;
        let bytes = self.contents(began)?;
        let half = bytes.len() as u64 / 2;
        let faults = &kernel.faults;
        let hang = faults.value(FaultKind::DumpheapHang, 0);
        let short = faults.value(FaultKind::DumpheapShort, half);
        let dies = faults.value(FaultKind::DumpheapDies, half);
        let stop = hang.or(short).or(dies).unwrap_or(u64::MAX);
        let slow = faults.value(FaultKind::DumpheapSlow, 30_000);
        let takes = slow.unwrap_or(bytes.len() as u64 / BYTES_PER_MS + 1) * MILLI;
        let piece = bytes.len().div_ceil(PIECES as usize).max(1);
        let mut at = 0u64;
        for (n, part) in bytes.chunks(piece).enumerate() {
            self.wait(began + takes * (n as u64 + 1) / PIECES)?;
            let part = &part[..part.len().min(stop.saturating_sub(at) as usize)];
            if kernel.write_file(&self.data, at, part).is_err() {
                // ART leaves an empty file, and only the log reports the failure.
                self.data.truncate(0);
                let file = &self.file;
                self.log(&format!(
                    "Managed heap dump failed on path {file} -- can the process access this path?"
                ));
                return Some(());
            }
            at += part.len() as u64;
            if at >= stop {
                break;
            }
        }
        kernel.events.notify();
        if dies.is_some() {
            kernel.killed(self.pid, SIGSEGV);
        }
        (dies.is_none() && hang.is_none()).then_some(())
    }

    fn log(&self, text: &str) {
        self.kernel.log(self.pid, 'E', "ActivityThread", text);
    }

    fn contents(&self, now: BootNs) -> Option<Vec<u8>> {
        let kernel = &self.kernel;
        let process = kernel.state().processes.get(self.pid).cloned()?;
        if self.args.has("-m") {
            return Some(tracing::malloc_info(kernel, &process, now).into_bytes());
        }
        if self.args.has("-n") {
            return Some(NO_NATIVE_DUMP.as_bytes().to_vec());
        }
        let collects = self.args.has("-g");
        if collects {
            // Once before finalizers run, and once after.
            super::meminfo::collect(kernel, self.pid);
            super::meminfo::collect(kernel, self.pid);
        }
        let mut inputs = kernel.memory.java_inputs(&kernel.state(), &process, now)?;
        if collects {
            inputs = inputs.collected();
        }
        let asked = self.args.value("-b");
        let pictures = asked.and_then(PictureFormat::from_word);
        if let Some(word) = asked.filter(|_| pictures.is_none()) {
            self.log(&format!("Invalid bitmap format for heap dump: {word}"));
        }
        let real_ms = kernel.clock.at(now).real / MILLI;
        let bytes = java::hprof_file(&inputs, real_ms, pictures);
        kernel.state().tracing.java_dumps.push(JavaDump {
            inputs,
            kind: JavaDumpKind::Hprof,
            path: self.file.clone(),
        });
        Some(bytes)
    }
}

/// bionic's text if malloc debug was not enabled before the start of the app.
const NO_NATIVE_DUMP: &str = "Native heap dump not available. To enable, run these commands (requires root):\n\
    # adb shell stop\n\
    # adb shell setprop libc.debug.malloc.options backtrace\n\
    # adb shell start\n";
