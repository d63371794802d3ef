//! What a recording's manifest knows and its trace does not: session, device, targets, labels.
//! Carried over when the trace is converted again.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::manifest::{self, DumpKey, Label, Manifest, ManifestError};
use crate::bytes::{open_regular, sha256_of_first};
use crate::error::Classified as _;
use crate::folder::{DEOBFUSCATION, SYMBOLIZED_TRACE, SYMBOLS};
use crate::import::OpenTrace;
use crate::units::thousands;
use crate::untrusted::shell::quoted_path;

/// A dump by what stays when it is converted again.
type Key = (u64, String, Option<u64>, Option<u64>);

fn key(dump: &DumpKey<'_>) -> Key {
    (
        dump.pid,
        dump.heap.to_owned(),
        dump.written_ns,
        dump.time_ns,
    )
}

/// A label with the dumps it was bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedLabel {
    name: String,
    requested_ns: u64,
    dumps: Vec<(Key, u64)>,
}

/// A recording's manifest.
#[derive(Debug)]
pub struct Recorded(Manifest);

/// The manifest of the recording that `input` is or lies in: its folder, or the trace that
/// the manifest beside it names.
///
/// # Errors
/// Where there is a manifest, but not one that can be read.
pub fn beside(input: &Path) -> Result<Option<Recorded>, ManifestError> {
    let Some((recorded, trace)) = with_trace(input)? else {
        return Ok(None);
    };
    // Another file took the place of the one that was recorded.
    let size = std::fs::metadata(trace).map(|m| m.len());
    if size.ok() != recorded.trace.as_ref().map(|trace| trace.size) {
        return Ok(None);
    }
    Ok(Some(Recorded(recorded)))
}

/// Notes in the trace of a recording that a part of it is gone, or is not what was recorded.
pub fn compare(input: &Path, traces: &mut [OpenTrace]) {
    if let [trace] = traces {
        trace.damage = trace.damage.take().or_else(|| damage(input));
    }
}

fn damage(input: &Path) -> Option<String> {
    let is_named = input.file_name() == Some(SYMBOLIZED_TRACE.as_ref());
    let input = if is_named { input.parent()? } else { input };
    let symbolized = input.join(SYMBOLIZED_TRACE);
    let is_symbolized = symbolized.is_file();
    let (recorded, raw) = with_trace(input).ok()??;
    if is_symbolized && lacks_names(input) {
        return Some(match raw.is_file() {
            true => format!(
                "its end is missing; `heaptap symbolize {}` makes it anew",
                quoted_path(input)
            ),
            false => "its end is missing".to_owned(),
        });
    }
    // Of a trace that was cut when it was recorded, it lacks the last packet.
    if is_symbolized && !recorded.outcome.complete {
        return None;
    }
    let trace = recorded.trace.as_ref()?;
    let file = if is_symbolized { &symbolized } else { &raw };
    let size = std::fs::metadata(file).ok()?.len();
    if size < trace.size {
        let beside = match has_all_profiles(&recorded, &raw) {
            true => " (*.pb.gz beside it have all dumps)",
            false => "",
        };
        let (size, all) = (thousands(size), thousands(trace.size));
        return Some(format!(
            "it has {size} of the {all} bytes that were recorded{beside}"
        ));
    }
    // What stands behind it, such as packets of names, is nobody's.
    let hash = sha256_of_first(file, trace.size).ok()?;
    let what = "its bytes are not those that were recorded (their SHA-256 is in manifest.json)";
    (hash != trace.sha256).then(|| what.to_owned())
}

/// Whether each native dump of a recording has its profile beside the trace.
fn has_all_profiles(recorded: &Manifest, raw: &Path) -> bool {
    let files = recorded.dumps.native.iter().filter_map(|d| d.file.as_ref());
    let files = files.filter_map(|file| Path::new(file).file_name());
    let mut there = files
        .map(|file| raw.with_file_name(file).is_file())
        .peekable();
    there.peek().is_some() && there.all(|is_there| is_there)
}

