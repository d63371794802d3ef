//! Traces of ours that stand on a device, whichever host recorded them; and Android 10's one
//! fixed file.

use super::error::SessionError;
use super::id::{SessionId, TRACE_DIR};
use super::journal::ProcessKey;
use super::probe::{self, QUICK, Writer};
use heaptap_adb::{Command, Device, RemoteStat};

/// A trace on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteTrace {
    /// The session that its name holds.
    pub id: SessionId,
    /// Where it is.
    pub path: String,
    /// Size and time; `None` where it is gone again.
    pub stat: Option<RemoteStat>,
    /// The perfetto that still writes to it.
    pub writer: Option<ProcessKey>,
}

/// The traces of ours that `device` holds. Empty where it does not let the shell look.
///
/// # Errors
/// Where the device cannot be asked.
pub async fn remote_traces(device: &Device) -> Result<Vec<RemoteTrace>, SessionError> {
    let output = device
        .run(&Command::program("ls").arg(TRACE_DIR), QUICK)
        .await?;
    let mut found = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some(id) = SessionId::of_remote_name(line.trim()) else {
            continue;
        };
        let path = id.remote_path();
        let writer = match probe::find_writer(device, &path).await? {
            Writer::Perfetto(facts) => Some(facts.key),
            Writer::None | Writer::Starting => None,
        };
        found.push(RemoteTrace {
            stat: device.stat(&path, QUICK).await?,
            id,
            path,
            writer,
        });
    }
    Ok(found)
}

/// Android 10's shell cannot remove traces, so there is one file, written again each time. A
/// file that root made is not the shell's to write, so each has its own.
pub fn fixed_path(shell_is_root: bool) -> String {
    format!(
        "{TRACE_DIR}/profile-{}",
        if shell_is_root { "root" } else { "shell" }
    )
}

/// The perfetto that writes to `path` on `device`, if any.
///
/// # Errors
/// Where the device cannot be asked.
pub async fn writer_of(device: &Device, path: &str) -> Result<Option<ProcessKey>, SessionError> {
    Ok(match probe::find_writer(device, path).await? {
        Writer::Perfetto(facts) => Some(facts.key),
        Writer::None | Writer::Starting => None,
    })
}
