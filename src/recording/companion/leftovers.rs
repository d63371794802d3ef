//! Remains of a killed recorder: unfinished sessions of Java heaps and, if the recording is
//! collected into another directory, its companion files.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::at_label::{At, name_of};
use super::file::TimelineFile;
use super::summary::{FoundTimeline, section, warnings};
use super::{java, logcat};
use crate::heaps::java::{DIRECTORY, manifest_of};
use crate::recording::companion_options::Source;
use crate::recording::conversion::tracked::WHAT as TRACKED;
use crate::recording::outcome::Finished;
use heaptap_adb::Device;
use heaptap_base::directory;
use heaptap_base::rename_retry;
use heaptap_base::unfinished::remove_all;
use heaptap_capture::observe::OurWindows;
use heaptap_capture::session::{SessionId, SessionState, Store, part_prefix};
use heaptap_model::timeline::{self, Entry, Kept, Observation, Timeline};
use heaptap_results::file_names::is_below;
use heaptap_results::manifest::{Companions, Manifest, Warning};

/// Directories of captures at labels, except Java heaps, with the ends of their files.
const CAPTURES: [(&str, &str); 4] = [
    ("meminfo", "txt"),
    ("smaps", "smaps.gz"),
    ("malloc-info", "xml"),
    (TRACKED, "real.gz"),
];

/// Returns whether `inner` records a part of `outer`: its Java heaps, into its directory.
pub(crate) fn is_part_of(inner: &SessionState, outer: &SessionState) -> bool {
    let directory = outer.header.output.join(DIRECTORY);
    inner.header.id != outer.header.id && inner.header.output.starts_with(directory)
}

/// Returns the directory of the recording that a finished session records a part of, if its own is in
/// such a place.
pub(crate) fn recording_of(part: &Finished) -> Option<PathBuf> {
    let directory = part.output.parent()?;
    let recording = directory
        .parent()
        .filter(|_| directory.ends_with(DIRECTORY));
    recording.map(Path::to_owned)
}

/// Returns the sessions that record a part of `whole`.
pub(crate) fn parts_of(store: &Store, whole: &SessionState) -> Vec<SessionState> {
    let listed = store.list().map(|(all, _)| all).unwrap_or_default();
    let parts = listed.into_iter().filter(|one| is_part_of(one, whole));
    parts.collect()
}

/// Returns the directory of a part within that of `whole`.
pub(crate) fn part_output(part: &SessionState, whole: &SessionState) -> PathBuf {
    let name = part.header.output.file_name().unwrap_or_default();
    whole.header.output.join(DIRECTORY).join(name)
}

/// Merges a finished part as its recorder would have done, and ends its session. Blocks. If that
/// fails, returns the reason, and leaves the session for `stop`.
pub(crate) fn join(
    device: &Device,
    whole: &SessionState,
    part: &mut Finished,
) -> Result<(), String> {
    let labels = whole.labels.iter();
    let labels = labels.map(|label| (label.label.clone(), label.boot_ns));
    put(device, &whole.header.output, labels, part)?;
    end(part)
}

