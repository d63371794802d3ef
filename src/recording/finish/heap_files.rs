//! Heap files of `am dumpheap`, from the end of the script on the device to the finished directory:
//! their state, fetching, manifest, and missing files. A file is complete if it has an end,
//! regardless of exit codes; all received files are kept, and the copies on the device are removed
//! last.

mod error;
mod look;

pub use self::error::HeapFileError;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use time::OffsetDateTime;

use self::look::{Looked, look, of_cut, unreadable};
use crate::names::packet_files;
use crate::names::r8_mappings::{UsedMap, add_used};
use crate::recording::blocking::blocking;
use crate::recording::causes;
use crate::recording::events::{EventHandler, RecordEvent, Step, warn};
use crate::recording::outcome::{EndedBy, Finished, LastJournal};
use crate::recording::plan::{self, Plan, describe};
use android_hprof::info;
use heaptap_base::bytes::Bytes;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::unfinished::ExistingFile;
use heaptap_base::untrusted::sanitize_bytes;
use heaptap_capture::session::{
    self, CaptureError, Controls, HeapFile, HeapFileFate, HeapFileKind, RawTrace, Session,
    SessionId, part_prefix,
};
use heaptap_model::profile::DumpNumbers;
use heaptap_results::findings;
use heaptap_results::manifest::{self, JAVA_HEAP, JavaDump, JavaFlags, JavaKind, Original};
use heaptap_results::output::own;
use heaptap_results::publication::Staging;

/// State of a file.
struct Came {
    file: HeapFile,
    fate: HeapFileFate,
    pulled: Option<RawTrace>,
    whole: bool,
    /// The app might go on writing: the copy on the device stays.
    may_grow: bool,
}

