//! `manifest.json`: what was recorded, when, where and how, beside the files it names. Owns
//! the schema (`docs/manifest.md` documents every field; a test holds the two together) and
//! the atomic writing. Plain values only: whoever fills it knows where they come from.

mod beside;
mod java;
mod symbolization;

pub use beside::{
    Beside, BesideCost, BesideFile, BesideGap, BesideMissed, BesideTimeline, BesideUnread,
};
pub use java::{
    DumpKey, Dumps, JAVA_HEAP, JavaAllocations, JavaDump, JavaFlags, JavaKind, JavaSums,
    JavaTotals, Original,
};
pub use symbolization::{
    CutLibrary, LookedIn, MappingFile, MissingLibrary, NamedLibrary, NearestFile, SymbolFile,
    Symbolization,
};

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::error::{Classified, ErrorClass};
use crate::export::pprof::{PprofOptions, SampleNames};
use crate::profile::{DumpFlags, DumpKind, Figures, HeapDump};

/// The version of the schema. A new field leaves it; a changed meaning raises it.
pub const SCHEMA_VERSION: u32 = 2;

/// The name of the file in a recording's folder.
pub const FILE_NAME: &str = "manifest.json";

/// All of `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Who wrote it.
    pub tool: Tool,
    /// How the recording ended.
    pub outcome: Outcome,
    /// The recording session; absent after `convert` of a trace alone.
    pub session: Option<Session>,
    /// The phone; absent after `convert` of a trace alone.
    pub device: Option<Device>,
    /// What was to be recorded, and what was matched.
    pub targets: Vec<Target>,
    /// The config that was sent.
    pub config: Option<Config>,
    /// What happened when, in order.
    pub steps: Vec<Step>,
    /// The trace as the device wrote it.
    pub trace: Option<TraceFile>,
    /// How the profiles were written; absent in manifests of earlier versions.
    #[serde(default)]
    pub profiles: Option<Profiles>,
    /// Every dump found, in order of time; `<n>` in file names is the index here.
    pub dumps: Dumps,
    /// How Java allocations were recorded, where any were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java_allocations: Option<JavaAllocations>,
    /// Every label asked for, bound to dumps or not.
    pub labels: Vec<Label>,
    /// What was recorded beside the native heap; absent where nothing was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// How many frames carry names, and whose libraries do not.
    pub symbolization: Option<Symbolization>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
}

/// Who wrote the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `heaptap`.
    pub name: String,
    /// Its version, with the commit where known.
    pub version: String,
}

/// How the recording ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The exit code of the command that wrote the manifest.
    pub exit_code: u8,
    /// Whether nothing is missing.
    pub complete: bool,
    /// What ended the recording: `duration`, `done`, `interrupted`, `stopped`, `target-exited`,
    /// `size-limit`, `lost`; absent where unknown.
    pub ended_by: Option<String>,
}

/// The recording session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id in the journal and in the name of the remote file.
    pub id: String,
    /// Where the device kept the trace.
    pub remote_path: String,
    /// Boot id of the device.
    pub boot_id: Option<String>,
    /// What made the dumps of snapshots: `signal`, `continuous`, or none.
    pub snapshots_by: Option<String>,
}

/// The phone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Serial number.
    pub serial: String,
    /// `ro.product.model`.
    pub model: Option<String>,
    /// `ro.build.fingerprint`.
    pub build_fingerprint: Option<String>,
    /// Release as people say it, such as `14`.
    pub android: Option<String>,
    /// `ro.build.version.sdk`.
    pub sdk: Option<u32>,
    /// `user`, `userdebug`, `eng`.
    pub build_type: Option<String>,
    /// First of the ABI list.
    pub abi: Option<String>,
}

/// One process that was asked for or matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The name as the process has it, or as it was asked for.
    pub name: String,
    /// Its process id; absent where none ran.
    pub pid: Option<u32>,
    /// What the check said before recording.
    pub eligibility: Option<Eligibility>,
    /// Whether it was hooked at launch; absent where no dump tells.
    pub from_startup: Option<bool>,
}

