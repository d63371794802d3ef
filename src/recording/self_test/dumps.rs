//! The steps that record: native heap, heap graph, HPROF. Each checks its result: samples, the
//! label, names, the views of the pprof; objects; a parsed HPROF. Of the HPROF, only a copy
//! without contents is kept, because strings of the app are in it.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use prost::Message as _;

use super::app::App;
use super::bounded_recording::Piloted;
use super::context::{Bench, Ended, Outcome};
use super::document::{StepError, StepId};
use crate::recording::blocking::blocking;
use crate::recording::capture_kind::CaptureKind;
use crate::recording::dump;
use crate::recording::events::RecordEvent;
use crate::recording::heap_files::{self, HeapFileOptions};
use crate::recording::options::RecordOptions;
use crate::recording::outcome::Finished;
use crate::recording::record;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::units::{ByteSize, counted, thousands};
use heaptap_capture::config::{CaptureSpec, JavaSpec, Snapshots};
use heaptap_capture::session::{Control, SessionEvent};
use heaptap_proto::pprof::Profile;
use heaptap_results::manifest::{Dump, JavaDump};

/// Time limits of the steps, until they are ended.
const NATIVE: Duration = Duration::from_secs(40);
const JAVA: Duration = Duration::from_secs(40);
const HPROF: Duration = Duration::from_secs(60);
/// Time for a process that writes nothing of its HPROF.
const SILENCE: Duration = Duration::from_secs(20);
/// Time by the clock of the device until the snapshot.
const SAMPLES: Duration = Duration::from_secs(3);
/// Period of the dumps of builds that do not dump on request.
const PERIOD: Duration = Duration::from_secs(2);
/// Label of the snapshot.
const LABEL: &str = "try";
/// Views of a native pprof.
const VIEWS: usize = 4;
/// Largest pprof that is checked, unpacked.
const MAX_PPROF_BYTES: u64 = 256 << 20;

impl Bench<'_> {
    fn step_directory(&self, step: StepId) -> PathBuf {
        self.directory.join(step.word())
    }

    /// Records a native heap with a labeled snapshot.
    pub(super) async fn native(&self, app: Option<&App>) -> Outcome {
        let app = self.needs(app)?;
        app.check_native()?;
        let kind = CaptureKind::Native(Box::new(CaptureSpec {
            targets: app.targets(),
            ..CaptureSpec::default()
        }));
        let options = RecordOptions {
            output: Some(self.step_directory(StepId::Native)),
            snapshots: Snapshots::Every(PERIOD),
            user: self.options.user,
            ..RecordOptions::new(kind, self.options.names.clone())
        };
        let mut is_asked = false;
        let mut missed: Option<StepError> = None;
        let requests = |event: &RecordEvent| match event {
            RecordEvent::Session(SessionEvent::Progress(progress))
                if progress.elapsed >= SAMPLES && !is_asked =>
            {
                is_asked = true;
                let label = LABEL.to_owned();
                Some(Control::Snapshot { label })
            }
            RecordEvent::Session(SessionEvent::SnapshotTaken { no_dump, .. }) => {
                missed = no_dump
                    .clone()
                    .map(|why| of_snapshot("snapshot-failed", why, ErrorClass::Device));
                Some(Control::End)
            }
            RecordEvent::Session(SessionEvent::SnapshotFailed {
                why, kind, class, ..
            }) => {
                missed = Some(of_snapshot(kind, why.clone(), *class));
                Some(Control::End)
            }
            _ => None,
        };
        let piloted = self
            .pilot(NATIVE, requests, async |controls, on_event| {
                record::record(self.device, self.store, &options, controls, on_event).await
            })
            .await?;
        let finished = whole(piloted)?;
        let manifest = &finished.manifest;
        if let Some(missed) = missed {
            return Err(Ended::Failed(missed));
        }
        let dumps = &manifest.dumps.native;
        let files: Vec<&Dump> = dumps.iter().filter(|dump| dump.file.is_some()).collect();
        let Some(last) = files.last() else {
            return Err(incomplete("the recording has no pprof".to_owned()));
        };
        let is_bound = manifest.labels.iter().any(|label| !label.dumps.is_empty());
        if !is_bound {
            return Err(incomplete("no dump belongs to the label".to_owned()));
        }
        let pprof = finished
            .output
            .join(last.file.as_deref().unwrap_or_default());
        let views = blocking(move || views(&pprof)).await;
        match views {
            Ok(VIEWS) => {}
            Ok(found) => {
                let has = counted(found as u64, "view", "views");
                return Err(incomplete(format!(
                    "the pprof has {has} instead of {VIEWS}"
                )));
            }
            Err(error) => return Err(incomplete(format!("cannot read the pprof: {error}"))),
        }
        let names = manifest.symbolization.clone().unwrap_or_default();
        let all = names.frames_named + names.frames_unnamed;
        let samples: u64 = dumps
            .iter()
            .map(|dump| dump.heap_samples)
            .max()
            .unwrap_or(0);
        Ok(format!(
            "{} in {}, one of them on request; {} of {} with a name",
            counted(samples, "sample", "samples"),
            counted(dumps.len() as u64, "dump", "dumps"),
            thousands(names.frames_named),
            counted(all, "frame", "frames"),
        ))
    }

    /// Dumps the heap graph.
    pub(super) async fn java(&self, app: Option<&App>) -> Outcome {
        let app = self.needs(app)?;
        app.check_java()?;
        let spec = JavaSpec {
            targets: app.targets(),
            ..JavaSpec::default()
        };
        let pprof = heaptap_export::pprof::PprofOptions::default();
        let output = self.step_directory(StepId::JavaHeap);
        let mut options = dump::options(spec, output, pprof, self.options.names.clone());
        options.user = self.options.user;
        let piloted = self
            .pilot(
                JAVA,
                |_| None,
                async |controls, on_event| {
                    dump::dump(self.device, self.store, &options, controls, on_event).await
                },
            )
            .await?;
        let finished = whole(piloted)?;
        objects(&finished.manifest.dumps.java)
    }

    /// Keeps a copy without contents of an HPROF that was fetched.
    pub(super) async fn keep_stripped(&self) -> Result<(), Ended> {
        let Ok(raw) = self.raw.as_ref().map(Arc::clone) else {
            return Ok(());
        };
        let goal = self.step_directory(StepId::Hprof);
        let to = goal.clone();
        let kept = blocking(move || raw.keep_stripped(&to)).await;
        kept.map_err(|error| unwritten(&goal, &error))
    }

    /// Dumps an HPROF, parses it, and keeps a copy without contents.
    pub(super) async fn hprof(&self, app: Option<&App>) -> Outcome {
        let app = self.needs(app)?;
        app.check_hprof()?;
        let output = match self.raw {
            Ok(raw) => raw.session(),
            Err(error) => {
                let parent = self.directory.parent().unwrap_or(self.directory);
                return Err(unwritten(parent, error));
            }
        };
        let names = self.options.names.clone();
        let mut options = HeapFileOptions::hprof(app.targets(), output, names);
        (options.spec.user, options.silence) = (self.options.user, SILENCE);
        let piloted = self
            .pilot(
                HPROF,
                |_| None,
                async |controls, on_event| {
                    heap_files::dump(self.device, self.store, &options, controls, on_event).await
                },
            )
            .await?;
        let dumps = piloted.finished.manifest.dumps.java.clone();
        self.keep_stripped().await?;
        whole(piloted)?;
        let words = objects(&dumps)?;
        let size = dumps
            .iter()
            .filter_map(|dump| Some(dump.original.as_ref()?.size))
            .sum();
        Ok(format!(
            "{words}; file of {}, kept without contents",
            ByteSize(size)
        ))
    }
}