/// Finishes a session of heap files whose script has ended.
///
/// # Errors
/// Returns an error if a file cannot be fetched or stored, in which case the copy on the device is
/// kept, or if there are no files.
pub(super) async fn finish(
    mut session: Session,
    plan: Plan,
    ended_by: EndedBy,
    existing: ExistingFile,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Finished, Failure> {
    let output = session.header().output.clone();
    let mut steps = plan.steps.clone();
    steps.extend(session.steps().iter().cloned().map(plan::step_at));
    steps.push(plan::step("trace-complete"));
    let fates = session.heap_file_fates().await?;
    let wanted = session.heap_files()?.clone();
    let mut came = Vec::new();
    for file in wanted.files {
        let mut fate = fates.get(&file.remote).cloned().unwrap_or_default();
        fate.complaint = fate.complaint.map(|words| sanitize_bytes(words.as_bytes()));
        tokio::select! {
            settled = session.settle_heap_file(&file, &fate) => settled?,
            () = session::stop_asked(controls) => {
                return Err(session.not_fetched("it was interrupted").into());
            }
        }
        let goal = output.join(&file.name);
        // A killed process might have noted a file that never got its name.
        let before = session.state().files.get(&file.name);
        let before = before.filter(|file| file.fits(&goal)).map(|file| file.size);
        let pulled = session.pull_heap_file(&file, &goal, controls).await?;
        let whole = pulled.is_some() && is_whole(&goal, file.kind).unwrap_or(false);
        // A file that has not grown since the last fetch counts as final.
        let new = pulled.as_ref().map(|p| p.contents.size);
        let may_grow = match new.filter(|size| !whole && Some(*size) != before) {
            Some(size) => session.may_grow(&file, &fate, size).await,
            None => false,
        };
        came.push(Came {
            file,
            fate,
            pulled,
            whole,
            may_grow,
        });
    }
    steps.push(plan::step("pulled"));
    if came.iter().all(|c| c.pulled.is_none()) {
        if let Some(why) = begun_late(&session, &came).await {
            return Err(session.not_fetched(why).into());
        }
        let is_refused = came.iter().any(|c| c.fate.complaint.is_some());
        if !is_refused && let Some(lost) = causes::lost_to_restart(&session, ended_by).await {
            return Err(lost);
        }
        let failure = why_nothing(&session, &came, Duration::from_millis(wanted.silence_ms));
        if session.remove_remote().await {
            session.forget()?;
        }
        // It is empty, or contains files of others.
        let _ = std::fs::remove_dir(&output);
        return Err(failure);
    }
    on_event(RecordEvent::Step(Step::Converting));
    let silence = Duration::from_millis(wanted.silence_ms);
    let mut manifest = describe(session.header(), &plan, None);
    manifest.dumps.java = dumps(&came, &output);
    let looked = look(&manifest.dumps.java, &output, &plan.names, controls).await;
    let unread = looked.iter().any(|l| matches!(l, Looked::Unread(_)));
    manifest.warnings = came
        .iter()
        .filter_map(|c| warning(c, session.id(), silence, &manifest.dumps.java))
        .collect();
    let incomplete = came.iter().any(|c| !c.whole);
    let mut classes: Vec<ErrorClass> = Vec::new();
    classes.extend(incomplete.then_some(ErrorClass::Incomplete));
    let mut java_heaps = Vec::new();
    let mut maps: Vec<UsedMap> = Vec::new();
    for (dump, looked) in manifest.dumps.java.iter_mut().zip(looked) {
        let findings = match looked {
            Looked::Read(read) => {
                let read = *read;
                dump.totals = Some(read.summary.totals);
                java_heaps.push(read.summary);
                add_used(&mut maps, read.maps);
                of_cut(read.findings, dump.flags.truncated)
            }
            Looked::Unread(error) => vec![unreadable(&error, dump)],
            Looked::NotWaitedFor => Vec::new(),
        };
        for finding in findings {
            dump.complete &= finding.class.is_none() || findings::is_of_names(finding.kind);
            classes.extend(finding.class);
            manifest.warnings.push(manifest::Warning {
                dumps: vec![dump.id()],
                ..finding.with_pid(dump.pid).into_warning()
            });
        }
    }
    let id = session.id().clone();
    let staging = Staging::new(&output, &part_prefix(&id));
    let staging = staging.map_err(|source| CaptureError::keep(&id, &output, source))?;
    let mut packets = Vec::new();
    let unwritten = packet_files::keep_maps(&mut manifest, &maps, staging.path(), &mut packets);
    manifest.warnings.extend(unwritten);
    steps.push(plan::step("converted"));
    manifest.steps = steps;
    let class = match java_heaps.is_empty() {
        true => ErrorClass::first_of(classes),
        false => ErrorClass::first_of(classes.into_iter().map(ErrorClass::with_result)),
    };
    manifest.outcome = manifest::Outcome::new(class, ended(ended_by));
    manifest.write(staging.path())?;
    // As for a trace: the directory could belong to another process by now.
    own(&output, &id)?;
    let published = blocking(move || staging.publish_synced(existing)).await;
    published.map_err(|unpublished| unpublished.of_session(&id))?;
    // The value of an unreadable file is unknown, and an app can complete its file later: the copy on the
    // device and the journal are kept, so that `stop` can try again.
    let late = begun_late(&session, &came).await;
    let is_late = late.is_some();
    if let Some(why) = late {
        warn(
            on_event,
            format!("{why}; run `heaptap stop {id}` to fetch it"),
        );
    }
    let may_grow = is_late || came.iter().any(|c| c.may_grow);
    if unread || may_grow {
        session.note_ended()?;
    } else if session.remove_remote().await
        && let Err(error) = session.forget()
    {
        let text = format!("the heap files are complete, but {error}; run `heaptap stop {id}`");
        warn(on_event, text);
    }
    Ok(Finished {
        session: id,
        output,
        manifest,
        packets,
        heaps: Vec::new(),
        java_heaps,
        java: plan.java,
        no_report: plan.no_report,
        class,
        journal: LastJournal::default(),
    })
}

/// Returns why a file that was empty must not be removed: it no longer is, or the device does not say.
async fn begun_late(session: &Session, came: &[Came]) -> Option<String> {
    for c in came.iter().filter(|c| c.pulled.is_none()) {
        let process = &c.file.process;
        match session.has_begun(&c.file).await {
            Ok(true) => return Some(format!("{process} began to write its heap only now")),
            Ok(false) => {}
            Err(error) => return Some(format!("cannot see whether {process} writes: {error}")),
        }
    }
    None
}

fn ended(by: EndedBy) -> Option<&'static str> {
    match by {
        EndedBy::Itself | EndedBy::Complete => Some("done"),
        EndedBy::Interrupted => Some("interrupted"),
        EndedBy::Stopped => Some("stopped"),
        EndedBy::Reboot => Some("lost"),
        EndedBy::Unknown => None,
    }
}

