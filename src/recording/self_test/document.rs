//! `try.json`: the host, the device, the app, and the verdict on each step.
//! `docs/reference/formats.md` documents every field.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::recording::companion::is_part_of;
use crate::recording::plan;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::eligibility::{Answer, DeviceFacts};
use heaptap_capture::session::Store;

/// Schema version. A new field keeps it; a changed meaning increments it.
pub const SCHEMA_VERSION: u32 = 1;
/// Files of a step that are listed; a recording has fewer.
const MAX_FILES: usize = 500;

/// The complete report.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TryReport {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Version of heaptap.
    pub heaptap: String,
    pub host: TriedHost,
    pub adb: TriedAdb,
    pub device: TriedDevice,
    /// App of the steps; absent if none could be profiled.
    pub app: Option<TriedApp>,
    /// Steps in their order.
    pub steps: Vec<TriedStep>,
    /// Exit code of the command.
    pub exit_code: u8,
    /// Absolute directory of the report.
    pub output: String,
}

/// The host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TriedHost {
    /// `linux`, `macos`, `windows`.
    pub os: String,
    /// `x86_64`, `aarch64`.
    pub arch: String,
}

impl TriedHost {
    pub(super) fn here() -> TriedHost {
        TriedHost {
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
        }
    }
}

/// The adb server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TriedAdb {
    /// Address.
    pub server: String,
    /// Protocol version, which `adb version` prints as the last number of `1.0.41`.
    pub protocol: Option<u32>,
}

/// The device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TriedDevice {
    pub serial: String,
    pub model: Option<String>,
    /// `ro.build.fingerprint`.
    pub fingerprint: Option<String>,
    /// Android release, such as `14`.
    pub android: Option<String>,
    pub sdk: Option<u32>,
    /// `user`, `userdebug`, `eng`.
    pub build_type: Option<String>,
    pub abis: Vec<String>,
    /// `enforcing`, `permissive` or `disabled`.
    pub selinux: Option<String>,
    /// Way to run commands as root: `shell` or `su`.
    pub root: Option<String>,
    /// Version of perfetto, if it answers.
    pub perfetto: Option<String>,
    /// Free space for traces, bytes.
    pub free_bytes: Option<u64>,
    /// The device in words.
    pub description: String,
}

impl TriedDevice {
    pub(super) fn from_facts(facts: &DeviceFacts) -> TriedDevice {
        TriedDevice {
            serial: facts.serial.clone(),
            model: facts.model.clone(),
            fingerprint: facts.fingerprint.clone(),
            android: facts.release.clone(),
            sdk: facts.sdk,
            build_type: plan::manifest_device(facts).build_type,
            abis: facts.abis.clone(),
            selinux: facts.selinux.map(|selinux| selinux.to_string()),
            root: facts.root.map(|root| root.to_string()),
            perfetto: facts.perfetto_version.clone(),
            free_bytes: facts.free_bytes,
            description: crate::recording::attempt::describe(facts),
        }
    }
}

/// The app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TriedApp {
    pub pid: u32,
    /// Process name.
    pub process: String,
    pub package: Option<String>,
    /// `named`, `in-front` or `running`: why this app.
    pub chosen: String,
    /// Answers of `check`: native heap, heap graph, HPROF.
    pub native: String,
    pub java: String,
    pub hprof: String,
}

impl TriedApp {
    pub(super) fn answers([native, java, hprof]: [Answer; 3]) -> [String; 3] {
        [native, java, hprof].map(|answer| answer.to_string())
    }
}

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepId {
    /// Choice of the app.
    App,
    /// Native heap: record, snapshot, stop, fetch, convert.
    Native,
    /// Java heap graph by Perfetto.
    JavaHeap,
    /// HPROF by `am dumpheap`.
    Hprof,
    Meminfo,
    /// Memory mappings.
    Smaps,
    /// Collections in the log.
    Gc,
    /// The allocator, by `am dumpheap -m`.
    MallocInfo,
    /// The device is as before.
    PutBack,
}

impl StepId {
    /// Returns the ID, which is also the name of the directory of the step.
    pub fn word(self) -> &'static str {
        match self {
            StepId::App => "app",
            StepId::Native => "native",
            StepId::JavaHeap => "java-heap",
            StepId::Hprof => "hprof",
            StepId::Meminfo => "meminfo",
            StepId::Smaps => "smaps",
            StepId::Gc => "gc",
            StepId::MallocInfo => "malloc-info",
            StepId::PutBack => "put-back",
        }
    }
}

/// Verdict on a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Works,
    Fails,
    /// The device, its build or the app does not support it.
    NotPossible,
    /// It needs an app, the device is gone, or the user interrupted it.
    NotTried,
}

impl Verdict {
    /// Returns the verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Works => "works",
            Verdict::Fails => "FAILS",
            Verdict::NotPossible => "not possible",
            Verdict::NotTried => "not tried",
        }
    }
}

/// A step with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TriedStep {
    pub step: StepId,
    pub verdict: Verdict,
    /// Time on the host.
    pub seconds: f64,
    /// Result in words, if it works.
    pub result: Option<String>,
    /// Reason, if it does not.
    pub error: Option<StepError>,
    /// Files in the directory, as relative paths with `/`.
    pub files: Vec<String>,
    /// Sessions whose data are still on the device; `heaptap stop ID` fetches them.
    pub sessions: Vec<String>,
}

/// Reason for a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StepError {
    /// Stable identifier.
    pub kind: String,
    pub message: String,
    /// Next step.
    pub help: Option<String>,
    /// Further lines of help.
    pub hints: Vec<String>,
    /// Exit code of its class.
    pub exit_code: u8,
}

impl From<Failure> for StepError {
    fn from(failure: Failure) -> StepError {
        StepError {
            kind: failure.kind.to_owned(),
            message: failure.message,
            help: failure.help,
            hints: failure.hints,
            exit_code: failure.class.exit_code(),
        }
    }
}

impl TryReport {
    /// Returns the class that decides the exit code. What is not possible does not count.
    pub fn class(&self) -> Option<ErrorClass> {
        let class = |step: &TriedStep| {
            let error = step.error.as_ref()?;
            let class = ErrorClass::of_exit_code(error.exit_code)?;
            let counts = matches!(step.verdict, Verdict::Fails | Verdict::NotTried);
            // Steps after an interrupt are missing from a result.
            let has_result = self.steps.iter().any(|step| !step.files.is_empty());
            counts.then_some(match class {
                ErrorClass::Interrupted if has_result => ErrorClass::Incomplete,
                class => class,
            })
        };
        ErrorClass::first_of(self.steps.iter().filter_map(class))
    }
}

/// Returns the IDs of sessions whose results belong into `directory`.
pub(super) fn sessions_below(store: &Store, directory: &Path) -> Vec<String> {
    let all = store.list().map(|(all, _)| all).unwrap_or_default();
    let own = all.iter().filter(|one| {
        let is_own = one.header.output.starts_with(directory);
        is_own && !all.iter().any(|whole| is_part_of(one, whole))
    });
    own.map(|one| one.header.id.to_string()).collect()
}

/// Returns the files of a step, relative to the directory of the report.
pub(super) fn files_of(directory: &Path, step: StepId) -> Vec<String> {
    let mut found = Vec::new();
    add_files(&directory.join(step.word()), step.word(), &mut found);
    found.sort();
    found
}

fn add_files(directory: &Path, name: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if found.len() == MAX_FILES {
            return;
        }
        let path = format!("{name}/{}", entry.file_name().to_string_lossy());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => add_files(&entry.path(), &path, found),
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
}
