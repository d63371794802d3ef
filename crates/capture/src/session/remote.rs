//! heaptap's traces on a device, from any host; and the single fixed file of Android 10.

use super::id::{SessionId, TRACE_DIR};
use super::journal::SessionHeader;
use super::probe::{self, QUICK, TraceWriter};
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
    let names = device
        .text(&Command::program("ls").arg(TRACE_DIR), QUICK)
        .await?;
    let mut found = Vec::new();
    for line in names.lines() {
        let Some(id) = SessionId::of_remote_name(line.trim()) else {
            continue;
        };
        let path = id.remote_path();
        found.push(RemoteTrace {
            stat: device.stat(&path, QUICK).await?,
            writer: writer_of(device, &path).await?,
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

/// Finds what writes to `path` on `device`, if anything.
///
/// # Errors
/// Returns an error if the device cannot be reached.
pub async fn writer_of(device: &Device, path: &str) -> Result<Option<TraceWriter>, CaptureError> {
    Ok(probe::find_writer(device, path).await?)
}

/// Finds what writes the trace of a session on `device`, if any.
///
/// # Errors
/// Returns an error if the device cannot be reached.
pub async fn writer_for(
    device: &Device,
    header: &SessionHeader,
) -> Result<Option<TraceWriter>, CaptureError> {
    Ok(probe::find_own_writer(device, header).await?)
}