/// What the check said of a process before recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eligibility {
    /// `yes`, `no`, `only-from-startup`, `unknown`.
    pub verdict: String,
    /// Why, one sentence each.
    pub reasons: Vec<String>,
}

/// The config that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// As `perfetto --txt -c -` takes it.
    pub text: String,
    /// SHA-256 of the bytes that were sent, hex.
    pub sha256: String,
}

/// One step of the recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// `checked`, `started`, `launched`, `stop-requested`, `trace-complete`, `received` (the
    /// device's last byte), `pulled` (verified and synced), `converted`.
    pub step: String,
    /// The host's clock.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
}

/// The trace as the device wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFile {
    /// Name in the folder (`raw-trace`), or the input's name after `convert`.
    pub file: String,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256, hex.
    pub sha256: String,
}

/// How profiles were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profiles {
    /// Whose names the sample types have: `heaptap` or `perfetto`.
    pub sample_names: String,
    /// Whether ` [jit]` and the like stand behind names.
    pub annotations: bool,
}

impl From<PprofOptions> for Profiles {
    fn from(options: PprofOptions) -> Self {
        Profiles {
            sample_names: match options.sample_names {
                SampleNames::Pprof => "heaptap",
                SampleNames::Perfetto => "perfetto",
            }
            .to_owned(),
            annotations: options.annotations,
        }
    }
}

impl Profiles {
    /// The options, to write them so again.
    pub fn options(&self) -> PprofOptions {
        PprofOptions {
            sample_names: match self.sample_names.as_str() {
                "perfetto" => SampleNames::Perfetto,
                _ => SampleNames::Pprof,
            },
            annotations: self.annotations,
        }
    }
}

/// One heap of one process at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dump {
    /// Position in `dumps`, counted from 0.
    pub index: u32,
    /// The label bound to it; the first of several (`labels` has them all).
    pub label: Option<BoundLabel>,
    /// Trace time (BOOTTIME), ns; absent where no clock converts it.
    pub time_ns: Option<u64>,
    /// Wall time, where the trace ties its clocks to it.
    #[serde(with = "time::serde::rfc3339::option")]
    pub time: Option<OffsetDateTime>,
    /// When the daemon wrote it, BOOTTIME in ns: what a label is bound by; absent where the
    /// trace does not say. `time_ns` is that of the last event in it, which may be earlier.
    pub written_ns: Option<u64>,
    /// Process id.
    pub pid: u64,
    /// Process name; empty where the trace has none.
    pub process: String,
    /// Heap name.
    pub heap: String,
    /// Name of the pprof in the folder; absent where it has none (no samples).
    pub file: Option<String>,
    /// What the totals mean: `cumulative`, `at-maximum`, `allocations-only`.
    pub kind: String,
    /// Sampling interval at the end, bytes; 0 where the trace does not say.
    pub sampling_interval_bytes: u64,
    /// Sums over all callsites.
    pub totals: Totals,
    /// Distinct callsites.
    pub callsites: u64,
    /// Samples taken since profiling began.
    pub heap_samples: u64,
    /// Stacks that could not be unwound to their end.
    pub unwinding_errors: u64,
    /// What the daemon reported.
    pub flags: Flags,
    /// Whether the dump ended in the trace; otherwise its figures are lower bounds.
    pub complete: bool,
}

/// A label bound to a dump.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundLabel {
    /// The name.
    pub name: String,
    /// From the request to the dump, ms.
    pub lag_ms: u64,
}

/// A label that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The name.
    pub name: String,
    /// When, on the device's BOOTTIME clock, ns.
    pub requested_ns: u64,
    /// The dumps it is bound to; empty where none came after the request.
    pub dumps: Vec<LabelledDump>,
}

/// A dump that a label is bound to. Several labels may share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelledDump {
    /// Its index.
    pub index: u32,
    /// From the request to the dump, ms.
    pub lag_ms: u64,
}