/// Merges a part whose recording is finished, lists it there, and ends its session. Blocks. Other
/// dumps stay as they are. If that fails, returns the reason as [`join`] does.
pub(crate) fn join_finished(
    store: &Store,
    device: &Device,
    recording: &Path,
    part: &mut Finished,
) -> Result<(), String> {
    let known = manifest_of(recording).map_err(text)?;
    let Some(id) = known.and_then(|manifest| manifest.session) else {
        return Ok(());
    };
    let id = id.id.parse().map_err(text)?;
    // Several parts can be stopped at once.
    let merged = store.while_locked(&id, || merge(device, recording, part));
    if !merged.map_err(text)?? {
        return Ok(());
    }
    end(part)?;
    part.output = recording.join(DIRECTORY);
    part.manifest = Manifest::read(&part.output).map_err(text)?;
    Ok(())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Merges a part into a finished recording. Returns whether there was something to merge.
fn merge(device: &Device, recording: &Path, part: &Finished) -> Result<bool, String> {
    let Some(mut manifest) = manifest_of(recording).map_err(text)? else {
        return Ok(false);
    };
    let Some(known) = manifest.companion.take().filter(|_| has_heaps(part)) else {
        return Ok(false);
    };
    let labels = manifest.labels.iter();
    let labels = labels.map(|label| (label.name.clone(), label.requested_ns));
    put(device, recording, labels, part)?;
    java::put_names(recording).map_err(text)?;
    let is_asked = |source: &Source| known.with.iter().any(|word| word == source.word());
    let asked = Source::ALL.into_iter().filter(is_asked).collect();
    let all = section(recording, asked).map(|all| Companions {
        collections: known.collections,
        ..all
    });
    let is_kept = |warning: &Warning| !warning.kind.starts_with("companion-");
    manifest.warnings.retain(is_kept);
    manifest.warnings.extend(all.iter().flat_map(warnings));
    manifest.companion = all;
    manifest.write(recording).map_err(text)?;
    directory::sync(recording).map_err(text)?;
    Ok(true)
}

fn has_heaps(part: &Finished) -> bool {
    !part.manifest.dumps.java.is_empty()
}

/// Ends the session of a merged part. One without heaps keeps its directory: nothing of it was merged.
fn end(part: &mut Finished) -> Result<(), String> {
    match has_heaps(part) {
        true => java::end(part),
        false => part.journal.forget().map_err(text),
    }
}

/// Merges a part, if it has heaps, into the recording in `directory` that has these labels.
fn put(
    device: &Device,
    directory: &Path,
    mut labels: impl Iterator<Item = (String, u64)>,
    part: &Finished,
) -> Result<(), String> {
    if !has_heaps(part) {
        return Ok(());
    }
    let name = part.output.file_name().unwrap_or_default();
    // `02-after-login`: labels are identified by their position.
    let name = name.to_string_lossy();
    let number = name.split('-').next().and_then(|n| n.parse::<u32>().ok());
    let number = number.ok_or_else(|| "its directory was renamed".to_owned())?;
    let place = (number as usize).checked_sub(1);
    let (label, boot_ns) = place
        .and_then(|place| labels.nth(place))
        .unwrap_or_default();
    let timeline = TimelineFile::timeline_in(directory).map_err(text)?;
    let at = At {
        device: device.clone(),
        directory: directory.to_owned(),
        number,
        label,
        boot_ns,
        processes: Vec::new(),
        timeline,
        windows: OurWindows::default(),
    };
    java::put(&at, part, &mut java::Summed::default())?;
    at.timeline.finish().map_err(text)?;
    Ok(())
}

/// Moves the companion files of a recording to another directory. Skips files that a killed process
/// has already moved. Files that cannot be moved remain, and the first error is returned.
pub(crate) fn move_along(from: &Path, to: &Path, id: &SessionId) -> Result<(), String> {
    let names = beside(from);
    let mut outcome = Ok(());
    for name in names {
        // It lists the others, which a repeated command has to find.
        if name == Path::new(timeline::FILE) && outcome.is_err() {
            break;
        }
        let (source, goal) = (from.join(&name), to.join(&name));
        if fs::symlink_metadata(&goal).is_ok() {
            // Copied, but not removed yet.
            let _ = remove_copied(&source, &goal);
            continue;
        }
        if let Err(error) = relocate(&source, &goal, id)
            && outcome.is_ok()
        {
            let (source, to) = (source.display(), to.display());
            let text = format!("cannot move {source} to {to}; it stays in the old directory");
            outcome = Err(format!("{text}: {error}"));
        }
    }
    outcome
}

/// Removes unfinished captures, what is left of merged Java heaps, and empty directories. The caller
/// owns the session, so no other process writes there.
pub(crate) fn sweep(directory: &Path) {
    for (kind, _) in CAPTURES {
        remove_all(&directory.join(kind));
    }
    java::remove_left(&directory.join(DIRECTORY));
    remove_empty(directory);
}

/// Removes the directories of companion data that are empty.
pub(crate) fn remove_empty(directory: &Path) {
    let java = directory.join(DIRECTORY);
    for entry in fs::read_dir(&java).into_iter().flatten().flatten() {
        let _ = fs::remove_dir(entry.path());
    }
    for kind in CAPTURES.iter().map(|(kind, _)| *kind).chain([DIRECTORY]) {
        let _ = fs::remove_dir(directory.join(kind));
    }
}

/// Removes the timeline if it has no line, for a recording without a trace: the directory can then be
/// used again.
pub(crate) fn remove_unwritten(directory: &Path) {
    let path = directory.join(timeline::FILE);
    if fs::symlink_metadata(&path).is_ok_and(|file| file.is_file() && file.len() == 0) {
        let _ = fs::remove_file(path);
    }
}

/// Adds complete files to the timeline that a killed recorder had not listed yet. `moments` are the
/// labels of the session with their times, in their order, and the end without a label.
pub(super) fn adopt(
    directory: &Path,
    moments: &[(&str, u64)],
    pids: &BTreeSet<u32>,
    known: &mut Timeline,
    timeline: &TimelineFile,
) {
    let listed = |entry: &Entry| match &entry.seen {
        Observation::Captured(kept) => Some(kept.file.clone()),
        _ => None,
    };
    let listed: HashSet<String> = known.entries.iter().filter_map(listed).collect();
    let mut pids = pids.clone();
    pids.extend(known.entries.iter().map(|entry| entry.pid));
    pids.remove(&0);
    // Names of files have a process only if there were several.
    let only_pid = pids.first().copied().filter(|_| pids.len() == 1);
    for (kind, end) in CAPTURES {
        let entries = fs::read_dir(directory.join(kind)).into_iter().flatten();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let is_file = entry.file_type().is_ok_and(|it| it.is_file());
            let Some(name) = name.to_str().filter(|_| is_file) else {
                continue;
            };
            let file = format!("{kind}/{name}");
            let of = (1..).zip(moments).find_map(|(number, &(label, boot_ns))| {
                let rest = name.strip_prefix(&name_of(number, label))?;
                let pid = pid_in(rest, end)?.or(only_pid).unwrap_or_default();
                Some((number, label, boot_ns, pid))
            });
            if let Some((number, label, boot_ns, pid)) = of.filter(|_| !listed.contains(&file)) {
                let seen = Observation::Captured(Kept {
                    what: kind.to_owned(),
                    file,
                    label: label.to_owned(),
                    number,
                });
                let entry = Entry {
                    boot_ns,
                    pid,
                    cost: None,
                    seen,
                };
                timeline.add(&entry);
                known.entries.push(entry);
            }
        }
    }
}

