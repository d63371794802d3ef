//! `dump`: Java heaps by Perfetto's data source. Records as `record` does; a truncated or missing
//! dump is repeated with a larger buffer or more time, and reported.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::attempt::{attempt_path, record_once};
use super::capture_kind::{CaptureKind, JavaResults};
use super::companion::{DumpHeaps, HeapsAtLabel};
use super::events::{EventHandler, RecordEvent, RetryReason, Step};
use super::options::RecordOptions;
use super::outcome::{Finished, Recorded};
use super::plan::JavaPlan;
use crate::names::options::NameOptions;
use heaptap_adb::{Command, Device};
use heaptap_base::directory::RAW_TRACE;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::rename_retry;
use heaptap_capture::config::{JavaSpec, Targets, TimeoutFactor};
use heaptap_capture::session::{Controls, Store};
use heaptap_export::pprof::PprofOptions;
use heaptap_results::manifest::{FILE_NAME, JavaDump, Manifest};

/// Maximum number of attempts; an incomplete last dump is kept.
const ATTEMPTS: u32 = 3;
/// Replacement for a small buffer.
const SMALLEST_BUFFER: u64 = 64 << 20;
/// Maximum size of the buffer, to leave memory to the device.
const MAX_BUFFER_SIZE: u64 = 2 << 30;
/// Time for asking whether a process is still there.
const QUICK: Duration = Duration::from_secs(10);

/// Dumps Java heaps.
///
/// # Errors
/// Returns the error of the stage that failed; recorded data remain on the device, and the error
/// names the command that fetches them.
pub async fn dump(
    device: &Device,
    store: &Store,
    options: &RecordOptions,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Recorded, Failure> {
    let mut options = options.clone();
    let mut attempt = 1;
    let mut earlier: Option<Finished> = None;
    loop {
        let recorded =
            match record_once(device, store, &options, for_label(), controls, on_event).await {
                Ok(recorded) => recorded,
                Err(failure) => return or_earlier(failure, earlier),
            };
        let Recorded::Finished(mut finished) = recorded else {
            return Ok(recorded);
        };
        let CaptureKind::Java(spec, results) = &options.kind else {
            return Ok(Recorded::Finished(finished));
        };
        let next = match &finished.java {
            Some(plan) if attempt < ATTEMPTS => next_attempt(spec, plan, &finished.manifest),
            _ => None,
        };
        let Some((reason, spec)) = next else {
            return Ok(Recorded::Finished(finished));
        };
        if !anybody_left(device, &finished.manifest).await {
            return Ok(Recorded::Finished(finished));
        }
        // Its directory is renamed, so its session ends here.
        finished.journal.forget()?;
        options.kind = CaptureKind::Java(spec, *results);
        let output = finished.output.clone();
        let (kept, next) = match reason {
            // It contains no dump worth keeping.
            RetryReason::NothingCame if discard(&output) => (None, output),
            _ => {
                let (kept, next) = rename_attempt(store, output, attempt);
                (Some(kept), next)
            }
        };
        options.output = Some(next);
        on_event(RecordEvent::Step(Step::DumpAgain {
            why: reason,
            kept: kept.clone(),
        }));
        earlier = kept.map(|kept| Finished {
            output: kept,
            ..*finished
        });
        attempt += 1;
    }
}

/// Returns the failure of a repetition, with the directory of the previous attempt. If the process
/// has ended, returns the previous attempt.
pub(super) fn or_earlier(
    mut failure: Failure,
    earlier: Option<Finished>,
) -> Result<Recorded, Failure> {
    match earlier {
        Some(earlier) if failure.class == ErrorClass::NotEligible => {
            Ok(Recorded::Finished(Box::new(earlier)))
        }
        Some(earlier) => {
            let kept = earlier.output.display();
            failure
                .hints
                .push(format!("the previous, incomplete recording is in {kept}"));
            Err(failure)
        }
        None => Err(failure),
    }
}

/// Returns the function that dumps the heaps of a recording at a label.
pub(super) fn for_label() -> DumpHeaps {
    Arc::new(|wanted| Box::pin(dump_at_label(wanted)))
}

/// Returns the options of a dump into `output`, with names as for another recording.
pub fn options(
    spec: JavaSpec,
    output: PathBuf,
    pprof: PprofOptions,
    names: NameOptions,
) -> RecordOptions {
    let kind = CaptureKind::Java(spec, JavaResults::default());
    RecordOptions {
        output: Some(output),
        pprof,
        ..RecordOptions::new(kind, names)
    }
}

async fn dump_at_label(wanted: HeapsAtLabel) -> Result<Recorded, Failure> {
    let spec = JavaSpec {
        targets: Targets {
            pids: wanted.pids,
            ..Targets::default()
        },
        ..JavaSpec::default()
    };
    let options = options(spec, wanted.output, wanted.pprof, wanted.names);
    // This session has no control channel: when the recording ends, it waits for this dump or
    // leaves it to `stop`.
    let (_ask, mut controls) = tokio::sync::mpsc::unbounded_channel();
    let quiet: EventHandler = Arc::new(|_| {});
    dump(
        &wanted.device,
        &wanted.store,
        &options,
        &mut controls,
        &quiet,
    )
    .await
}

/// Removes the directory of an attempt without dumps, unless it contains other files.
fn discard(output: &Path) -> bool {
    const OURS: [&str; 2] = [RAW_TRACE, FILE_NAME];
    let is_ours = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| OURS.iter().any(|name| entry.file_name() == *name))
    };
    if !std::fs::read_dir(output).is_ok_and(|mut all| all.all(is_ours)) {
        return false;
    }
    for name in OURS {
        // Remaining files keep the directory.
        let _ = std::fs::remove_file(output.join(name));
    }
    std::fs::remove_dir(output).is_ok()
}

