//! The moment at which everything is taken that a recording has beside it: a label, or the end.
//! Owns how the files of that moment are called, and that each is whole and noted.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::file::TimelineFile;
use crate::device::{Device, DeviceError};
use crate::observe::OurWindows;
use crate::results::manifest;
use crate::results::output::file_name;
use crate::results::whole_file::folder_inside;
use crate::session::SessionError;
use crate::timeline::{Kept, Ours, Seen};

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
    /// was asked for.
    pub(super) fn keep(
        &self,
        what: &str,
        (pid, extension): (u32, &str),
        boot_ns: Option<u64>,
        bytes: &[u8],
    ) -> io::Result<()> {
        let name = self.file(what, pid, extension);
        let path = self.path(&name)?;
        let mut file = manifest::temporary_in(path.parent().unwrap_or(&self.folder))?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(&path)?;
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
        self.timeline.see(boot_ns, pid, Seen::Kept(kept));
    }

    /// Notes what was done to `pid` from `from_ns` to `until_ns`, and shows in its log.
    pub(super) fn ours(&self, what: &str, pid: u32, from_ns: u64, until_ns: u64) {
        let ours = Ours {
            what: what.to_owned(),
            until_ns,
        };
        self.timeline.see(from_ns, pid, Seen::Ours(ours));
    }
}
