//! The session journal: everything that a later process needs to continue a recording. One file per
//! session, one JSON object per line, appended and synced, never rewritten; a torn last line
//! is ignored. Owns the file's format; independent of devices.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::directory::{self, Owner};
use super::dumps::SnapshotMethod;
use super::heap_files::HeapFiles;
use super::id::SessionId;
use heaptap_base::bytes::sha256_of;
use heaptap_base::directory::RAW_TRACE;

/// Version of the journal format, in its first line.
pub const JOURNAL_VERSION: u32 = 1;
/// Version for sessions of heap files, which older readers would mistake for sessions of perfetto.
pub const HEAP_FILES_VERSION: u32 = 2;

/// Random ID that a kernel creates at each boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(pub String);

/// Identity of a process on a device, which distinguishes it from a later process with its PID.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessKey {
    /// Process ID.
    pub pid: u32,
    /// Start time in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start_ticks: u64,
}

impl ProcessKey {
    /// Returns its start, ns of BOOTTIME. In user space a tick is 10 ms on every Linux.
    pub(super) fn started_ns(&self) -> u64 {
        self.start_ticks.saturating_mul(10_000_000)
    }
}

/// Facts known before the first request to the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionHeader {
    /// [`JOURNAL_VERSION`].
    pub version: u32,
    pub id: SessionId,
    /// Serial number of the device.
    pub serial: String,
    /// `ro.serialno` of the device, if available.
    #[serde(default)]
    pub hardware_serial: Option<String>,
    /// The adb server, `HOST:PORT`.
    pub server: String,
    /// Boot in which the session runs.
    pub boot_id: BootId,
    /// Trace file on the device.
    pub remote_path: String,
    /// The shell can remove that file (not on Android 10).
    pub removable: bool,
    /// Start by the host clock.
    #[serde(with = "time::serde::rfc3339")]
    pub time: time::OffsetDateTime,
    /// Recorded process names, as the device knows them.
    pub names: Vec<String>,
    /// Recorded process IDs.
    pub pids: Vec<u32>,
    /// Maximum time from a stop request to the end, milliseconds.
    pub stop_limit_ms: u64,
    /// Maximum delay before data reaches the file, milliseconds.
    pub write_period_ms: u64,
    /// Method to trigger dumps.
    pub snapshots: SnapshotMethod,
    /// Labels are useful without dumps, because the process that follows the recording
    /// captures other data at them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub labels_without_dumps: bool,
    /// TraceConfig as text.
    pub config: String,
    /// Output directory, absolute.
    pub output: PathBuf,
    /// Heap files to write instead of a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_files: Option<HeapFiles>,
    /// Facts that the caller needs to finish (conversion options, target facts).
    pub plan: serde_json::Value,
}

/// A label that waits for its dump.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Text given by the user.
    pub label: String,
    /// Time of the request, by the device's BOOTTIME in nanoseconds.
    pub boot_ns: u64,
    /// The device's BOOTTIME right before its shell requested the dump; earlier dumps do not belong
    /// to the label. `None` if no dump was requested, or if the time was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_ns: Option<u64>,
}

impl Label {
    /// Returns whether a dump made at that time might belong to this label: it must not precede the
    /// request. The device itself reads its clock right before the request, truncated to 10 ms, so
    /// a dump for the request never precedes that reading. A dump that ended between label and
    /// request does precede it.
    pub fn may_be_of(&self, made_ns: u64) -> bool {
        made_ns >= self.from_ns()
    }