/// Renames the directory of an attempt that is repeated, so that the requested directory gets the
/// complete results. Returns where its results are, and the directory for the next attempt: another
/// one if a program is in the way, or if `stop` still has to finish a session there.
pub(super) fn rename_attempt(store: &Store, output: PathBuf, attempt: u32) -> (PathBuf, PathBuf) {
    let kept = aside(&output, attempt);
    let is_free = store.list().is_ok_and(|(sessions, unreadable)| {
        let mut outputs = sessions.iter().map(|state| &state.header.output);
        unreadable.is_empty() && !outputs.any(|known| known.starts_with(&output))
    });
    match is_free && rename_retry::rename(&output, &kept).is_ok() {
        true => (kept, output),
        false => {
            let mut others = (attempt + 1..).map(|number| attempt_path(&output, number));
            let next = others.find(|path| !path.exists());
            (output.clone(), next.unwrap_or(output))
        }
    }
}

/// Returns the directory for an attempt that is repeated: `out-incomplete`, next to `out`.
pub fn aside(output: &Path, attempt: u32) -> PathBuf {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let number = |n: u32| match n {
        1 => format!("{name}-incomplete"),
        n => format!("{name}-incomplete-{n}"),
    };
    (attempt..)
        .map(|n| output.with_file_name(number(n)))
        .find(|path| !path.exists())
        .unwrap_or_else(|| output.with_file_name(number(attempt)))
}

/// Returns the reason to retry; `None` if the dump is complete or a retry would not help.
fn next_attempt(
    spec: &JavaSpec,
    plan: &JavaPlan,
    manifest: &Manifest,
) -> Option<(RetryReason, JavaSpec)> {
    if !manifest.outcome.ended_as_planned() || plan.oom_wait_s.is_some() {
        return None;
    }
    let mut spec = spec.clone();
    let cut = |dump: &&JavaDump| dump.flags.truncated || dump.flags.missing_packets > 0;
    let cut: Vec<&JavaDump> = manifest.dumps.java.iter().filter(cut).collect();
    let lost = manifest
        .warnings
        .iter()
        .any(|w| w.kind == "service-lost-data");
    let factor = spec.timeout_factor.0;
    let none = manifest.dumps.java.is_empty();
    let gaps = cut.iter().any(|d| d.flags.missing_packets > 0);
    if gaps || lost && (none || !cut.is_empty()) {
        let larger = plan.buffer_bytes.saturating_mul(4);
        let buffer_bytes = larger.clamp(SMALLEST_BUFFER, MAX_BUFFER_SIZE);
        if buffer_bytes <= plan.buffer_bytes {
            return None;
        }
        spec.buffer_bytes = Some(buffer_bytes);
        return Some((RetryReason::LargerBuffer { buffer_bytes }, spec));
    }
    if !cut.is_empty() {
        let times = factor.saturating_mul(3);
        spec.timeout_factor = TimeoutFactor(times);
        return Some((RetryReason::MoreTime { times }, spec));
    }
    let unexplained = manifest.warnings.iter().any(|w| w.kind == "no-dump");
    if unexplained && plan.ends_when_done && factor == 1 {
        spec.timeout_factor = TimeoutFactor(5);
        return Some((RetryReason::NothingCame, spec));
    }
    None
}

