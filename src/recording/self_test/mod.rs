//! `doctor --try`: a few seconds of every capability on one device, with a verdict on each, and a
//! directory to attach to a bug report. Every step ends with a verdict, and its work on the device
//! has a deadline. The others are tried although a step fails, unless the device is gone or the user
//! interrupts; the last one, which puts the device back, always runs.
//!
//! | module | contents |
//! |---|---|
//! | `document` | `try.json`: steps, verdicts, errors |
//! | `context` | what the steps share, and how they end |
//! | `app` | choice of an app that can be profiled |
//! | `bounded_recording` | a recording that is ended by its deadline, the user or a lost device |
//! | `dumps` | the steps that record: native heap, heap graph, HPROF |
//! | `raw` | the directory of the HPROF with contents |
//! | `texts` | the steps that read: meminfo, mappings, GC log, allocator |
//! | `unchanged` | state of the device before and after |

mod app;
mod bounded_recording;
mod context;
mod document;
mod dumps;
mod raw;
mod texts;
mod unchanged;

pub use self::context::{StepEvent, TryEvent, TryHandler, TryOptions};
pub use self::document::{
    SCHEMA_VERSION, StepError, StepId, TriedAdb, TriedApp, TriedDevice, TriedHost, TriedStep,
    TryReport, Verdict,
};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use time::OffsetDateTime;
use time::macros::format_description;

use self::app::App;
use self::context::{Bench, Ended, Outcome, RETURN, interrupted};
use self::document::sessions_below;
use self::raw::RawDirectory;
use self::unchanged::DeviceState;
use super::advice::device_away;
use heaptap_adb::Device;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::eligibility::{self, DeviceFacts};
use heaptap_capture::error::kind;
use heaptap_capture::provoke::Cancel;
use heaptap_capture::session::{CaptureError, Store};
use heaptap_results::manifest::version;
use heaptap_results::output::OutputDirectory;

/// Time limit for the facts of the device and the choice of the app.
const LOOK: Duration = Duration::from_secs(30);

/// Tries everything. Returns the report; the data of the steps are in the directory, and the caller
/// writes the report next to them.
///
/// # Errors
/// Returns an error if the directory cannot be prepared, or if the device does not
/// answer; then nothing was tried.
pub async fn try_out(
    device: &Device,
    store: &Store,
    options: &TryOptions,
    cancel: &Cancel,
    on_event: &TryHandler,
) -> Result<TryReport, Failure> {
    let directory = prepare(options.output.as_deref())?;
    let looked = bounded_recording::limited(LOOK, cancel, async {
        let facts = eligibility::facts(device).await?;
        Ok::<_, Failure>(facts)
    });
    let facts = match looked.await {
        Ok(facts) => facts,
        Err(failure) => {
            directory.discard();
            return Err(failure);
        }
    };
    let parent = directory.path().parent().unwrap_or(directory.path());
    raw::remove_remains(parent, store);
    let raw = RawDirectory::new(parent).map(Arc::new);
    let bench = Bench {
        device,
        store,
        options,
        directory: directory.path(),
        raw: &raw,
        cancel,
        on_event,
    };
    let mut tried = Tried::default();
    bench.all(&facts, &mut tried).await;
    let mut report = TryReport {
        schema_version: SCHEMA_VERSION,
        heaptap: version().to_owned(),
        host: TriedHost::here(),
        adb: options.adb.clone(),
        device: TriedDevice::from_facts(&facts),
        app: tried.app,
        exit_code: 0,
        steps: tried.steps,
        output: directory.path().to_string_lossy().into_owned(),
    };
    report.exit_code = report.class().map_or(0, ErrorClass::exit_code);
    Ok(report)
}

/// Steps that have ended.
#[derive(Default)]
struct Tried {
    app: Option<TriedApp>,
    steps: Vec<TriedStep>,
    /// Why the rest is not tried.
    over: Option<StepError>,
}