    /// Returns the earliest time of a dump that might belong to this label, ns of BOOTTIME.
    pub fn from_ns(&self) -> u64 {
        self.sent_ns.unwrap_or(self.boot_ns)
    }
}

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Entry {
    /// First line of a journal.
    Opened(Box<SessionHeader>),
    /// perfetto is running.
    Started {
        process: ProcessKey,
        /// BOOTTIME of the device then, ns.
        boot_ns: u64,
    },
    /// A process that matches the targets: a trace might contain its heap without its name.
    Seen {
        pid: u32,
        /// argv0 of the process.
        name: String,
    },
    /// A snapshot was requested.
    Label(Label),
    /// The dump for a label was requested.
    Requested(Label),
    /// The device ends with the recording process, so nothing outlives it.
    InProcess,
    /// The process that started the session detached from it.
    Detached,
    /// The writer of the first such line is about to signal perfetto.
    Stopping {
        /// Random name of the writer.
        #[serde(default)]
        by: String,
    },
    /// perfetto has ended and its file is complete.
    Ended,
    /// A restart of the device has ended perfetto.
    Rebooted,
    /// perfetto was seen to end by itself.
    Over {
        /// Its age at the last report, ms.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_least_ms: Option<u64>,
        /// The age that it had not reached, ms.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most_ms: Option<u64>,
    },
    /// A directory is about to be claimed, to move the results there.
    Claiming {
        /// Directory, absolute.
        output: PathBuf,
    },
    /// The output directory was changed. Fetched files that are not listed here are fetched
    /// again.
    Moved {
        /// New directory, absolute.
        output: PathBuf,
        /// The trace in the new directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pulled: Option<Contents>,
        /// Heap files in the new directory, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        files: BTreeMap<String, Contents>,
    },
    /// Complete and synced trace on this host, about to get its name.
    Pulled {
        size: u64,
        /// SHA-256, lowercase hex.
        sha256: String,
    },
    /// Complete and synced heap file on this host, about to get its name.
    PulledFile {
        /// Name in the output directory.
        name: String,
        size: u64,
        /// SHA-256, lowercase hex.
        sha256: String,
    },
    /// A line of a later format version.
    #[serde(other)]
    Unknown,
}

/// What a fetched file contains. The entry `moved` writes it as `[size, sha256]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, String)", into = "(u64, String)")]
pub struct Contents {
    /// Size in bytes.
    pub size: u64,
    /// SHA-256, lowercase hex.
    pub sha256: String,
}

impl Contents {
    /// Returns whether the file at `path` has this size.
    pub fn fits(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == self.size)
    }

    /// Returns whether the file at `path` contains the same. Reads it if the size is right.
    pub fn is_in(&self, path: &Path) -> bool {
        self.fits(path) && sha256_of(path).is_ok_and(|sum| sum == self.sha256)
    }
}

impl From<(u64, String)> for Contents {
    fn from((size, sha256): (u64, String)) -> Contents {
        Contents { size, sha256 }
    }
}

impl From<Contents> for (u64, String) {
    fn from(contents: Contents) -> (u64, String) {
        (contents.size, contents.sha256)
    }
}

/// Bounds of the duration of a followed recording, by the device's clock. A disconnected cable or
/// a busy host leaves an interval in which the recording ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DurationBounds {
    /// It was running at the device's last report; `None` if this process did not follow it.
    pub at_least: Option<Duration>,
    /// perfetto was gone at this time; `None` if that was not observed.
    pub at_most: Option<Duration>,
}

/// State of a session, from all lines of its journal.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionState {
    /// First line of the journal.
    pub header: SessionHeader,
    /// perfetto's process, if known.
    pub process: Option<ProcessKey>,
    /// BOOTTIME of the start, ns.
    pub started_ns: Option<u64>,
    /// Names of processes that matched, by PID.
    pub seen: BTreeMap<u32, String>,
    /// Labels in the order of their requests.
    pub labels: Vec<Label>,
    /// The device ends with the recording process.
    pub in_process: bool,
    /// The session was detached on purpose.
    pub detached: bool,
    /// Process that has signalled perfetto, or was about to.
    pub stopped_by: Option<String>,
    /// Perfetto has ended.
    pub ended: bool,
    /// A restart of the device has ended it.
    pub rebooted: bool,
    /// How long perfetto ran, if a process saw it end by itself.
    pub over: Option<DurationBounds>,
    /// Previous output directory. While its marker names the session, it can contain companion
    /// files to move.
    pub moved_from: Option<PathBuf>,
    /// Directories that were claimed for a move, also if it never ended.
    pub claimed: Vec<PathBuf>,
    /// The trace on this host, if it has its name: see [`SessionState::is_fetched`].
    pub pulled: Option<Contents>,
    /// Fetched heap files, by name.
    pub files: BTreeMap<String, Contents>,
    /// What these files contained before they were fetched again.
    replaced: BTreeMap<String, Contents>,
}

