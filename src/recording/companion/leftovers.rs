//! Remains of a killed recorder: unfinished sessions of Java heaps and, if the recording is
//! collected into another directory, its companion files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::at_label::At;
use super::file::TimelineFile;
use super::summary::{FoundTimeline, section, warnings};
use super::{java, logcat};
use crate::device::Device;
use crate::folder;
use crate::heaps::java::{FOLDER, manifest_of};
use crate::observe::OurWindows;
use crate::patience;
use crate::recording::companion_options::Source;
use crate::recording::outcome::Finished;
use crate::results::file_names::is_below;
use crate::results::manifest::{Companions, Manifest, Warning};
use crate::session::{SessionId, SessionState, Store, part_prefix};
use crate::timeline::{self, Observation};

/// Returns whether `inner` records a part of `outer`: its Java heaps, into its directory.
pub(crate) fn is_part_of(inner: &SessionState, outer: &SessionState) -> bool {
    let folder = outer.header.output.join(FOLDER);
    inner.header.id != outer.header.id && inner.header.output.starts_with(folder)
}

/// Returns the directory of the recording that a finished session records a part of, if its own is in
/// such a place.
pub(crate) fn recording_of(part: &Finished) -> Option<PathBuf> {
    let folder = part.output.parent()?;
    let recording = folder.parent().filter(|_| folder.ends_with(FOLDER));
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
    whole.header.output.join(FOLDER).join(name)
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
    part.output = recording.join(FOLDER);
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
    folder::sync(recording).map_err(text)?;
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

/// Merges a part, if it has heaps, into the recording in `folder` that has these labels.
fn put(
    device: &Device,
    folder: &Path,
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
    let timeline = TimelineFile::timeline_in(folder).map_err(text)?;
    let at = At {
        device: device.clone(),
        folder: folder.to_owned(),
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

/// Returns the names of companion files in `folder`, without unrelated files.
fn beside(folder: &Path) -> Vec<PathBuf> {
    let found = FoundTimeline::read(folder);
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
    // It names the others, so it moves last.
    names.push(PathBuf::from(timeline::FILE));
    names.retain(|name| fs::symlink_metadata(folder.join(name)).is_ok());
    names
}

fn relocate(from: &Path, to: &Path, id: &SessionId) -> io::Result<()> {
    if patience::rename(from, to).is_ok() {
        return Ok(());
    }
    // Another disk.
    carry(from, to, id)
}

/// Moves files and directories by copying them. Each gets its name when its copy is complete. Then
/// the original is removed. Skips links, which recordings do not contain.
fn carry(from: &Path, to: &Path, id: &SessionId) -> io::Result<()> {
    let folder = to.parent().unwrap_or(Path::new("."));
    let parts = tempfile::Builder::new()
        .prefix(&part_prefix(id))
        .tempdir_in(folder)?;
    let part = parts.path().join("copy");
    copy(from, &part)?;
    patience::rename(&part, to)?;
    folder::sync(folder)?;
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
        folder::sync(to)?;
    } else if kind.is_file() {
        folder::copy_file(from, to)?;
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
    use crate::timeline::Kept;

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
}