impl Bench<'_> {
    async fn all(&self, facts: &DeviceFacts, tried: &mut Tried) {
        let mut chosen = None;
        self.step(StepId::App, tried, async {
            let choice = app::choose(self.device, facts, self.options);
            let app = bounded_recording::limited(LOOK, self.cancel, choice).await?;
            let words = app.words();
            let refusal = app.refusal();
            chosen = Some(app);
            match refusal {
                Some(failure) => Err(Ended::Failed(failure.into())),
                None => Ok(words),
            }
        })
        .await;
        let app = chosen.as_ref();
        tried.app = app.map(App::tried);
        let pid = app.map(|app| app.pid);
        let before = DeviceState::read(self.device, pid).await;
        self.step(StepId::Native, tried, self.native(app)).await;
        self.step(StepId::JavaHeap, tried, self.java(app)).await;
        self.step(StepId::Hprof, tried, self.hprof(app)).await;
        self.step(StepId::Meminfo, tried, self.meminfo(app)).await;
        self.step(StepId::Smaps, tried, self.smaps(app)).await;
        self.step(StepId::Gc, tried, self.gc(app)).await;
        self.step(StepId::MallocInfo, tried, self.malloc_info(app))
            .await;
        // Also after an interrupt: this is what it must not skip.
        tried.over = None;
        self.step(StepId::PutBack, tried, self.put_back(before, pid, facts))
            .await;
        tried
            .steps
            .iter_mut()
            .for_each(|step| self.look_again(step));
    }

    /// Updates a step after the device is put back, which can fetch its recording.
    fn look_again(&self, step: &mut TriedStep) {
        step.files = document::files_of(self.directory, step.step);
        step.sessions = match (step.step, self.raw) {
            (StepId::Hprof, Ok(raw)) => sessions_below(self.store, &raw.session()),
            (step, _) => sessions_below(self.store, &self.directory.join(step.word())),
        };
        let not_fetched = ErrorClass::NotFetched.exit_code();
        let error = step.error.as_mut();
        if let Some(error) = error.filter(|error| error.exit_code == not_fetched)
            && step.sessions.is_empty()
            && !step.files.is_empty()
        {
            error.exit_code = ErrorClass::Incomplete.exit_code();
            error.message += "; it was fetched later";
            error.help = None;
            error.hints.clear();
        }
    }

    /// Runs a step, unless nothing more can be tried.
    async fn step(&self, id: StepId, tried: &mut Tried, work: impl Future<Output = Outcome>) {
        self.tell(StepEvent::TryBegins { step: id });
        let began = Instant::now();
        let is_last = id == StepId::PutBack;
        let outcome = match (&tried.over, self.cancel.check()) {
            (Some(over), _) => Err(Ended::NotTried(over.clone())),
            (None, Err(_)) if !is_last => Err(Ended::NotTried(interrupted().into())),
            (None, _) => Box::pin(work).await,
        };
        let (verdict, result, error) = match outcome {
            Ok(words) => (Verdict::Works, Some(words), None),
            Err(Ended::Failed(error)) => (Verdict::Fails, None, Some(error)),
            Err(Ended::Impossible(error)) => (Verdict::NotPossible, None, Some(error)),
            Err(Ended::NotTried(error)) => (Verdict::NotTried, None, Some(error)),
        };
        if verdict == Verdict::Fails && !is_last && tried.over.is_none() {
            tried.over = self.is_away().await;
        }
        tried.steps.push(TriedStep {
            step: id,
            verdict,
            seconds: (began.elapsed().as_secs_f64() * 10.0).round() / 10.0,
            result,
            error,
            files: Vec::new(),
            sessions: Vec::new(),
        });
        self.tell(StepEvent::TryEnds { step: id, verdict });
    }

    fn tell(&self, event: StepEvent) {
        (self.on_event)(TryEvent::Step(event));
    }

    /// Returns why the device cannot be tried further; `None` if it answers.
    async fn is_away(&self) -> Option<StepError> {
        let ready = tokio::select! {
            ready = self.device.wait_ready(RETURN) => ready,
            () = self.cancel.wait() => return None,
        };
        let obstacle = ready.err()?;
        let message = format!("{} is not connected: {obstacle}", self.device.serial());
        let help = "connect it, then run the same command again";
        Some(device_away(message, help).into())
    }
}

/// Prepares the directory. Another try in the same second gets another default name.
fn prepare(output: Option<&Path>) -> Result<OutputDirectory, CaptureError> {
    if let Some(output) = output {
        return OutputDirectory::hold(output);
    }
    let format = format_description!("[year][month][day]T[hour][minute][second]Z");
    let now = OffsetDateTime::now_utc();
    let name = now.format(format).expect("every date has these fields");
    let first = PathBuf::from(format!("heaptap-try-{name}"));
    match OutputDirectory::hold(&first) {
        Err(error) if error.is(&[kind::OUTPUT_NOT_EMPTY, kind::OUTPUT_CLAIMED]) => {
            OutputDirectory::hold(Path::new(&format!(
                "heaptap-try-{name}-{}",
                std::process::id()
            )))
        }
        held => held,
    }
}