/// Returns a recording that is complete and was not cut. What it lacks says more than that its time
/// was over.
fn whole(piloted: Piloted) -> Result<Box<Finished>, Ended> {
    let Piloted { finished, cut } = piloted;
    let warning = finished.manifest.warnings.first();
    let (class, warning) = match (cut, finished.class, warning) {
        (Some(cut), class, warning)
            if cut.kind != "step-timeout" || class.is_none() || warning.is_none() =>
        {
            return Err(cut.into());
        }
        (_, None, _) => return Ok(finished),
        (_, Some(_), None) => return Err(incomplete("the recording is incomplete".to_owned())),
        (_, Some(class), Some(warning)) => (class, warning),
    };
    Err(Ended::Failed(StepError {
        kind: warning.kind.clone(),
        message: warning.message.clone(),
        help: warning.help.clone(),
        hints: Vec::new(),
        exit_code: class.exit_code(),
    }))
}

pub(super) fn incomplete(message: String) -> Ended {
    let failure = Failure::new(ErrorClass::Incomplete, "recording-incomplete", message);
    Ended::Failed(failure.into())
}

fn of_snapshot(kind: &str, why: String, class: ErrorClass) -> StepError {
    StepError {
        kind: kind.to_owned(),
        message: format!("no snapshot: {why}"),
        help: None,
        hints: Vec::new(),
        exit_code: class.exit_code(),
    }
}

pub(super) fn unwritten(path: &Path, error: &io::Error) -> Ended {
    let message = format!("cannot write to {}: {error}", path.display());
    let failure = Failure::new(ErrorClass::HostWrite, "output-unwritable", message)
        .with_help("free disk space, or use another directory with `-o DIR`");
    Ended::Failed(failure.into())
}

/// Returns the objects of complete dumps in words.
fn objects(dumps: &[JavaDump]) -> Outcome {
    let mut totals = dumps
        .iter()
        .filter(|dump| dump.complete)
        .filter_map(|dump| dump.totals);
    let Some(totals) = totals.next().filter(|totals| totals.objects > 0) else {
        return Err(incomplete("the dump has no objects".to_owned()));
    };
    Ok(format!(
        "{}, {}",
        counted(totals.objects, "object", "objects"),
        ByteSize(totals.space)
    ))
}

/// Returns the number of sample types of a pprof.
fn views(path: &Path) -> io::Result<usize> {
    let file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    MultiGzDecoder::new(file)
        .take(MAX_PPROF_BYTES)
        .read_to_end(&mut bytes)?;
    let profile = Profile::decode(&*bytes).map_err(io::Error::other)?;
    Ok(profile.sample_type.len())
}