/// Returns the process ID in a file name after its label, if there is one: `-123.txt`, `.txt`,
/// `~2.txt`; `None` if it is another file.
fn pid_in(rest: &str, end: &str) -> Option<Option<u32>> {
    let rest = rest.strip_suffix(end)?.strip_suffix('.')?;
    let (pid, copy) = rest.split_once('~').unwrap_or((rest, "1"));
    copy.parse::<u32>().ok()?;
    match pid.strip_prefix('-') {
        Some(pid) => pid.parse().ok().map(Some),
        None => pid.is_empty().then_some(None),
    }
}

/// Returns the names of companion files and of directories of captures in `directory`.
fn beside(directory: &Path) -> Vec<PathBuf> {
    let found = FoundTimeline::read(directory);
    let mut names = vec![PathBuf::from(logcat::FILE)];
    for entry in found.into_iter().flat_map(|found| found.timeline.entries) {
        let Observation::Captured(kept) = entry.seen else {
            continue;
        };
        // One directory per kind: `meminfo/02-after-login.txt`.
        let Some((kind, _)) = kept.file.split_once('/') else {
            continue;
        };
        let kind = PathBuf::from(kind);
        if is_below(&kept.file) && !names.contains(&kind) {
            names.push(kind);
        }
    }
    // Files that a killed recorder had not listed.
    for kind in CAPTURES.map(|(kind, _)| PathBuf::from(kind)) {
        if !names.contains(&kind) {
            names.push(kind);
        }
    }
    // It names the others, so it moves last.
    names.push(PathBuf::from(timeline::FILE));
    names.retain(|name| fs::symlink_metadata(directory.join(name)).is_ok());
    names
}

fn relocate(from: &Path, to: &Path, id: &SessionId) -> io::Result<()> {
    if rename_retry::rename(from, to).is_ok() {
        return Ok(());
    }
    // Another disk.
    carry(from, to, id)
}

/// Moves files and directories by copying them. Each gets its name when its copy is complete. Then
/// the original is removed. Skips links, which recordings do not contain.
fn carry(from: &Path, to: &Path, id: &SessionId) -> io::Result<()> {
    let directory = to.parent().unwrap_or(Path::new("."));
    let parts = tempfile::Builder::new()
        .prefix(&part_prefix(id))
        .tempdir_in(directory)?;
    let part = parts.path().join("copy");
    copy(from, &part)?;
    rename_retry::rename(&part, to)?;
    directory::sync(directory)?;
    remove_copied(from, to)
}

/// Copies files and directories, and syncs them.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        directory::sync(to)?;
    } else if kind.is_file() {
        directory::copy_file(from, to)?;
    }
    Ok(())
}