/// Sums of a dump. Bytes are scaled up by the sampling; objects are numbers of sampled
/// allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Bytes held; absent where the heap knows no frees.
    pub space: Option<i64>,
    /// Sampled allocations held; absent where the heap knows no frees.
    pub objects: Option<i64>,
    /// Bytes allocated since profiling began.
    pub alloc_space: i64,
    /// Sampled allocations since profiling began.
    pub alloc_objects: i64,
}

impl Totals {
    /// The totals as far as `kind` knows them.
    pub fn new(figures: Figures, kind: DumpKind) -> Self {
        let knows_frees = kind != DumpKind::AllocationsOnly;
        Totals {
            space: knows_frees.then_some(figures.space),
            objects: knows_frees.then_some(figures.objects),
            alloc_space: figures.alloc_space,
            alloc_objects: figures.alloc_objects,
        }
    }
}

/// The daemon's flags of a dump; see `docs/manifest.md` for what each means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flags {
    /// Hooked at launch.
    pub from_startup: bool,
    /// Another session held the process; no samples.
    pub rejected_concurrent: bool,
    /// The process left before the session ended.
    pub disconnected: bool,
    /// The shared memory was full and the client gave up.
    pub buffer_overran: bool,
    /// The shared memory was corrupted.
    pub buffer_corrupted: bool,
    /// A limit on the daemon's memory or CPU time was hit.
    pub hit_guardrail: bool,
    /// 0 none, 1 hit timeout, 2 invalid stack bounds.
    pub client_error: u32,
}

impl From<DumpFlags> for Flags {
    fn from(flags: DumpFlags) -> Self {
        Flags {
            from_startup: flags.from_startup,
            rejected_concurrent: flags.rejected_concurrent,
            disconnected: flags.disconnected,
            buffer_overran: flags.buffer_overran,
            buffer_corrupted: flags.buffer_corrupted,
            hit_guardrail: flags.hit_guardrail,
            client_error: flags.client_error,
        }
    }
}

impl Dump {
    /// The entry of a dump; label and wall time are set by whoever knows them.
    pub fn new(index: u32, dump: &HeapDump, file: Option<String>) -> Self {
        Dump {
            index,
            label: None,
            time_ns: dump.time_ns,
            time: None,
            written_ns: dump.written_ns,
            pid: dump.pid,
            process: dump.process.clone(),
            heap: dump.heap.clone(),
            file,
            kind: match dump.kind {
                DumpKind::Cumulative => "cumulative",
                DumpKind::AtMaximum => "at-maximum",
                DumpKind::AllocationsOnly => "allocations-only",
            }
            .to_owned(),
            sampling_interval_bytes: dump.sampling_interval_bytes,
            totals: Totals::new(dump.totals(), dump.kind),
            callsites: dump.samples.len() as u64,
            heap_samples: dump.heap_samples,
            unwinding_errors: dump.unwinding_errors,
            flags: dump.flags.into(),
            complete: !dump.unfinished,
        }
    }
}

/// What the user should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// A stable word.
    pub kind: String,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The process it is about.
    pub pid: Option<u64>,
    /// The dumps it is about.
    pub dumps: Vec<u32>,
}

/// The version of heaptap, with the commit where the build was told it (`HEAPTAP_COMMIT`).
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let version = env!("CARGO_PKG_VERSION");
        match option_env!("HEAPTAP_COMMIT") {
            Some(commit) if !commit.is_empty() => format!("{version} ({commit})"),
            _ => version.to_owned(),
        }
    });
    &VERSION
}

impl Default for Manifest {
    /// An empty manifest of this version of heaptap.
    fn default() -> Self {
        Manifest {
            schema_version: SCHEMA_VERSION,
            tool: Tool {
                name: "heaptap".to_owned(),
                version: version().to_owned(),
            },
            outcome: Outcome {
                exit_code: 0,
                complete: true,
                ended_by: None,
            },
            session: None,
            device: None,
            targets: Vec::new(),
            config: None,
            steps: Vec::new(),
            trace: None,
            profiles: None,
            dumps: Dumps::default(),
            java_allocations: None,
            labels: Vec::new(),
            beside: None,
            symbolization: None,
            warnings: Vec::new(),
        }
    }
}