/// Whether a folder's symbolized trace ends before the names that are its last part do.
pub fn lacks_names(folder: &Path) -> bool {
    /// So much of an end is no other's.
    const TAIL: u64 = 4096;
    let tail = |name: &str| -> Option<Vec<u8>> {
        let mut file = open_regular(&folder.join(name)).ok()?;
        let size = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL))).ok()?;
        let mut end = Vec::new();
        file.take(TAIL).read_to_end(&mut end).ok()?;
        (!end.is_empty()).then_some(end)
    };
    let names = tail(DEOBFUSCATION).or_else(|| tail(SYMBOLS));
    names.is_some_and(|names| !tail(SYMBOLIZED_TRACE).is_some_and(|end| end.ends_with(&names)))
}

/// The manifest of the recording that `input` is or lies in, and where its trace should be.
fn with_trace(input: &Path) -> Result<Option<(Manifest, PathBuf)>, ManifestError> {
    let (folder, file) = if input.is_dir() {
        (input, None)
    } else {
        let Some(file) = input.file_name() else {
            return Ok(None);
        };
        let folder = input.parent().filter(|f| !f.as_os_str().is_empty());
        (folder.unwrap_or(Path::new(".")), Some(file))
    };
    if !folder.join(manifest::FILE_NAME).is_file() {
        return Ok(None);
    }
    let recorded = match Manifest::read(folder) {
        Ok(recorded) => recorded,
        // A stranger's file of that name says nothing of a single trace.
        Err(_) if file.is_some() => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(trace) = &recorded.trace else {
        return Ok(None);
    };
    if file.is_some_and(|file| file != trace.file.as_str()) {
        return Ok(None);
    }
    // A manifest may come from anywhere: it names files of its folder alone.
    let Some(trace) = Path::new(&trace.file).file_name() else {
        return Ok(None);
    };
    let trace = folder.join(trace);
    Ok(Some((recorded, trace)))
}

/// That a folder's manifest could not be read, as a warning.
pub fn unread(error: &ManifestError) -> manifest::Warning {
    manifest::Warning {
        kind: error.kind().to_owned(),
        message: format!("{error}; labels and targets are not carried over"),
        help: error.help(),
        pid: None,
        dumps: Vec::new(),
    }
}

impl Recorded {
    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.0
    }

    /// The manifest itself.
    pub fn into_manifest(self) -> Manifest {
        self.0
    }

    /// Fills in what the trace does not tell. Gives the labels, to be bound once the dumps are
    /// there.
    pub fn carry_into(self, goal: &mut Manifest) -> Vec<RecordedLabel> {
        let Recorded(from) = self;
        let labels = from
            .labels
            .iter()
            .map(|label| RecordedLabel {
                name: label.name.clone(),
                requested_ns: label.requested_ns,
                dumps: label
                    .dumps
                    .iter()
                    .filter_map(|bound| {
                        let dump = from.dumps.keys().find(|d| d.id() == bound.dump)?;
                        Some((key(&dump), bound.lag_ms))
                    })
                    .collect(),
            })
            .collect();
        goal.session = from.session;
        goal.device = from.device;
        goal.targets = from.targets;
        goal.config = from.config;
        goal.steps = from.steps;
        goal.trace = from.trace;
        goal.outcome.ended_by = from.outcome.ended_by;
        labels
    }
}

/// The names of processes that a manifest's targets have.
pub fn process_names(manifest: &Manifest) -> BTreeMap<u64, String> {
    manifest
        .targets
        .iter()
        .filter_map(|target| Some((u64::from(target.pid?), target.name.clone())))
        .collect()
}

/// Binds each label to the dumps it was bound to, as far as they were converted again.
pub fn bind(manifest: &mut Manifest, labels: &[RecordedLabel]) {
    for recorded in labels {
        let mut label = Label {
            name: recorded.name.clone(),
            requested_ns: recorded.requested_ns,
            dumps: Vec::new(),
        };
        for (wanted, lag_ms) in &recorded.dumps {
            let Some(at) = manifest.dumps.keys().position(|d| key(&d) == *wanted) else {
                continue;
            };
            let bound = manifest.dumps.bind(at, &recorded.name, *lag_ms);
            label.dumps.extend(bound);
        }
        manifest.labels.push(label);
    }
}
