//! heaptap's traces on a device, from any host; and the single fixed file of Android 10.

use super::id::{SessionId, TRACE_DIR};
use super::probe::{QUICK, TraceWriter, find_writer};
use crate::error::CaptureError;
use heaptap_adb::{Command, Device, RemoteStat};

/// A trace on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteTrace {
    /// Session ID in its name.
    pub id: SessionId,
    pub path: String,
    /// Size and time; `None` if it has disappeared.
    pub stat: Option<RemoteStat>,
    /// What is still writing it.
    pub writer: Option<TraceWriter>,
}

/// Lists heaptap's traces on `device`. Empty if the shell cannot list the directory.
///
/// # Errors
/// Returns an error if the device cannot be reached.
pub async fn remote_traces(device: &Device) -> Result<Vec<RemoteTrace>, CaptureError> {
    let list = Command::program("ls").arg(TRACE_DIR);
    let names = device.text(&list, QUICK).await?;
    let mut found = Vec::new();
    for line in names.lines() {
        let Some(id) = SessionId::of_remote_name(line.trim()) else {
            continue;
        };
        let path = id.remote_path();
        found.push(RemoteTrace {
            stat: device.stat(&path, QUICK).await?,
            writer: find_writer(device, &path).await?,
            id,
            path,
        });
    }
    Ok(found)
}

/// Returns the path of the single trace file of Android 10, whose shell cannot remove traces. The
/// shell cannot write a file that root created, so each user has its own.
pub fn fixed_path(shell_is_root: bool) -> String {
    format!(
        "{TRACE_DIR}/profile-{}",
        if shell_is_root { "root" } else { "shell" }
    )
}
