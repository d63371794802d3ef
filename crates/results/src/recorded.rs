//! Facts that a recording's manifest has and its trace does not: session, device, targets, labels.
//! Copied when the trace is converted again.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::findings::TRACE_CUT;
use super::manifest::{self, DumpKey, JavaDump, JavaKind, Label, Manifest, ManifestError};
use heaptap_base::bytes::{open_regular, sha256_of_first};
use heaptap_base::directory::{self, DEOBFUSCATION, RAW_TRACE, SYMBOLIZED_TRACE, SYMBOLS};
use heaptap_base::error::Classified as _;
use heaptap_base::units::thousands;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_input::{HprofInput, OpenTrace};

/// Identity of a dump that is stable across conversions.
type Key = (u64, String, Option<u64>, Option<u64>);

fn key(dump: &DumpKey<'_>) -> Key {
    (
        dump.pid,
        dump.heap.to_owned(),
        dump.written_ns,
        dump.time_ns,
    )
}

/// A label with its bound dumps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedLabel {
    name: String,
    requested_ns: u64,
    dumps: Vec<(Key, u64)>,
}

#[derive(Debug)]
pub struct Recorded(Manifest);

/// Returns the manifest of the recording at `input`: a recording directory, or the trace that the
/// manifest in the same directory names.
///
/// # Errors
/// Returns an error if there is a manifest that cannot be read.
pub fn beside(input: &Path) -> Result<Option<Recorded>, ManifestError> {
    let Some((recorded, trace)) = with_trace(input)? else {
        return Ok(None);
    };
    // Another file has replaced the recorded trace.
    let size = std::fs::metadata(trace).map(|m| m.len());
    if size.ok() != recorded.trace.as_ref().map(|trace| trace.size) {
        return Ok(None);
    }
    Ok(Some(Recorded(recorded)))
}

/// Notes in the trace of a recording that it is truncated or differs from the recorded one.
pub fn compare(input: &Path, traces: &mut [OpenTrace]) {
    if let [trace] = traces {
        trace.damage = trace.damage.take().or_else(|| damage(input));
    }
}

/// Returns the damage of the trace at `input`, with the remedy; `None` if it is as recorded.
pub fn damage(input: &Path) -> Option<String> {
    let is_named = input.file_name() == Some(SYMBOLIZED_TRACE.as_ref());
    let input = match is_named {
        true => directory::of(input),
        false => input,
    };
    let symbolized = input.join(SYMBOLIZED_TRACE);
    let is_symbolized = std::fs::metadata(&symbolized).is_ok_and(|m| m.is_file() && m.len() > 0);
    let (recorded, raw) = with_trace(input).ok()??;
    let trace = recorded.trace.as_ref()?;
    let is_raw_whole = || !is_other(&raw, trace.size, &trace.sha256).unwrap_or(true);
    let again = format!(
        "run `heaptap symbolize {}` to write it again",
        quoted_path(input)
    );
    if is_symbolized && lacks_names(input) {
        return Some(match is_raw_whole() {
            true => format!("its end is missing; {again}"),
            false => "its end is missing".to_owned(),
        });
    }
    // A trace that was cut during the recording lacks its last packet.
    let is_cut = |warning: &manifest::Warning| warning.kind == TRACE_CUT;
    if is_symbolized && recorded.warnings.iter().any(is_cut) {
        return None;
    }
    let file = if is_symbolized { &symbolized } else { &raw };
    if !is_other(file, trace.size, &trace.sha256).ok()? {
        return None;
    }
    let size = std::fs::metadata(file).ok()?.len();
    let what = match size < trace.size {
        true => format!(
            "it has only {} of the {} bytes that were recorded",
            thousands(size),
            thousands(trace.size)
        ),
        false => OTHER_BYTES.to_owned(),
    };
    let remedy = if is_symbolized && is_raw_whole() {
        format!("; {RAW_TRACE} is complete: {again}")
    } else if profiles(&recorded, &raw).is_some() {
        "; the *.pb.gz files next to it have all dumps".to_owned()
    } else {
        String::new()
    };
    Some(what + &remedy)
}

const OTHER_BYTES: &str = "its content differs from the recorded one (SHA-256 in manifest.json)";

pub fn hprof_entry<'a>(recorded: &'a Manifest, hprof: &HprofInput) -> Option<&'a JavaDump> {
    let name = Path::new(&hprof.name).file_name();
    let mut dumps = recorded.dumps.java.iter();
    dumps.find(|dump| {
        let file = dump.file.as_deref().map(Path::new);
        dump.kind == JavaKind::Hprof && file.and_then(Path::file_name) == name
    })
}