/// Removes what was copied. A directory with other files stays.
fn remove_copied(from: &Path, to: &Path) -> io::Result<()> {
    let original = fs::symlink_metadata(from)?;
    if !original.is_dir() {
        let is_copied = fs::metadata(to).is_ok_and(|copy| copy.len() == original.len());
        return match original.is_file() && is_copied {
            true => fs::remove_file(from),
            false => Ok(()),
        };
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        remove_copied(&entry.path(), &to.join(entry.file_name()))?;
    }
    let _ = fs::remove_dir(from);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_results::manifest::{JavaDump, JavaFlags, JavaKind};

    #[test]
    fn what_stands_beside_moves_and_nothing_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("meminfo")).unwrap();
        fs::create_dir_all(from.join("mine")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("meminfo/01-a.txt"), "x").unwrap();
        fs::write(from.join("logcat.txt"), "y").unwrap();
        fs::write(from.join("mine/notes"), "z").unwrap();
        let timeline = TimelineFile::timeline_in(&from).unwrap();
        for file in [
            "meminfo/01-a.txt",
            "../mine/notes",
            "mine/../../x",
            "./mine/notes",
        ] {
            let kept = Kept {
                what: "meminfo".to_owned(),
                file: file.to_owned(),
                label: String::new(),
                number: 1,
            };
            timeline.see(1, 7, Observation::Captured(kept));
        }
        drop(timeline);
        move_along(&from, &to, &SessionId::random()).unwrap();
        assert_eq!(fs::read(to.join("meminfo/01-a.txt")).unwrap(), b"x");
        assert!(to.join("logcat.txt").exists() && to.join("memory.jsonl").exists());
        assert!(from.join("mine/notes").exists() && !from.join("meminfo").exists());
        assert!(!to.join("mine").exists());
    }

    #[test]
    fn to_another_disk_it_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("deep/er")).unwrap();
        fs::write(from.join("deep/er/file"), "x").unwrap();
        carry(&from, &to, &SessionId::random()).unwrap();
        assert_eq!(fs::read(to.join("deep/er/file")).unwrap(), b"x");
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn files_that_a_killed_recorder_did_not_list_are_adopted() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        for kind in ["meminfo", "smaps"] {
            fs::create_dir(directory.join(kind)).unwrap();
        }
        for file in [
            "meminfo/01-a.txt",
            "meminfo/02-end.txt",
            "meminfo/mine.txt",
            "smaps/01-a-77.smaps.gz",
            "smaps/01-a~2.smaps.gz",
            "smaps/01-ab.smaps.gz",
            "meminfo/01-a.txt.swp",
            "meminfo/01-a.html",
        ] {
            fs::write(directory.join(file), "whole").unwrap();
        }
        let timeline = TimelineFile::timeline_in(directory).unwrap();
        let mut known = Timeline::default();
        known.entries.push(Entry {
            boot_ns: 3,
            pid: 9,
            cost: None,
            seen: Observation::Captured(Kept {
                what: "meminfo".to_owned(),
                file: "meminfo/01-a.txt".to_owned(),
                label: "a".to_owned(),
                number: 1,
            }),
        });
        let moments = [("a", 5), ("", 8)];
        adopt(
            directory,
            &moments,
            &BTreeSet::from([9]),
            &mut known,
            &timeline,
        );
        timeline.finish().unwrap();
        let found = FoundTimeline::read(directory).unwrap().timeline.entries;
        let mut told: Vec<_> = found
            .iter()
            .map(|entry| match &entry.seen {
                Observation::Captured(kept) => (kept.file.as_str(), entry.pid, entry.boot_ns),
                seen => panic!("{seen:?}"),
            })
            .collect();
        told.sort_unstable();
        let expected = [
            ("meminfo/02-end.txt", 9, 8),
            ("smaps/01-a-77.smaps.gz", 77, 5),
            ("smaps/01-a~2.smaps.gz", 9, 5),
        ];
        assert_eq!(told, expected);
        assert_eq!(known.entries.len(), 1 + expected.len());
    }

    #[test]
    fn merged_heaps_and_empty_directories_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let java = directory.path().join(DIRECTORY);
        let dump = |time_ns| JavaDump {
            kind: JavaKind::HeapGraph,
            number: 1,
            label: None,
            time_ns: Some(time_ns),
            time: None,
            pid: 7,
            process: String::new(),
            heap: String::new(),
            file: None,
            dominators: None,
            malloc_info: None,
            original: None,
            reason: None,
            totals: None,
            flags: JavaFlags::default(),
            complete: true,
        };
        let write = |name: &str, dumps: Vec<JavaDump>| {
            let directory = java.join(name);
            fs::create_dir_all(&directory).unwrap();
            let mut whole = Manifest::default();
            whole.dumps.java = dumps;
            whole.write(&directory).unwrap();
        };
        write("", vec![dump(1), dump(2)]);
        write("01-a", vec![dump(1)]);
        write("02-end", vec![dump(3)]);
        for empty in ["java/03-b", "meminfo", "mine"] {
            fs::create_dir(directory.path().join(empty)).unwrap();
        }
        sweep(directory.path());
        let exists = |name: &str| directory.path().join(name).exists();
        assert!(!exists("java/01-a") && !exists("java/03-b") && !exists("meminfo"));
        assert!(exists("java/02-end/manifest.json") && exists("java/manifest.json"));
        assert!(exists("mine"));
    }
}