impl Manifest {
    /// Writes the manifest into `folder`, whole or not at all: a temporary file beside the
    /// goal, synced and renamed. To be called last, so that its presence says that the other
    /// files are there.
    ///
    /// # Errors
    /// Where the folder cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, ManifestError> {
        let goal = folder.join(FILE_NAME);
        let written = || -> io::Result<()> {
            let mut file = temporary_in(folder)?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(&goal)?;
            Ok(())
        };
        match written() {
            Ok(()) => Ok(goal),
            Err(source) => Err(ManifestError::Write { path: goal, source }),
        }
    }

    /// Reads the manifest of `folder`.
    ///
    /// # Errors
    /// Where it is missing, cannot be read, is no manifest, or is of a later schema.
    pub fn read(folder: &Path) -> Result<Manifest, ManifestError> {
        let path = folder.join(FILE_NAME);
        let text = fs::read(&path).map_err(|source| ManifestError::Read {
            path: path.clone(),
            source,
        })?;
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|source| ManifestError::Parse {
                path: path.clone(),
                source,
            })?;
        if manifest.schema_version > SCHEMA_VERSION {
            return Err(ManifestError::TooNew {
                path,
                found: manifest.schema_version,
            });
        }
        Ok(manifest)
    }
}

/// How the names of unfinished files in a results folder begin.
pub(super) const UNFINISHED: &str = ".heaptap-part-";

/// An unfinished file of a results folder.
pub(super) fn temporary_in(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    crate::session::unfinished::file_in(folder, UNFINISHED)
}

