//! The moment at which everything is taken that a recording has beside it: a label, or the end.
//! Owns how the files of that moment are called, and that each is whole and noted.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::file::TimelineFile;
use crate::device::{Device, DeviceError};
use crate::observe::OurWindows;
use crate::results::output::file_name;
use crate::results::whole_file::{folder_inside, temporary_in};
use crate::session::SessionError;
use crate::session::unfinished::place;
use crate::timeline::{HeaptapAction, Kept, Observation};

/// What the end of a recording is called in names of files.
const END: &str = "end";

/// A label, or the end of the recording.
#[derive(Clone)]
pub(super) struct At {
    pub(super) device: Device,
    /// The recording's folder.
    pub(super) folder: PathBuf,
    /// Its place among the labels, from 1; the end comes after the last.
    pub(super) number: u32,
    /// As it was given; empty at the end.
    pub(super) label: String,
    /// When it was asked for, BOOTTIME ns.
    pub(super) boot_ns: u64,
    /// The processes that match the targets now, with their names.
    pub(super) processes: Vec<(u32, String)>,
    pub(super) timeline: TimelineFile,
    /// For whoever makes an app collect its garbage.
    pub(super) windows: OurWindows,
}

/// Why something was not taken.
#[derive(Debug)]
pub(super) enum NotTaken {
    /// The phone is away: worth another try once it is back.
    Away(DeviceError),
    /// No process matches the targets now.
    NoTarget,
    /// Another try would come out the same.
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

impl From<SessionError> for NotTaken {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Device(error) => error.into(),
            error => NotTaken::Because(error.to_string()),
        }
    }
}

impl From<io::Error> for NotTaken {
    fn from(error: io::Error) -> Self {
        NotTaken::Because(error.to_string())
    }
}

impl At {
    /// What the moment is called in names of files: `02-after-login`.
    pub(super) fn name(&self) -> String {
        let label = match self.label.as_str() {
            "" => END.to_owned(),
            label => file_name(label),
        };
        format!("{:02}-{label}", self.number)
    }

    /// The name of a file in the recording's folder: `meminfo/02-after-login.txt`, with the pid
    /// where there are several processes.
    fn file(&self, what: &str, pid: u32, extension: &str) -> String {
        let name = self.name();
        match self.processes.len() {
            0 | 1 => format!("{what}/{name}.{extension}"),
            _ => format!("{what}/{name}-{pid}.{extension}"),
        }
    }

    /// Where a file of that name goes; its folder is there then.
    fn path(&self, file: &str) -> io::Result<PathBuf> {
        let inside = Path::new(file).parent().unwrap_or(Path::new(""));
        folder_inside(&self.folder, inside)?;
        Ok(self.folder.join(file))
    }

    /// Writes a file, whole or not at all, and notes it: as of `boot_ns`, or of the moment that
    /// was asked for. Of a moment that is taken again, after a lost cable or of a process that
    /// was started again, the files of before stay.
    pub(super) fn keep(
        &self,
        what: &str,
        (pid, extension): (u32, &str),
        boot_ns: Option<u64>,
        bytes: &[u8],
    ) -> io::Result<()> {
        let name = self.file(what, pid, extension);
        let path = self.path(&name)?;
        let mut file = temporary_in(path.parent().unwrap_or(&self.folder))?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        let name = persist_beside(file, &self.folder, &name, extension)?;
        self.kept(what, pid, boot_ns, name);
        Ok(())
    }

    /// Notes a file that stands whole in the folder.
    pub(super) fn kept(&self, what: &str, pid: u32, boot_ns: Option<u64>, file: String) {
        let kept = Kept {
            what: what.to_owned(),
            file,
            label: self.label.clone(),
            number: self.number,
        };
        let boot_ns = boot_ns.unwrap_or(self.boot_ns);
        self.timeline.see(boot_ns, pid, Observation::Kept(kept));
    }

    /// Notes what was done to `pid` from `from_ns` to `until_ns`, and shows in its log.
    pub(super) fn ours(&self, what: &str, pid: u32, from_ns: u64, until_ns: u64) {
        let ours = HeaptapAction {
            what: what.to_owned(),
            until_ns,
        };
        self.timeline.see(from_ns, pid, Observation::Ours(ours));
    }
}

/// Persists a file as `name` in `folder`, or as `name~2`, `name~3` … before the extension where
/// that is taken. The name that it got.
fn persist_beside(
    file: NamedTempFile,
    folder: &Path,
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
        match place(file, &folder.join(&name)) {
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
        let folder = tempfile::tempdir().unwrap();
        let persist = |text: &str| {
            let mut file = NamedTempFile::new_in(folder.path()).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            persist_beside(file, folder.path(), "01-v1.2.smaps.gz", "smaps.gz").unwrap()
        };
        let names = ["of 7", "of 9", "of 11"].map(persist);
        let expected = [
            "01-v1.2.smaps.gz",
            "01-v1.2~2.smaps.gz",
            "01-v1.2~3.smaps.gz",
        ];
        assert_eq!(names, expected);
        let first = std::fs::read_to_string(folder.path().join(expected[0]));
        assert_eq!(first.unwrap(), "of 7");
    }
}
