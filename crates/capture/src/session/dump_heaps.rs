//! Heap files by `am dumpheap`: writing and fetching them. The script runs in the background of the
//! device like a recording, one process after another, so that neither a pulled cable nor the end
//! of this process stops it. It logs the outcome of each file next to them; the log's name
//! identifies the session.
//!
//! If an app does not begin its dump (its main thread is stuck, or it is frozen), `am` would
//! block forever; likewise if the app dies during the dump. Therefore the script on the device
//! gives up on a file that does not grow.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use super::event::Controls;
use super::heap_files::{DIRECTORY, HeapFile, HeapFiles};
use super::journal::{Contents, Entry, ProcessKey};
use super::probe::{self, QUICK};
use super::pull::RawTrace;
use super::session::Session;
use super::start::Unseen;
use crate::error::{CaptureError, kind};
use heaptap_adb::{Command, DeviceError};
use heaptap_base::unfinished::ExistingFile;

/// Time without growth after which a file counts as complete, if nothing else shows it.
const SETTLED: Duration = Duration::from_secs(5);
/// Interval for checking a file that might still grow.
const LOOK: Duration = Duration::from_millis(300);
/// Maximum time in which a loaded device gets from the fork of a shell to its next program.
const FORK_LIMIT: Duration = Duration::from_secs(10);
/// Maximum length of device output to keep.
const MAX_WORDS_LENGTH: usize = 4 << 10;

/// Result of writing a file on the device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeapFileFate {
    /// `am` was called for it.
    pub begun: bool,
    /// The script has ended, so that files not begun never will be.
    pub over: bool,
    /// Exit code of `am`; `None` if it was not observed.
    pub exit: Option<u8>,
    /// The file was given up because it did not grow.
    pub late: bool,
    /// The file was given up because the process is gone.
    pub gone: bool,
    /// Error output of `am`, not sanitized.
    pub complaint: Option<String>,
}

/// `$1` log, `$2` the script, the rest for that script.
const START: &str = include_str!("../scripts/dumpheap_start.sh").trim_ascii_end();

/// `$1` log, `$2` number of checks without growth before a file is given up, then pid, flags and
/// file of each. After TERM it still finishes the current file. Output of `am` goes to a file next
/// to it. Its lines are joined by blanks, so that it is one line in the output of `ps`, too: each
/// has to end a command, and comments are not possible.
const DUMP: &str = include_str!("../scripts/dumpheap.sh").trim_ascii_end();
/// Checks per second.
const LOOKS: u64 = 5;

/// `$1` log, then files. The output for each follows a line with its name.
const FATES: &str = include_str!("../scripts/dumpheap_fates.sh").trim_ascii_end();

impl Session {
    /// Starts writing the files in the background of the device.
    ///
    /// # Errors
    /// Returns the errors of [`Session::start`].
    pub async fn start_heap_files(mut self) -> Result<Session, CaptureError> {
        match self.launch_heap_files().await {
            // The script is running: if the journal cannot be written, the files stay.
            Ok(Some(process)) => {
                self.note_started(process).await?;
                Ok(self)
            }
            Ok(None) => {
                self.note_ended()?;
                self.tell_started();
                Ok(self)
            }
            Err(error) if error.is(&[kind::NOT_FETCHED]) => Err(error),
            Err(error) => {
                if self.remove_remote().await {
                    self.forget()?;
                }
                Err(error)
            }
        }
    }