impl SessionState {
    fn new(header: SessionHeader) -> Self {
        SessionState {
            header,
            process: None,
            started_ns: None,
            seen: BTreeMap::new(),
            labels: Vec::new(),
            in_process: false,
            detached: false,
            stopped_by: None,
            ended: false,
            rebooted: false,
            over: None,
            moved_from: None,
            claimed: Vec::new(),
            pulled: None,
            files: BTreeMap::new(),
            replaced: BTreeMap::new(),
        }
    }

    /// Returns whether perfetto has not been started yet, as far as the journal tells.
    pub fn is_starting(&self) -> bool {
        let is_over = self.ended || self.rebooted || self.over.is_some() || self.stopping();
        self.process.is_none() && !is_over && !self.is_fetched()
    }

    /// Returns whether perfetto was signalled or about to be.
    pub fn stopping(&self) -> bool {
        self.stopped_by.is_some()
    }

    /// Returns whether the trace is on this host.
    pub fn is_fetched(&self) -> bool {
        let goal = self.header.output.join(RAW_TRACE);
        self.pulled.as_ref().is_some_and(|trace| trace.fits(&goal))
    }

    /// Returns whether all fetched heap files are on this host, and there are some.
    pub fn has_heap_files(&self) -> bool {
        let fits = |(name, file): (&String, &Contents)| file.fits(&self.header.output.join(name));
        !self.files.is_empty() && self.files.iter().all(fits)
    }

    /// Returns what a heap file on this host contains: the newest copy, or the one before if the
    /// newest never got its name.
    pub fn copies(&self, name: &str) -> impl Iterator<Item = &Contents> {
        let newest = self.files.get(name).into_iter();
        newest.chain(self.replaced.get(name))
    }

    /// Releases the output directory, and others that still belong to the session. Removes from
    /// those what a killed move copied.
    pub fn release_directories(&self) {
        let owner = Owner::Session(self.header.id.clone());
        for own in self.moved_from.iter().chain([&self.header.output]) {
            directory::release(own, &owner);
        }
        for claimed in self.claimed.iter().filter(|c| **c != self.header.output) {
            if !directory::claim_if_unwritten(claimed, &owner) {
                continue;
            }
            // What cannot be removed is superfluous.
            let _ = directory::remove_parts(claimed, &self.header.id);
            self.remove_copies(claimed);
            directory::release(claimed, &owner);
            // Removed if it is empty.
            let _ = std::fs::remove_dir(claimed);
        }
    }

    fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Started { process, boot_ns } => {
                self.process = Some(process);
                self.started_ns = Some(boot_ns);
            }
            Entry::Seen { pid, name } => {
                self.seen.insert(pid, name);
            }
            Entry::Label(label) => self.labels.push(label),
            Entry::Requested(sent) => {
                let is_it = |label: &&mut Label| {
                    (&label.label, label.boot_ns, label.sent_ns)
                        == (&sent.label, sent.boot_ns, None)
                };
                if let Some(label) = self.labels.iter_mut().rev().find(is_it) {
                    label.sent_ns = sent.sent_ns;
                }
            }
            Entry::InProcess => self.in_process = true,
            Entry::Detached => self.detached = true,
            Entry::Stopping { by } => {
                self.stopped_by.get_or_insert(by);
            }
            Entry::Ended => self.ended = true,
            Entry::Rebooted => self.rebooted = true,
            Entry::Over {
                at_least_ms,
                at_most_ms,
            } => {
                self.over = Some(DurationBounds {
                    at_least: at_least_ms.map(Duration::from_millis),
                    at_most: at_most_ms.map(Duration::from_millis),
                });
            }
            Entry::Claiming { output } => self.claimed.push(output),
            Entry::Moved {
                output,
                pulled,
                files,
            } => {
                self.moved_from = Some(std::mem::replace(&mut self.header.output, output));
                self.pulled = pulled;
                self.files = files;
                self.replaced.clear();
            }
            Entry::Pulled { size, sha256 } => self.pulled = Some(Contents { size, sha256 }),
            Entry::PulledFile { name, size, sha256 } => {
                let contents = Contents { size, sha256 };
                // The same contents again: the copy never got its name.
                if let Some(before) = self.files.insert(name.clone(), contents.clone())
                    && before != contents
                {
                    self.replaced.insert(name, before);
                }
            }
            Entry::Opened(_) | Entry::Unknown => {}
        }
    }
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Creates the journal of a new session and syncs it and its directory.
    ///
    /// # Errors
    /// Returns an error if the file exists or cannot be written.
    pub fn create(path: &Path, header: SessionHeader) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let mut journal = Journal {
            path: path.to_owned(),
            file: options
                .append(true)
                .read(true)
                .create_new(true)
                .open(path)?,
        };
        let opened = journal.append(&Entry::Opened(Box::new(header)));
        match opened.and_then(|()| sync_directory(path)) {
            Ok(()) => Ok(journal),
            Err(error) => {
                // Nothing was recorded: it would be listed as lost.
                drop(journal);
                let _ = std::fs::remove_file(path);
                Err(error)
            }
        }
    }

    /// Opens a journal for appending.
    ///
    /// # Errors
    /// Returns an error if it does not exist.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Journal {
            path: path.to_owned(),
            file: OpenOptions::new().append(true).read(true).open(path)?,
        })
    }

    /// Appends one entry and syncs it, with one write call so that processes that append at the
    /// same time do not mix their lines.
    ///
    /// # Errors
    /// Returns an error if this host cannot write.
    pub fn append(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = Vec::new();
        if self.ends_torn()? {
            line.push(b'\n');
        }
        serde_json::to_writer(&mut line, entry)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.sync_data()
    }

    /// Reads the whole journal.
    ///
    /// # Errors
    /// Returns an error if it cannot be read or does not begin with a supported header.
    pub fn read(&self) -> io::Result<SessionState> {
        read(&self.path)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn ends_torn(&mut self) -> io::Result<bool> {
        if self.file.seek(SeekFrom::End(0))? == 0 {
            return Ok(false);
        }
        self.file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        self.file.read_exact(&mut last)?;
        Ok(last != [b'\n'])
    }
}

