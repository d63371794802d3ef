//! The steps that read texts: meminfo, memory mappings, collections in the log, the allocator.
//! Nothing is kept of the log but lines of the garbage collector.

use std::time::Duration;

use super::app::App;
use super::bounded_recording::limited;
use super::context::{Bench, Ended, Outcome};
use super::document::StepId;
use super::dumps::{incomplete, unwritten};
use crate::heaps::meminfo::{Question, ask};
use crate::heaps::smaps::{AccessMethod, FetchError, fetch, of_phone};
use android_memory::gc::GcLog;
use android_memory::malloc_info;
use android_memory::smaps::Field;
use heaptap_adb::{Command, Device};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::units::{ByteSize, counted};
use heaptap_base::untrusted::sanitize_bytes;
use heaptap_capture::config::Targets;
use heaptap_results::whole_file::write_named;

/// Time limits of the steps.
const TEXT: Duration = Duration::from_secs(30);
const LOG: Duration = Duration::from_secs(15);

impl Bench<'_> {
    /// Reads meminfo of the app, which requests a collection. Without an app it reads that of the
    /// device, unless the user has named one: then nothing of other apps is wanted.
    pub(super) async fn meminfo(&self, app: Option<&App>) -> Outcome {
        let targets = match app {
            None if self.options.targets.is_empty() => Targets::default(),
            app => self.needs(app)?.targets(),
        };
        let question = Question {
            targets,
            user: self.options.user,
            ..Question::default()
        };
        let answer = async { Ok::<_, Failure>(ask(self.device, &question).await?) };
        let answer = limited(TEXT, self.cancel, answer).await?;
        self.keep(StepId::Meminfo, "meminfo.txt", &answer.text)?;
        let document = &answer.document;
        if let Some(trouble) = document.troubles.first() {
            return Err(incomplete(format!("meminfo is incomplete: {trouble}")));
        }
        let unknown = match document.unknown.len() {
            0 => String::new(),
            lines => format!(
                ", {} not understood",
                counted(lines as u64, "line", "lines")
            ),
        };
        match document.processes.first() {
            Some(process) => {
                let rows = counted(process.rows.len() as u64, "row", "rows");
                Ok(format!("{rows}{unknown}"))
            }
            None => Ok(format!("of the whole device{unknown}")),
        }
    }

    /// Reads the memory mappings.
    pub(super) async fn smaps(&self, app: Option<&App>) -> Outcome {
        let app = self.needs(app)?;
        let targets = app.targets();
        let mapped = async { Ok(of_phone(self.device, &targets, self.options.user).await) };
        let mapped = match limited(TEXT, self.cancel, mapped).await? {
            Ok(mapped) => mapped,
            // Only root and the app itself can read them, which no fix changes on this build.
            Err(refused @ FetchError::Refused { .. }) => {
                return Err(Ended::Impossible(Failure::from(refused).into()));
            }
            Err(error) => return Err(Failure::from(error).into()),
        };
        if let Some(text) = &mapped.text {
            self.keep(StepId::Smaps, "smaps.txt", text)?;
        }
        let by = match mapped.moment.method {
            Some(AccessMethod::RunAs) => " by run-as",
            Some(AccessMethod::Su) => " by su",
            Some(AccessMethod::Shell) | None => "",
        };
        let total = mapped.smaps.total();
        Ok(format!(
            "{}, PSS {}{by}",
            counted(mapped.smaps.count(), "mapping", "mappings"),
            ByteSize(total.of(Field::Pss)),
        ))
    }

    /// Reads the collections in the log. `meminfo` has requested one.
    pub(super) async fn gc(&self, app: Option<&App>) -> Outcome {
        let app = self.needs(app)?;
        if !app.has_art() {
            let message = format!("{} does not have a Java heap", app.name());
            let failure = Failure::new(ErrorClass::NotEligible, "not-eligible", message);
            return Err(Ended::Impossible(failure.into()));
        }
        let lines = limited(LOG, self.cancel, log_of(self.device, app.pid)).await?;
        let mut log = GcLog::default();
        log.call(app.pid, app.name());
        let is_of_gc = |line: &&str| log.push(line).is_some();
        let kept: Vec<&str> = lines.lines().filter(is_of_gc).collect();
        if kept.is_empty() {
            let message = format!(
                "the log has no garbage collection of {}, although meminfo requested one",
                app.name()
            );
            let failure = Failure::new(ErrorClass::Device, "gc-not-logged", message).with_help(
                "run `adb logcat -d`; if it has no line of the app, raise the log level in the \
                 developer options of the device",
            );
            return Err(failure.into());
        }
        let text = kept
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>();
        self.keep(StepId::Gc, "logcat.txt", text.as_bytes())?;
        let lines = counted(kept.len() as u64, "line", "lines");
        Ok(format!("{lines} about garbage collections in the log"))
    }

    /// Asks the allocator of the app.
    pub(super) async fn malloc_info(&self, app: Option<&App>) -> Outcome {
        let app = self.needs(app)?;
        app.check_hprof()?;
        let fetched = async { Ok(fetch::malloc_info(self.device, app.pid).await?) };
        let fetched = limited(TEXT, self.cancel, fetched).await?;
        let fetched = fetched.map_err(of_allocator)?;
        self.keep(StepId::MallocInfo, "malloc_info.xml", &fetched.text)?;
        let info = malloc_info::parse(&fetched.text).map_err(|e| of_allocator(e.to_string()))?;
        Ok(format!(
            "{} live, by {}",
            ByteSize(info.live),
            info.version.name()
        ))
    }

    /// Writes a text into the directory of a step.
    fn keep(&self, step: StepId, name: &str, text: &[u8]) -> Result<(), Ended> {
        let directory = self.directory.join(step.word());
        let written = std::fs::create_dir_all(&directory)
            .and_then(|()| write_named(&directory.join(name), text));
        written.map_err(|error| unwritten(&directory, &error))
    }
}

/// Returns the lines of a process in the ring buffer of the log.
async fn log_of(device: &Device, pid: u32) -> Result<String, Failure> {
    let command = Command::program("logcat")
        .args(["-d", "-v", "threadtime", "-v", "epoch", "-b", "main"])
        .arg(format!("--pid={pid}"))
        .called("reading the log");
    let output = device.run(&command, LOG).await?;
    if output.exit != 0 && output.stdout.is_empty() {
        let why = sanitize_bytes(output.stderr.trim_ascii());
        let message = format!("cannot read the log: {why}");
        return Err(Failure::new(ErrorClass::Device, "no-log", message));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn of_allocator(why: String) -> Ended {
    let failure = Failure::new(ErrorClass::Device, "dumpheap-empty", why)
        .with_help("bring the app to the front, then run the command again");
    failure.into()
}