/// Returns one entry for each HPROF, and for each malloc output without one.
fn dumps(came: &[Came], output: &Path) -> Vec<JavaDump> {
    let mut dumps: Vec<JavaDump> = Vec::new();
    let mut numbers = DumpNumbers::default();
    let malloc: BTreeMap<u32, String> = came
        .iter()
        .filter(|c| c.file.kind == HeapFileKind::MallocInfo && c.pulled.is_some())
        .map(|c| (c.file.pid, c.file.name.clone()))
        .collect();
    for c in came {
        let is_hprof = c.file.kind == HeapFileKind::Hprof;
        let has_hprof = |other: &Came| {
            let file = &other.file;
            file.kind == HeapFileKind::Hprof && file.pid == c.file.pid && other.pulled.is_some()
        };
        let alone = !came.iter().any(has_hprof);
        let Some(pulled) = c.pulled.as_ref().filter(|_| is_hprof || alone) else {
            continue;
        };
        dumps.push(JavaDump {
            kind: JavaKind::Hprof,
            number: numbers.next(c.file.pid.into(), JAVA_HEAP),
            label: None,
            time_ns: None,
            time: is_hprof
                .then(|| written_at(&output.join(&c.file.name)))
                .flatten(),
            pid: u64::from(c.file.pid),
            process: c.file.process.clone(),
            heap: JAVA_HEAP.to_owned(),
            file: is_hprof.then(|| c.file.name.clone()),
            dominators: None,
            malloc_info: malloc.get(&c.file.pid).cloned(),
            original: is_hprof.then(|| Original {
                size: pulled.contents.size,
                sha256: pulled.contents.sha256.clone(),
            }),
            reason: None,
            totals: None,
            flags: JavaFlags {
                truncated: !c.whole,
                missing_packets: 0,
            },
            complete: c.whole,
        });
    }
    dumps
}

/// Returns the wall time in the header: milliseconds, after the magic and the size of IDs.
fn written_at(path: &Path) -> Option<OffsetDateTime> {
    let mut head = [0; 64];
    let mut file = std::fs::File::open(path).ok()?;
    let read = file.read(&mut head).ok()?;
    let magic = head[..read].iter().position(|b| *b == 0)?;
    let millis: [u8; 8] = head.get(magic + 5..magic + 13)?.try_into().ok()?;
    let nanos = i128::from(u64::from_be_bytes(millis)) * 1_000_000;
    OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()
}

/// Returns whether a file has its beginning and its end. For an HPROF this follows the records,
/// because the bytes of its last record can occur anywhere in the contents of objects.
fn is_whole(path: &Path, kind: HeapFileKind) -> std::io::Result<bool> {
    let bytes = Bytes::map(path)?;
    Ok(match kind {
        HeapFileKind::Hprof => info::is_whole(&bytes),
        HeapFileKind::MallocInfo => bytes.trim_ascii_end().ends_with(b"</malloc>"),
    })
}

