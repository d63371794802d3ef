//! A capture of all companion data: at a label, or at the end. Names the files, and ensures that
//! each is complete and recorded in the timeline.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::NamedTempFile;

use super::file::TimelineFile;
use heaptap_adb::{Device, DeviceError};
use heaptap_base::unfinished::place;
use heaptap_capture::observe::OurWindows;
use heaptap_capture::session::CaptureError;
use heaptap_model::timeline::{HeaptapAction, Kept, Missed, Observation};
use heaptap_results::file_names::file_name;
use heaptap_results::whole_file::{directory_inside, temporary_in};

/// Name of the end of a recording in file names.
const END: &str = "end";

/// A label, or the end of the recording.
#[derive(Clone)]
pub(super) struct At {
    pub(super) device: Device,
    pub(super) directory: PathBuf,
    /// Position among the labels, from 1; the end comes after the last.
    pub(super) number: u32,
    /// Label as given by the user; empty at the end.
    pub(super) label: String,
    /// Time of the request, BOOTTIME in ns.
    pub(super) boot_ns: u64,
    /// The processes that match the targets now, with their names.
    pub(super) processes: Vec<(u32, String)>,
    pub(super) timeline: TimelineFile,
    /// For actions that cause garbage collections in the app.
    pub(super) windows: OurWindows,
}

/// Reason for a missing capture.
#[derive(Debug)]
pub(super) enum NotTaken {
    /// The device is disconnected; retry when it returns.
    Away(DeviceError),
    /// No process matches the targets now.
    NoTarget,
    /// Retrying would fail in the same way.
    Because(String),
}

impl From<DeviceError> for NotTaken {
    fn from(error: DeviceError) -> Self {
        match error {
            error if error.is_connection() => NotTaken::Away(error),
            error => NotTaken::Because(error.to_string()),
        }
    }
}

impl From<CaptureError> for NotTaken {
    fn from(error: CaptureError) -> Self {
        match error {
            CaptureError::Device(error) => error.into(),
            error => NotTaken::Because(error.to_string()),
        }
    }
}

impl From<io::Error> for NotTaken {
    fn from(error: io::Error) -> Self {
        NotTaken::Because(error.to_string())
    }
}

/// Returns the name of a label in file names: `02-after-login`.
pub(super) fn name_of(number: u32, label: &str) -> String {
    let label = match label {
        "" => END.to_owned(),
        label => file_name(label),
    };
    format!("{number:02}-{label}")
}

pub(super) fn gzip(bytes: &[u8], level: Compression) -> io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), level);
    packer.write_all(bytes)?;
    packer.finish()
}

impl At {
    /// Returns the name of the label in file names.
    pub(super) fn name(&self) -> String {
        name_of(self.number, &self.label)
    }

    /// Returns the name of a file in the recording directory: `meminfo/02-after-login.txt`,
    /// including the pid if there are several processes.
    fn file(&self, what: &str, pid: u32, extension: &str) -> String {
        let name = self.name();
        match self.processes.len() {
            0 | 1 => format!("{what}/{name}.{extension}"),
            _ => format!("{what}/{name}-{pid}.{extension}"),
        }
    }

    /// Returns the path of a file, and creates its directory.
    fn path(&self, file: &str) -> io::Result<PathBuf> {
        let inside = Path::new(file).parent().unwrap_or(Path::new(""));
        directory_inside(&self.directory, inside)?;
        Ok(self.directory.join(file))
    }

    /// Writes a file atomically, and records it with time `boot_ns`, or the time of the request.
    /// Earlier files are kept if a capture is repeated after a disconnect or for a restarted
    /// process.
    pub(super) fn keep(
        &self,
        what: &str,
        (pid, extension): (u32, &str),
        boot_ns: Option<u64>,
        bytes: &[u8],
    ) -> io::Result<()> {
        let name = self.file(what, pid, extension);
        let path = self.path(&name)?;
        let mut file = temporary_in(path.parent().unwrap_or(&self.directory))?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        let name = persist_beside(file, &self.directory, &name, extension)?;
        self.kept(what, pid, boot_ns, name);
        Ok(())
    }

    /// Records a complete file of the directory.
    pub(super) fn kept(&self, what: &str, pid: u32, boot_ns: Option<u64>, file: String) {
        let kept = Kept {
            what: what.to_owned(),
            file,
            label: self.label.clone(),
            number: self.number,
        };
        let boot_ns = boot_ns.unwrap_or(self.boot_ns);
        self.timeline.see(boot_ns, pid, Observation::Captured(kept));
    }

    /// Records a capture that is missing at this label.
    pub(super) fn missed(&self, what: &str, pid: u32, why: String) {
        let missed = Missed {
            what: what.to_owned(),
            label: self.label.clone(),
            number: self.number,
            reason: None,
            why,
        };
        self.timeline
            .see(self.boot_ns, pid, Observation::Missed(missed));
    }

    /// Records the processes that miss `what`, each with its reason.
    ///
    /// # Errors
    /// Returns an error if all processes do, so that the label is without it.
    pub(super) fn without(&self, what: &str, missed: Vec<(u32, String)>) -> Result<(), NotTaken> {
        if !missed.is_empty() && missed.len() == self.processes.len() {
            let reasons: Vec<String> = missed.into_iter().map(|(_, why)| why).collect();
            return Err(NotTaken::Because(reasons.join("; ")));
        }
        for (pid, why) in missed {
            self.missed(what, pid, why);
        }
        Ok(())
    }

    /// Records an action on `pid` from `from_ns` to `until_ns` that its log shows.
    pub(super) fn ours(&self, what: &str, pid: u32, from_ns: u64, until_ns: u64) {
        let ours = HeaptapAction {
            what: what.to_owned(),
            until_ns,
        };
        self.timeline
            .see(from_ns, pid, Observation::HeaptapAction(ours));
    }
}

/// Persists a file as `name` in `directory`, or as `name~2`, `name~3` … before the extension if that
/// exists. Returns the resulting name.
fn persist_beside(
    file: NamedTempFile,
    directory: &Path,
    name: &str,
    extension: &str,
) -> io::Result<String> {
    let stem = name.strip_suffix(extension).unwrap_or(name);
    let stem = stem.trim_end_matches('.');
    let mut file = file.into_temp_path();
    let mut taken = 1;
    loop {
        let name = match taken {
            1 => name.to_owned(),
            more => format!("{stem}~{more}.{extension}"),
        };
        match place(file, &directory.join(&name)) {
            Ok(()) => return Ok(name),
            Err((error, again)) if error.kind() == io::ErrorKind::AlreadyExists => file = again,
            Err((error, _)) => return Err(error),
        }
        taken += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_file_of_a_moment_does_not_replace_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let persist = |text: &str| {
            let mut file = NamedTempFile::new_in(directory.path()).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            persist_beside(file, directory.path(), "01-v1.2.smaps.gz", "smaps.gz").unwrap()
        };
        let names = ["of 7", "of 9", "of 11"].map(persist);
        let expected = [
            "01-v1.2.smaps.gz",
            "01-v1.2~2.smaps.gz",
            "01-v1.2~3.smaps.gz",
        ];
        assert_eq!(names, expected);
        let first = std::fs::read_to_string(directory.path().join(expected[0]));
        assert_eq!(first.unwrap(), "of 7");
    }
}