/// Reads the journal at `path`.
///
/// # Errors
/// Returns an error if it cannot be read or does not begin with a supported header.
pub fn read(path: &Path) -> io::Result<SessionState> {
    let mut state = None;
    let mut file = BufReader::new(File::open(path)?);
    let mut first = Vec::new();
    file.read_until(b'\n', &mut first)?;
    // A header of another version can have other fields.
    let has_header = first.ends_with(b"\n");
    for line in std::iter::once(Ok(first)).chain(file.split(b'\n')) {
        let line = line?;
        // Torn lines: the last one, or one that a later append has terminated.
        let Ok(entry) = serde_json::from_slice::<Entry>(&line) else {
            continue;
        };
        match (&mut state, entry) {
            (None, Entry::Opened(header)) if header.version <= HEAP_FILES_VERSION => {
                state = Some(SessionState::new(*header));
            }
            (None, Entry::Opened(header)) => {
                let version = header.version;
                let why = format!(
                    "its format version is {version}, but this heaptap supports {HEAP_FILES_VERSION}"
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            (None, _) => break,
            (Some(state), entry) => state.apply(entry),
        }
    }
    const UNKNOWN: &str = "its first line is not a session header that this heaptap supports";
    state.ok_or_else(|| match has_header {
        true => io::Error::new(io::ErrorKind::InvalidData, UNKNOWN),
        false => io::Error::new(io::ErrorKind::InvalidData, Unopened),
    })
}

/// A journal whose header was never written to its end.
#[derive(Debug, thiserror::Error)]
#[error("it does not begin with a session header")]
struct Unopened;

/// Returns whether an error of [`read`] means that the journal does not have a complete header.
pub(super) fn is_unopened(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Unopened>())
}

/// Makes a new or removed name in the directory of `path` survive a power loss.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), heaptap_base::directory::sync)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn moved_files_are_pairs_as_in_older_journals() {
        let line =
            r#"{"event":"moved","output":"/out","pulled":[3,"ab"],"files":{"a.hprof":[4,"cd"]}}"#;
        let entry: Entry = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&entry).unwrap(), line);
    }

    pub(in crate::session) fn header() -> SessionHeader {
        let id = SessionId::random();
        SessionHeader {
            version: JOURNAL_VERSION,
            serial: "emulator-5554".to_owned(),
            hardware_serial: None,
            server: "127.0.0.1:5037".to_owned(),
            boot_id: BootId("f00d".to_owned()),
            remote_path: id.remote_path(),
            id,
            removable: true,
            time: time::macros::datetime!(2026-11-20 09:00 UTC),
            names: vec!["com.example.app".to_owned()],
            pids: vec![],
            stop_limit_ms: 60_000,
            write_period_ms: 5000,
            snapshots: SnapshotMethod::Impossible,
            labels_without_dumps: false,
            config: "duration_ms: 1".to_owned(),
            output: PathBuf::from("/tmp/out"),
            heap_files: None,
            plan: serde_json::Value::Null,
        }
    }

    fn label(text: &str) -> Entry {
        Entry::Label(Label {
            label: text.to_owned(),
            boot_ns: 7,
            sent_ns: None,
        })
    }

    #[test]
    fn a_label_knows_when_its_dump_was_requested() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let mut journal = Journal::create(&path, header()).unwrap();
        for text in ["one", "two"] {
            journal.append(&label(text)).unwrap();
        }
        let of = |text: &str, sent_ns| Label {
            label: text.to_owned(),
            boot_ns: 7,
            sent_ns,
        };
        let requested = Entry::Requested(of("one", Some(9)));
        journal.append(&requested).unwrap();
        let labels = journal.read().unwrap().labels;
        assert_eq!(labels, [of("one", Some(9)), of("two", None)]);
        assert!(!labels[0].may_be_of(8) && labels[0].may_be_of(9));
        assert!(!labels[1].may_be_of(6) && labels[1].may_be_of(7));
    }

    #[test]
    fn what_was_appended_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let mut journal = Journal::create(&path, header()).unwrap();
        let process = ProcessKey {
            pid: 7,
            start_ticks: 1234,
        };
        journal
            .append(&Entry::Started {
                process: process.clone(),
                boot_ns: 99,
            })
            .unwrap();
        Journal::open(&path).unwrap().append(&label("one")).unwrap();
        journal.append(&label("two")).unwrap();
        let state = journal.read().unwrap();
        assert_eq!(state.process, Some(process));
        let labels: Vec<_> = state.labels.iter().map(|l| l.label.as_str()).collect();
        assert_eq!(labels, ["one", "two"]);
        assert!(!state.stopping());
        for by in ["first", "second"] {
            let by = by.to_owned();
            let mut journal = Journal::open(&path).unwrap();
            journal.append(&Entry::Stopping { by }).unwrap();
        }
        let stopped_by = journal.read().unwrap().stopped_by;
        assert_eq!(
            stopped_by.as_deref(),
            Some("first"),
            "of two only one stops"
        );
        assert!(
            Journal::create(&path, header()).is_err(),
            "never overwritten"
        );
    }

    #[test]
    fn a_torn_line_is_as_if_never_written_and_does_not_eat_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let mut journal = Journal::create(&path, header()).unwrap();
        journal.append(&label("whole")).unwrap();
        let whole = std::fs::read(&path).unwrap();
        journal.append(&label("torn")).unwrap();
        let all = std::fs::read(&path).unwrap();
        for cut in whole.len()..all.len() - 1 {
            std::fs::write(&path, &all[..cut]).unwrap();
            Journal::open(&path)
                .unwrap()
                .append(&label("next"))
                .unwrap();
            let labels = read(&path).unwrap().labels;
            assert_eq!(labels[0].label, "whole", "cut at {cut}");
            assert_eq!(labels.last().unwrap().label, "next", "cut at {cut}");
        }
    }

    #[test]
    fn entries_of_a_later_version_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let mut journal = Journal::create(&path, header()).unwrap();
        journal
            .file
            .write_all(b"{\"event\":\"danced\",\"to\":1}\n")
            .unwrap();
        journal.append(&label("after")).unwrap();
        assert_eq!(journal.read().unwrap().labels.len(), 1);
    }
}