/// Why a manifest could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It could not be written.
    #[error("could not write {}", path.display())]
    Write {
        /// The goal.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It could not be read.
    #[error("could not read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no manifest.
    #[error("{} is not a manifest of heaptap", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// It is of a later version.
    #[error("{} has schema version {found}, this heaptap knows {SCHEMA_VERSION}", path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

impl Classified for ManifestError {
    fn class(&self) -> ErrorClass {
        match self {
            ManifestError::Write { .. } => ErrorClass::HostWrite,
            _ => ErrorClass::BadInput,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            ManifestError::Write { .. } => "host-write",
            ManifestError::Read { .. } => "manifest-unreadable",
            ManifestError::Parse { .. } => "manifest-invalid",
            ManifestError::TooNew { .. } => "manifest-too-new",
        }
    }

    fn help(&self) -> Option<String> {
        Some(
            match self {
                ManifestError::Write { .. } => "free some space or choose another folder with -o",
                ManifestError::Read { .. } => "give the folder that `heaptap record` made",
                ManifestError::Parse { .. } => {
                    "the trace beside it is still good: `heaptap convert FOLDER/raw-trace`"
                }
                ManifestError::TooNew { .. } => "use the version of heaptap that wrote it",
            }
            .to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// A manifest in which every field is set.
    fn full() -> Manifest {
        let at = OffsetDateTime::from_unix_timestamp(1_795_000_000).expect("a time");
        let some = |text: &str| Some(text.to_owned());
        let mut dump = Dump::new(
            0,
            &HeapDump {
                pid: 4242,
                process: "com.example.app".to_owned(),
                heap: "libc.malloc".to_owned(),
                time_ns: Some(5_000_000_000),
                written_ns: Some(5_100_000_000),
                sampling_interval_bytes: 4096,
                ..HeapDump::default()
            },
            some("heap_dump.0.4242.libc.malloc.pb.gz"),
        );
        dump.label = Some(BoundLabel {
            name: "after-login".to_owned(),
            lag_ms: 120,
        });
        dump.time = Some(at);
        Manifest {
            outcome: Outcome {
                exit_code: 0,
                complete: true,
                ended_by: some("interrupted"),
            },
            session: Some(Session {
                id: "a1b2c3".to_owned(),
                remote_path: "/data/misc/perfetto-traces/heaptap-a1b2c3".to_owned(),
                boot_id: some("0f9d"),
                snapshots_by: some("signal"),
            }),
            device: Some(Device {
                serial: "R5CT".to_owned(),
                model: some("Pixel 8"),
                build_fingerprint: some("google/shiba/shiba:14"),
                android: some("14"),
                sdk: Some(34),
                build_type: some("user"),
                abi: some("arm64-v8a"),
            }),
            targets: vec![Target {
                name: "com.example.app".to_owned(),
                pid: Some(4242),
                eligibility: Some(Eligibility {
                    verdict: "yes".to_owned(),
                    reasons: vec!["it is debuggable".to_owned()],
                }),
                from_startup: Some(false),
            }],
            config: Some(Config {
                text: "duration_ms: 1\n".to_owned(),
                sha256: "00".repeat(32),
            }),
            steps: vec![Step {
                step: "started".to_owned(),
                at,
            }],
            trace: Some(TraceFile {
                file: "raw-trace".to_owned(),
                size: 12,
                sha256: "00".repeat(32),
            }),
            profiles: Some(PprofOptions::default().into()),
            dumps: Dumps {
                native: vec![dump],
                java: vec![java_dump()],
            },
            labels: vec![Label {
                name: "after-login".to_owned(),
                requested_ns: 4_880_000_000,
                dumps: vec![LabelledDump {
                    index: 0,
                    lag_ms: 120,
                }],
            }],
            java_allocations: Some(JavaAllocations {
                by: "heapprofd".to_owned(),
                heap: "com.android.art".to_owned(),
                tells: vec!["stack".to_owned()],
                lacks: vec!["class".to_owned()],
            }),
            beside: Some(beside::example()),
            symbolization: Some(symbolization()),
            warnings: vec![Warning {
                kind: "buffer-overran".to_owned(),
                message: "it allocated too fast".to_owned(),
                help: some("a longer interval"),
                pid: Some(4242),
                dumps: vec![0],
            }],
            ..Manifest::default()
        }
    }

    fn java_dump() -> JavaDump {
        let sums = JavaSums {
            objects: 2,
            space: 48,
            native_space: 4096,
        };
        JavaDump {
            kind: JavaKind::HeapGraph,
            index: 1,
            label: Some(BoundLabel {
                name: "after-login".to_owned(),
                lag_ms: 120,
            }),
            time_ns: Some(5_000_000_000),
            time: OffsetDateTime::from_unix_timestamp(1_795_000_000).ok(),
            pid: 4242,
            process: "com.example.app".to_owned(),
            heap: JAVA_HEAP.to_owned(),
            file: Some("java_heap_dump.1.4242.pb.gz".to_owned()),
            dominators: Some("java_heap_dump.1.4242.dominators.pb.gz".to_owned()),
            malloc_info: Some("malloc_info.1.4242.xml".to_owned()),
            original: Some(Original {
                size: 12,
                sha256: "00".repeat(32),
            }),
            reason: Some("OOME".to_owned()),
            totals: Some(JavaTotals {
                objects: 3,
                space: 64,
                native_space: 4096,
                reachable: sums,
            }),
            flags: JavaFlags::default(),
            complete: true,
        }
    }

    fn symbolization() -> Symbolization {
        let text = str::to_owned;
        Symbolization {
            frames_named: 3,
            frames_unnamed: 1,
            frames_with_lines: 2,
            leaf_share_unnamed: 0.25,
            share_unnamed: 0.5,
            libraries_missing: vec![MissingLibrary {
                path: text("/data/app/lib/arm64/libgame.so"),
                build_id: text("ab01"),
                frames: 1,
                leaf_share: 0.25,
                share: 0.5,
                looked_in: vec![LookedIn {
                    place: text("symbols"),
                    path: text("out/symbols"),
                    why: text("not-there"),
                    detail: text("not there"),
                }],
                nearest: Some(NearestFile {
                    place: text("symbols"),
                    path: text("out/symbols/libgame.so"),
                    build_id: text("ab02"),
                }),
            }],
            libraries_named: vec![NamedLibrary {
                path: text("/data/app/lib/arm64/libapp.so"),
                build_id: text("cd01"),
                addresses: 3,
                files: vec![SymbolFile {
                    place: text("symbols"),
                    path: text("out/symbols/libapp.so"),
                    knowledge: text("dwarf"),
                    verified: true,
                    addresses: 2,
                    notes: vec![text("inlined calls are missing")],
                }],
            }],
            libraries_without_unwind: vec![CutLibrary {
                path: text("/data/app/lib/arm64/libcut.so"),
                build_id: text("ef01"),
                callsites: 7,
                share: 0.125,
            }],
            mappings: vec![MappingFile {
                path: text("app/build/outputs/mapping/release/mapping.txt"),
                packages: vec![text("com.example.app")],
                origin: text("project"),
                variant: text("release"),
                classes: 900,
                frames: 40,
                heap_classes: 0,
            }],
        }
    }

    /// Every field as `dumps[].totals.space`.
    fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = if path.is_empty() {
                        name.clone()
                    } else {
                        format!("{path}.{name}")
                    };
                    found.insert(path.clone());
                    paths(value, &path, found);
                }
            }
            Value::Array(items) => {
                for item in items {
                    paths(item, &format!("{path}[]"), found);
                }
            }
            Value::Null => panic!("{path} is not set in the example"),
            _ => {}
        }
    }

    #[test]
    fn the_page_documents_every_field_and_no_other() {
        let mut fields = BTreeSet::new();
        let value = serde_json::to_value(full()).expect("it serializes");
        paths(&value, "", &mut fields);
        let page = include_str!("../../docs/manifest.md");
        let documented: BTreeSet<String> = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .map(str::to_owned)
            .collect();
        assert_eq!(
            fields.difference(&documented).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "missing in docs/manifest.md"
        );
        assert_eq!(
            documented.difference(&fields).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "docs/manifest.md names what is not there"
        );
        assert!(page.contains(&format!("schema version {SCHEMA_VERSION}")));
    }

    #[test]
    fn it_reads_back_as_written_and_replaces_an_older_one() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(FILE_NAME), "old").expect("written");
        let manifest = full();
        let path = manifest.write(folder.path()).expect("written");
        assert_eq!(path, folder.path().join("manifest.json"));
        assert_eq!(Manifest::read(folder.path()).expect("read"), manifest);
        let files = fs::read_dir(folder.path()).expect("listed").count();
        assert_eq!(files, 1, "nothing temporary is left");
    }

    #[test]
    fn what_cannot_be_read_or_written_says_why() {
        let folder = tempfile::tempdir().expect("a folder");
        let kind = || {
            Manifest::read(folder.path())
                .expect_err("not a manifest")
                .kind()
        };
        assert_eq!(kind(), "manifest-unreadable");
        fs::write(folder.path().join(FILE_NAME), "{}").expect("written");
        assert_eq!(kind(), "manifest-invalid");
        let newer = Manifest {
            schema_version: SCHEMA_VERSION + 1,
            ..full()
        };
        newer.write(folder.path()).expect("written");
        assert_eq!(kind(), "manifest-too-new");
        let error = full()
            .write(&folder.path().join("nowhere"))
            .expect_err("no folder");
        assert_eq!(error.class(), ErrorClass::HostWrite);
    }

    #[test]
    fn a_heap_without_frees_has_no_held_bytes() {
        let totals = Totals::new(
            Figures {
                alloc_space: 9,
                alloc_objects: 1,
                ..Figures::default()
            },
            DumpKind::AllocationsOnly,
        );
        assert_eq!((totals.space, totals.objects), (None, None));
        assert_eq!(totals.alloc_space, 9);
    }
}