/// Returns whether a process that should be dumped again is still running; also true if the device
/// does not answer.
async fn anybody_left(device: &Device, manifest: &Manifest) -> bool {
    let pids: Vec<u32> = manifest.targets.iter().filter_map(|t| t.pid).collect();
    let paths = pids.iter().map(|pid| format!("/proc/{pid}"));
    let command = Command::program("ls").arg("-d").args(paths);
    match device.run(&command, QUICK).await {
        Ok(output) => output.stdout.starts_with(b"/proc/"),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_results::manifest::{JAVA_HEAP, JavaFlags, JavaKind, Warning};

    fn manifest(flags: JavaFlags, warning: Option<&str>) -> Manifest {
        let mut manifest = Manifest::default();
        manifest.outcome.ended_by = Some("done".to_owned());
        manifest.dumps.java.push(JavaDump {
            kind: JavaKind::HeapGraph,
            number: 1,
            label: None,
            time_ns: Some(1),
            time: None,
            pid: 7,
            process: "com.example.app".to_owned(),
            heap: JAVA_HEAP.to_owned(),
            file: None,
            dominators: None,
            malloc_info: None,
            original: None,
            reason: None,
            totals: None,
            flags,
            complete: false,
        });
        manifest
            .warnings
            .extend(warning.map(|kind| Warning::new(kind, String::new())));
        manifest
    }

    fn plan(buffer_bytes: u64) -> JavaPlan {
        JavaPlan {
            ends_when_done: true,
            watch: false,
            oom_wait_s: None,
            buffer_bytes,
            dominators: false,
        }
    }

    fn reason(manifest: &Manifest, buffer_bytes: u64) -> Option<RetryReason> {
        let spec = JavaSpec::default();
        next_attempt(&spec, &plan(buffer_bytes), manifest).map(|(reason, _)| reason)
    }

    const CUT: JavaFlags = JavaFlags {
        truncated: true,
        missing_packets: 0,
    };

    #[test]
    fn a_directory_in_which_a_session_is_left_is_not_renamed() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::in_directory(&dir.path().join("state")).unwrap();
        let output = dir.path().join("out");
        std::fs::create_dir(&output).unwrap();
        let header = serde_json::json!({
            "event": "opened", "version": 1, "id": "abcdefgh", "serial": "S", "server": "",
            "boot_id": "f00d", "remote_path": "/x", "removable": true,
            "time": "2026-11-20T09:00:00Z", "names": [], "pids": [], "stop_limit_ms": 1,
            "write_period_ms": 1, "snapshots": "impossible", "config": "",
            "output": output.join("java"), "plan": null,
        });
        let journal = store.directory().join("abcdefgh.jsonl");
        std::fs::write(&journal, format!("{header}\n")).unwrap();
        let next = dir.path().join("out-2");
        let aside = rename_attempt(&store, output.clone(), 1);
        assert_eq!(aside, (output.clone(), next));
        std::fs::remove_file(journal).unwrap();
        let kept = dir.path().join("out-incomplete");
        let aside = rename_attempt(&store, output.clone(), 1);
        assert_eq!(aside, (kept, output));
    }

    #[test]
    fn what_was_lost_in_a_buffer_gets_a_larger_one_up_to_a_limit() {
        let lost = manifest(CUT, Some("service-lost-data"));
        let larger = |buffer_bytes| Some(RetryReason::LargerBuffer { buffer_bytes });
        assert_eq!(reason(&lost, 64 << 20), larger(256 << 20));
        assert_eq!(reason(&lost, 1 << 30), larger(MAX_BUFFER_SIZE));
        assert_eq!(reason(&lost, MAX_BUFFER_SIZE), None);
        let gap = JavaFlags {
            truncated: false,
            missing_packets: 3,
        };
        assert_eq!(reason(&manifest(gap, None), 1 << 20), larger(64 << 20));
        let mut nothing = lost.clone();
        nothing.dumps.java.clear();
        assert_eq!(reason(&nothing, 64 << 10), larger(64 << 20));
    }

    #[test]
    fn what_was_not_done_gets_more_time_and_what_never_began_too() {
        let more = Some(RetryReason::MoreTime { times: 3 });
        assert_eq!(reason(&manifest(CUT, None), 1 << 20), more);
        let whole = JavaFlags::default();
        assert_eq!(reason(&manifest(whole, None), 1 << 20), None);
        let none = manifest(whole, Some("no-dump"));
        assert_eq!(reason(&none, 1 << 20), Some(RetryReason::NothingCame));
    }

    #[test]
    fn nobody_is_made_to_wait_who_ended_it_or_whose_phone_failed() {
        for ended_by in ["interrupted", "stopped", "lost", "size-limit"] {
            let mut cut = manifest(CUT, Some("service-lost-data"));
            cut.outcome.ended_by = Some(ended_by.to_owned());
            assert_eq!(reason(&cut, 1 << 20), None, "{ended_by}");
        }
    }

    #[test]
    fn an_attempt_steps_aside_without_treading_on_another() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        assert_eq!(aside(&out, 1), directory.path().join("out-incomplete"));
        std::fs::create_dir(directory.path().join("out-incomplete")).unwrap();
        assert_eq!(aside(&out, 1), directory.path().join("out-incomplete-2"));
        assert_eq!(aside(&out, 2), directory.path().join("out-incomplete-2"));
    }
}
