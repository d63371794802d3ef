//! Dumps of the Java heap during a run: recordings of their own, in the directory of the run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use heaptap_lab::scenario::DumpKind;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::executor::{RESTORE, StepExecutor};
use crate::recording::dump;
use crate::recording::events::{EventHandler, RecordEvent};
use crate::recording::heap_files::{self, HeapFileOptions};
use crate::recording::outcome::{Finished, Recorded};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::rename_retry;
use heaptap_capture::config::JavaSpec;
use heaptap_capture::provoke::Cancel;
use heaptap_capture::session::{Control, SessionEvent};
use heaptap_results::manifest::JavaDump;

use super::super::failures::interrupted;
use super::super::recover;

/// Returns the directory of a dump in that of its run.
pub(in crate::lab) fn directory_of(run: &Path, label: &str) -> PathBuf {
    run.join("dumps").join(label)
}

impl StepExecutor<'_> {
    /// Dumps the Java heap, and fetches it. What it leaves after an error moves aside, because a retry
    /// needs the directory.
    pub(super) async fn dump(
        &self,
        kind: DumpKind,
        label: String,
        ends: &Cancel,
    ) -> Result<(), Failure> {
        let _only = self.capture.lock().await;
        let output = self.dump_directory(&label);
        if let Err(failure) = self.dump_into(&output, kind, &label, ends).await {
            return Err(match recover::sessions_of(self.store, &output)?.first() {
                None => {
                    move_aside(&output);
                    failure
                }
                Some(_) if failure.class == ErrorClass::Interrupted => failure,
                Some(left) => {
                    let id = &left.header.id;
                    let message = format!("the dump {label} is in session {id}: {failure}");
                    Failure::new(ErrorClass::NotFetched, "not-fetched", message)
                }
            });
        }
        self.note(|taken| taken.labels.push(label));
        Ok(())
    }

    async fn dump_into(
        &self,
        output: &Path,
        kind: DumpKind,
        label: &str,
        ends: &Cancel,
    ) -> Result<(), Failure> {
        let output = output.to_owned();
        let (ask, mut controls) = mpsc::unbounded_channel();
        let quiet: EventHandler = Arc::new(|_| {});
        let (device, store, controls) = (self.device, self.store, &mut controls);
        let recorded = {
            let mut recording = Box::pin(async {
                match kind {
                    DumpKind::Java => {
                        let options = self.dump_options(JavaSpec::default(), output);
                        dump::dump(device, store, &options, controls, &quiet).await
                    }
                    DumpKind::Hprof => {
                        let options = self.file_options(output);
                        heap_files::dump(device, store, &options, controls, &quiet).await
                    }
                }
            });
            tokio::select! {
                recorded = &mut recording => recorded,
                () = ends.wait() => {
                    let _ = ask.send(Control::Stop);
                    let _ = recording.await.and_then(finished);
                    return Err(interrupted());
                }
            }
        };
        let finished = finished(recorded?)?;
        match missing(&finished) {
            None => Ok(()),
            Some(why) => {
                let message = format!("the dump {label} failed: {why}");
                Err(Failure::new(ErrorClass::Device, "dump-failed", message))
            }
        }
    }

    fn dump_directory(&self, label: &str) -> PathBuf {
        // The output of a run is always set.
        let run = self.record.output.clone().unwrap_or_default();
        directory_of(&run, label)
    }

    fn dump_options(
        &self,
        spec: JavaSpec,
        output: PathBuf,
    ) -> crate::recording::options::RecordOptions {
        let record = self.record;
        let spec = JavaSpec {
            targets: record.kind.targets().clone(),
            ..spec
        };
        let mut options = dump::options(spec, output, record.pprof, record.names.clone());
        (options.user, options.force) = (record.user, record.force);
        options
    }

    fn file_options(&self, output: PathBuf) -> HeapFileOptions {
        let record = self.record;
        let targets = record.kind.targets().clone();
        let mut options = HeapFileOptions::hprof(targets, output, record.names.clone());
        options.spec.user = record.user;
        options
    }

    /// Begins to wait for an OutOfMemoryError, whose heap gets this label.
    ///
    /// # Errors
    /// Returns an error if the app cannot be dumped.
    pub(in crate::lab) async fn await_oom(
        &self,
        label: String,
        wait: Duration,
    ) -> Result<OomDump, Failure> {
        let output = self.dump_directory(&label);
        let spec = JavaSpec {
            wait_for_oom: Some(wait),
            ..JavaSpec::default()
        };
        let options = self.dump_options(spec, output.clone());
        let (device, store) = (self.device.clone(), self.store.clone());
        let (ask, mut controls) = mpsc::unbounded_channel();
        let (started, mut is_started) = mpsc::unbounded_channel();
        let on_event: EventHandler = Arc::new(move |event| {
            if let RecordEvent::Session(SessionEvent::Started { .. }) = event {
                let _ = started.send(());
            }
        });
        let mut work = JoinSet::new();
        work.spawn(
            async move { dump::dump(&device, &store, &options, &mut controls, &on_event).await },
        );
        let mut waiting = OomDump {
            label,
            output,
            ask,
            work,
        };
        tokio::select! {
            started = is_started.recv() => match started {
                Some(()) => Ok(waiting),
                // It ended before.
                None => match waiting.ended().await {
                    Err(failure) => Err(failure),
                    Ok(_) => Err(Failure::new(
                        ErrorClass::Device,
                        "dump-failed",
                        "the session that waits for an OutOfMemoryError ended",
                    )),
                },
            },
            () = self.cancel.wait() => {
                let _ = waiting.stop().await;
                Err(interrupted())
            }
        }
    }
}