    /// Returns `None` if the script has already ended.
    async fn launch_heap_files(&mut self) -> Result<Option<ProcessKey>, CaptureError> {
        let log = self.header().remote_path.clone();
        let wanted = self.heap_files()?.clone();
        let looks = (wanted.silence_ms * LOOKS).div_ceil(1000).max(1);
        let mut command = Command::script(START)
            .called("starting the heap dumps")
            .arg(&log)
            .arg(DUMP.lines().map(str::trim).collect::<Vec<_>>().join(" "))
            .arg(looks.to_string());
        for file in &wanted.files {
            command = command
                .arg(file.pid.to_string())
                .arg(&file.flags)
                .arg(&file.remote);
        }
        match self.device.run(&command, QUICK).await {
            Ok(output) if output.exit == 0 => match self.find_started(&output.stdout).await {
                Err(_) => self.started_unseen(Unseen::Pid).await,
                seen => seen,
            },
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                let serial = self.device.serial();
                Err(CaptureError::start_failed(serial, output.exit, text.trim()))
            }
            Err(error @ DeviceError::Refused { .. }) => Err(error.into()),
            Err(error) => self.started_unseen(Unseen::Perhaps(error)).await,
        }
    }

    /// Finds the script by the PID that the start printed; `None` if it has already ended.
    async fn find_started(&self, printed: &[u8]) -> Result<Option<ProcessKey>, CaptureError> {
        let text = String::from_utf8_lossy(printed);
        let pid = text.lines().find_map(|line| line.trim().parse().ok());
        let Some(pid) = pid else {
            let what = "starting the heap dumps";
            return Err(CaptureError::unexpected_answer(&self.device, what, &text));
        };
        let log = &self.header().remote_path;
        let until = Instant::now() + FORK_LIMIT;
        loop {
            match probe::process(&self.device, pid).await? {
                Some(facts) if facts.will_write_to(log) && Instant::now() < until => {
                    tokio::time::sleep(LOOK).await;
                }
                facts => {
                    let facts = facts.filter(|facts| facts.writes_to(log));
                    return Ok(facts.map(|facts| facts.key));
                }
            }
        }
    }

    /// Returns the heap files of this session.
    ///
    /// # Errors
    /// Returns an error if it is a session of perfetto.
    pub fn heap_files(&self) -> Result<&HeapFiles, CaptureError> {
        self.header().heap_files.as_ref().ok_or_else(|| {
            let source = std::io::Error::other("it does not list heap files");
            CaptureError::state(Path::new("the journal of the session"), source)
        })
    }

    /// Reads the result of each file on the device, by its path there.
    ///
    /// # Errors
    /// Returns [`CaptureError::not_fetched`] if the device cannot be reached.
    pub async fn heap_file_fates(&self) -> Result<BTreeMap<String, HeapFileFate>, CaptureError> {
        let files = &self.heap_files()?.files;
        let command = Command::script(FATES)
            .called("reading the state of the heap dumps")
            .arg(&self.header().remote_path)
            .args(files.iter().map(|f| &f.remote));
        let text = self.device.text(&command, QUICK).await;
        let text = text.map_err(|error| self.not_fetched(error))?;
        Ok(read_fates(&text))
    }

    /// Waits until a file is complete: a connection or a host might have been lost meanwhile. `am`
    /// returns only after the file is written.
    ///
    /// # Errors
    /// Returns [`CaptureError::not_fetched`] if the device cannot be reached.
    pub async fn settle_heap_file(
        &self,
        file: &HeapFile,
        fate: &HeapFileFate,
    ) -> Result<(), CaptureError> {
        if fate.late || fate.gone || fate.exit.is_some() || fate.over && !fate.begun {
            return Ok(());
        }
        let mut last = (0, Instant::now());
        loop {
            let size = self.size_of(file).await?;
            // After a refusal nothing is written.
            if size == 0 && fate.complaint.is_some() {
                return Ok(());
            }
            if size != last.0 {
                last = (size, Instant::now());
            }
            // The last bytes do not prove the end: objects can contain the bytes of an end record.
            if last.1.elapsed() >= SETTLED {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns the size of a file on the device; 0 if it does not exist.
    async fn size_of(&self, file: &HeapFile) -> Result<u64, CaptureError> {
        let stat = self.device.stat(&file.remote, QUICK).await;
        let stat = stat.map_err(|error| self.not_fetched(error))?;
        Ok(stat.map_or(0, |stat| stat.size))
    }

    /// Returns whether the app can still complete a truncated file, of which `size` bytes were
    /// fetched: the script stopped waiting for it, but the process is alive.
    pub async fn may_grow(&self, file: &HeapFile, fate: &HeapFileFate, size: u64) -> bool {
        // Larger exit codes mean that `am` was killed.
        let has_ended = |exit| (0..=128).contains(&exit);
        if fate.gone || fate.exit.is_some_and(has_ended) {
            return false;
        }
        match self.device.stat(&file.remote, QUICK).await {
            Ok(Some(stat)) if stat.size == size => {}
            Ok(None) => return false,
            _ => return true,
        }
        let same_boot = match probe::moment(&self.device).await {
            Ok(now) => now.boot_id == self.header().boot_id,
            Err(_) => return true,
        };
        let process = probe::process(&self.device, file.pid).await;
        same_boot && process.map_or(true, |process| process.is_some())
    }

    /// Returns whether an app has begun to write a file that was empty until now: after the script has
    /// given it up, it can go on at any time.
    ///
    /// # Errors
    /// Returns an error if the device does not answer.
    pub async fn has_begun(&self, file: &HeapFile) -> Result<bool, DeviceError> {
        let stat = self.device.stat(&file.remote, QUICK).await?;
        Ok(stat.is_some_and(|stat| stat.size > 0))
    }

    /// Fetches a heap file to `goal`; `None` if the device does not have it, or if it is empty. A
    /// file that has grown since it was fetched is fetched again.
    ///
    /// # Errors
    /// Returns the errors of [`Session::pull`].
    pub async fn pull_heap_file(
        &mut self,
        file: &HeapFile,
        goal: &Path,
        controls: &mut Controls,
    ) -> Result<Option<RawTrace>, CaptureError> {
        let size = self.size_of(file).await?;
        let mut earlier = ExistingFile::Stays;
        let copies = self.state().copies(&file.name).cloned().collect();
        if let Some(kept) = self.kept(goal, copies).await? {
            if size <= kept.contents.size {
                return Ok(Some(kept));
            }
            earlier = ExistingFile::IsReplaced;
        }
        if size == 0 {
            return Ok(None);
        }
        let entry = |Contents { size, sha256 }| Entry::PulledFile {
            name: file.name.clone(),
            size,
            sha256,
        };
        self.pull_file(&file.remote, goal, earlier, entry, controls)
            .await
    }
}

/// Runs every parser of this module.
pub(super) fn every_reader(text: &str) {
    read_fates(text);
}

fn read_fates(text: &str) -> BTreeMap<String, HeapFileFate> {
    let mut fates: BTreeMap<String, HeapFileFate> = BTreeMap::new();
    let mut over = false;
    let mut lines = text.lines().peekable();
    let said_of = |line: &&str| {
        let file = line.strip_prefix("said ")?.trim_end();
        let is_file = file.starts_with(DIRECTORY) && !file.contains(char::is_whitespace);
        is_file.then(|| file.to_owned())
    };
    while let Some(line) = lines.next_if(|line| said_of(line).is_none()) {
        let mut words = line.split_whitespace();
        let word = words.next();
        let (Some(file), exit) = (words.next(), words.next()) else {
            over |= word == Some("over");
            continue;
        };
        let fate = fates.entry(file.to_owned());
        match (word, exit) {
            (Some("begin"), None) => fate.or_default().begun = true,
            (Some("late"), None) => fate.or_default().late = true,
            (Some("gone"), None) => fate.or_default().gone = true,
            (Some("end"), Some(exit)) => {
                let fate = fate.or_default();
                fate.exit = exit.parse().ok();
                // It arrived after all.
                fate.late = false;
            }
            _ => {}
        }
    }
    while let Some(file) = lines.next().as_ref().and_then(said_of) {
        let mut words = String::new();
        while let Some(line) = lines.next_if(|line| said_of(line).is_none()) {
            if words.len() < MAX_WORDS_LENGTH {
                words.extend([line, "\n"]);
            }
        }
        fates.entry(file).or_default().complaint = complaint(&words);
    }
    for fate in fates.values_mut() {
        fate.over = over;
    }
    fates
}

/// Returns the error of `am`, from either stream and with any exit code: the line that names
/// an exception or an error.
fn complaint(words: &str) -> Option<String> {
    let lines = || words.lines().map(str::trim).filter(|l| !l.is_empty());
    let exception = lines().find(|l| {
        let name = l.split(':').next().unwrap_or(l);
        name.contains('.') && (name.ends_with("Exception") || name.ends_with("Error"))
    });
    let error = || {
        lines().find(|l| {
            l.starts_with("Error") || l.starts_with("Exception") || l.contains("Unknown command")
        })
    };
    exception.or_else(error).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "/data/local/tmp/heaptap-abcdefgh.7.hprof";

    fn fate(text: &str) -> HeapFileFate {
        read_fates(text).remove(FILE).unwrap_or_default()
    }

    #[test]
    fn the_log_says_what_became_of_each_file() {
        let begun = format!("begin {FILE}\n");
        assert!(fate(&begun).begun && fate(&begun).exit.is_none());
        let done = format!(
            "{begun}end {FILE} 0\nover\nsaid {FILE}\nFile: x\nWaiting for dump to finish...\n"
        );
        assert_eq!(fate(&done).exit, Some(0));
        assert_eq!(fate(&done).complaint, None);
        assert!(fate(&format!("{begun}late {FILE}\n")).late);
        let after_all = format!("{begun}late {FILE}\nend {FILE} 0\n");
        assert!(!fate(&after_all).late);
        assert_eq!(fate(""), HeapFileFate::default());
        let never = fate(&format!("over\nsaid {FILE}\n\n"));
        assert!(never.over && !never.begun);
        assert!(!fate(&format!("{begun}said {FILE}\nover\n")).over);
    }

    #[test]
    fn a_complaint_is_found_on_whichever_stream_and_with_any_exit_code() {
        let said = |words: &str| {
            fate(&format!(
                "begin {FILE}\nend {FILE} 0\nsaid {FILE}\n{words}\n"
            ))
            .complaint
        };
        let denied = "\nException occurred while executing dumpheap:\n\
            java.lang.SecurityException: Process not debuggable: ProcessRecord{1 7:com.x/u0a1}\n\
            \tat com.android.server.am.ActivityManagerService.dumpHeap(X.java:1)\n";
        assert!(
            said(denied)
                .unwrap()
                .starts_with("java.lang.SecurityException")
        );
        let file = "Error: Unable to open file: /x\nConsider using a file under /data/local/tmp/";
        assert_eq!(said(file).unwrap(), "Error: Unable to open file: /x");
        assert_eq!(
            said("Error: Unknown option: -b").unwrap(),
            "Error: Unknown option: -b"
        );
        assert_eq!(said("Waiting for dump to finish..."), None);
        // A line of device output that looks like a line of the log.
        assert_eq!(said("end other 0"), None);
    }
}