/// Returns why there is no file at all: the first informative cause.
fn why_nothing(session: &Session, came: &[Came], silence: Duration) -> Failure {
    let serial = session.device().serial().to_owned();
    let told = came.iter().find(|c| c.fate.complaint.is_some());
    let late = came.iter().find(|c| c.fate.late);
    let error = match (told, late, came.first()) {
        (Some(c), _, _) => refused(serial, c),
        (None, Some(c), _) => HeapFileError::Silent {
            process: c.file.process.clone(),
            after: silence,
        },
        (None, None, Some(c)) if c.fate.gone => HeapFileError::Died {
            process: c.file.process.clone(),
        },
        (None, None, first) => HeapFileError::Nothing {
            serial,
            process: first.map_or_else(String::new, |c| c.file.process.clone()),
        },
    };
    error.into()
}

fn refused(serial: String, came: &Came) -> HeapFileError {
    let words = came.fate.complaint.clone().unwrap_or_default();
    HeapFileError::Refused {
        serial,
        process: came.file.process.clone(),
        not_debuggable: words.contains("SecurityException") || words.contains("not debuggable"),
        words,
    }
}

/// Returns a warning about a missing or incomplete file.
fn warning(
    came: &Came,
    id: &SessionId,
    silence: Duration,
    dumps: &[JavaDump],
) -> Option<manifest::Warning> {
    if came.whole {
        return None;
    }
    let process = &came.file.process;
    let words = came.fate.complaint.as_deref();
    let fetch_rest = format!("run `heaptap stop {id}` after {process} has written the rest");
    let (kind, message, help) = match (&came.pulled, words) {
        (None, Some(words)) => (
            "dumpheap-refused",
            format!("{process}: am dumpheap refused: {words}"),
            "check whether it is running and debuggable with `heaptap check`",
        ),
        (None, None) if came.fate.late => (
            "dumpheap-silent",
            format!("{process} wrote nothing for {} s", silence.as_secs()),
            "its main thread is blocked, or the process is frozen; bring it to the front and dump \
             again",
        ),
        (None, None) if came.fate.gone => (
            "dumpheap-died",
            format!("{process} ended during its heap dump"),
            "start it and dump again; check `adb logcat -s ActivityManager libc` for the reason",
        ),
        (None, None) if !came.fate.begun => (
            "dumpheap-skipped",
            format!("{process} was not dumped: dumping stopped before its turn"),
            "dump it again",
        ),
        (None, None) => (
            "dumpheap-empty",
            format!("{process} did not write a heap file"),
            "check `adb logcat -s ActivityManager ActivityThread` for the reason",
        ),
        (Some(_), _) if came.may_grow => (
            "heap-file-cut",
            format!(
                "{} is truncated: {process} stopped writing but is still running",
                came.file.name
            ),
            fetch_rest.as_str(),
        ),
        (Some(_), _) => (
            "heap-file-cut",
            format!(
                "{}: the file is truncated: the app or its device stopped writing",
                came.file.name
            ),
            "check whether the device storage is full or the app died during the dump, and dump \
             again",
        ),
    };
    let pid = u64::from(came.file.pid);
    let warning = manifest::Warning::new(kind, message);
    let of_process = dumps.iter().filter(|dump| dump.pid == pid);
    Some(manifest::Warning {
        dumps: of_process.map(JavaDump::id).collect(),
        ..warning.with_help(help).with_pid(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_among_the_bytes_of_an_object_is_no_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("app.hprof");
        let whole = |bytes: &[u8], kind| {
            std::fs::write(&path, bytes).unwrap();
            is_whole(&path, kind).unwrap()
        };
        let end = [0x2c, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut file = b"JAVA PROFILE 1.0.3\0\0\0\0\x04\0\0\0\0\0\0\0\0".to_vec();
        file.extend([0x1c, 0, 0, 0, 0, 0, 0, 0, 12]);
        file.extend(end);
        assert!(!whole(&file, HeapFileKind::Hprof), "3 bytes are to come");
        file.extend([0; 3]);
        assert!(!whole(&file, HeapFileKind::Hprof), "it has no end");
        file.extend(end);
        assert!(whole(&file, HeapFileKind::Hprof));
        assert!(whole(b"</heap></malloc>\n", HeapFileKind::MallocInfo));
        assert!(!whole(b"<malloc>", HeapFileKind::MallocInfo));
    }
}