/// A session that dumps the Java heap at the first OutOfMemoryError.
pub(in crate::lab) struct OomDump {
    pub label: String,
    output: PathBuf,
    ask: mpsc::UnboundedSender<Control>,
    /// Its only task; ends with this.
    work: JoinSet<Result<Recorded, Failure>>,
}

impl OomDump {
    /// Waits for the error, and returns its dump. Cancel-safe.
    ///
    /// # Errors
    /// Returns the reason why the session ended without one.
    pub(in crate::lab) async fn ended(&mut self) -> Result<Box<Finished>, Failure> {
        match self.work.join_next().await {
            Some(Ok(recorded)) => {
                let finished = finished(recorded?)?;
                match missing(&finished) {
                    None => Ok(finished),
                    Some(why) => Err(Failure::new(ErrorClass::Device, "dump-failed", why)),
                }
            }
            Some(Err(error)) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(interrupted()),
            },
            None => std::future::pending().await,
        }
    }

    /// Ends the session, and returns a dump that was just written.
    pub(in crate::lab) async fn stop(&mut self) -> Option<Box<Finished>> {
        if self.work.is_empty() {
            return None;
        }
        let _ = self.ask.send(Control::Stop);
        let ended = tokio::time::timeout(RESTORE, self.ended()).await;
        let finished = ended.ok()?.ok();
        if finished.is_none() {
            // It is empty if no error came.
            let _ = std::fs::remove_dir(&self.output);
        }
        finished
    }
}

/// Moves the directory of a dump that failed aside; removes an empty one.
fn move_aside(output: &Path) {
    if std::fs::remove_dir(output).is_err() {
        // A retry reports that the directory is not empty.
        let _ = rename_retry::rename(output, &dump::aside(output, 1));
    }
}

fn finished(recorded: Recorded) -> Result<Box<Finished>, Failure> {
    match recorded {
        Recorded::Finished(mut finished) => {
            finished.journal.forget()?;
            Ok(finished)
        }
        Recorded::Detached { .. } => {
            let message = "the dump was left on the device";
            Err(Failure::new(ErrorClass::Device, "dump-failed", message))
        }
    }
}

/// Returns why a recording has no Java heap; `None` if it has one.
fn missing(finished: &Finished) -> Option<String> {
    let manifest = &finished.manifest;
    let why = || manifest.warnings.first().map(|first| first.message.clone());
    let has_heap = manifest.dumps.java.iter().any(JavaDump::has_heap);
    (!has_heap).then(|| why().unwrap_or_else(|| "the device sent no heap".to_owned()))
}