/// Notes in the HPROFs of a recording that they differ from the recorded ones.
pub fn compare_hprofs(recorded: &Manifest, hprofs: &mut [HprofInput]) {
    for hprof in hprofs {
        let original = hprof_entry(recorded, hprof).and_then(|dump| dump.original.as_ref());
        let is_changed = original.is_some_and(|original| {
            is_other(Path::new(&hprof.name), original.size, &original.sha256).unwrap_or(false)
        });
        if is_changed && hprof.damage.is_none() {
            hprof.damage = Some(OTHER_BYTES.to_owned());
        }
    }
}

/// Returns whether a file differs from the one that a manifest describes: it is shorter, or has
/// other bytes. Data after `size` bytes, such as symbol packets, are ignored.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn is_other(file: &Path, size: u64, sha256: &str) -> io::Result<bool> {
    Ok(std::fs::metadata(file)?.len() < size || sha256_of_first(file, size)? != sha256)
}

/// Returns the profiles of a recording's native dumps, which are next to its trace `raw`; `None` if
/// there are none, or one is missing.
pub fn profiles(recorded: &Manifest, raw: &Path) -> Option<Vec<PathBuf>> {
    let files = recorded.dumps.native.iter().filter_map(|d| d.file.as_ref());
    // A manifest can come from anywhere, so it only names files of its own directory.
    let files = files.filter_map(|file| Path::new(file).file_name());
    let paths: Vec<PathBuf> = files.map(|file| raw.with_file_name(file)).collect();
    (!paths.is_empty() && paths.iter().all(|path| path.is_file())).then_some(paths)
}

/// Returns whether a directory's symbolized trace ends before the symbols, its last part, are
/// complete.
pub fn lacks_names(directory: &Path) -> bool {
    /// An ending of this length is unique in practice.
    const TAIL: u64 = 4096;
    let tail = |name: &str| -> Option<Vec<u8>> {
        let mut file = open_regular(&directory.join(name)).ok()?;
        let size = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL))).ok()?;
        let mut end = Vec::new();
        file.take(TAIL).read_to_end(&mut end).ok()?;
        (!end.is_empty()).then_some(end)
    };
    let names = tail(DEOBFUSCATION).or_else(|| tail(SYMBOLS));
    names.is_some_and(|names| !tail(SYMBOLIZED_TRACE).is_some_and(|end| end.ends_with(&names)))
}

/// Returns the manifest of the recording at `input`, and the expected path of its trace.
fn with_trace(input: &Path) -> Result<Option<(Manifest, PathBuf)>, ManifestError> {
    let (directory, file) = if input.is_dir() {
        (input, None)
    } else {
        let Some(file) = input.file_name() else {
            return Ok(None);
        };
        (directory::of(input), Some(file))
    };
    if !directory.join(manifest::FILE_NAME).is_file() {
        return Ok(None);
    }
    let recorded = match Manifest::read(directory) {
        Ok(recorded) => recorded,
        // An unrelated file of that name does not concern a single trace.
        Err(_) if file.is_some() => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(trace) = &recorded.trace else {
        return Ok(None);
    };
    if file.is_some_and(|file| file != trace.file.as_str()) {
        return Ok(None);
    }
    // A manifest can come from anywhere, so it only names files of its own directory.
    let Some(trace) = Path::new(&trace.file).file_name() else {
        return Ok(None);
    };
    let trace = directory.join(trace);
    Ok(Some((recorded, trace)))
}

/// Returns a warning for a manifest that could not be read.
pub fn unread(error: &ManifestError) -> manifest::Warning {
    let facts = error.facts();
    manifest::Warning {
        help: facts.help,
        ..manifest::Warning::new(
            facts.kind,
            format!("{error}; labels and targets are not copied"),
        )
    }
}

impl Recorded {
    pub fn manifest(&self) -> &Manifest {
        &self.0
    }

    pub fn into_manifest(self) -> Manifest {
        self.0
    }

    /// Copies facts that the trace does not have. Returns the labels, to be bound when the dumps
    /// exist.
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
        goal.host = from.host;
        goal.targets = from.targets;
        goal.config = from.config;
        goal.steps = from.steps;
        goal.trace = from.trace;
        goal.outcome.ended_by = from.outcome.ended_by;
        labels
    }
}

/// Returns the process names of a manifest's targets.
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
