//! Processes that match the targets of a session, and their names.

use std::collections::BTreeSet;

use super::journal::{Entry, SessionState};
use super::probe::{self, QUICK};
use super::session::Session;
use crate::error::CaptureError;
use heaptap_adb::{Command, Device};

/// Finds the running processes that match the targets of a session.
pub(super) async fn target_pids(
    device: &Device,
    state: &SessionState,
) -> Result<BTreeSet<u32>, CaptureError> {
    let header = &state.header;
    let mut pids = BTreeSet::new();
    if !header.names.is_empty() {
        let command = Command::program("pidof").args(&header.names);
        let text = device.text(&command, QUICK).await?;
        pids.extend(probe::parse_pids(&text));
    }
    for pid in &header.pids {
        if probe::process(device, *pid).await?.is_some() {
            pids.insert(*pid);
        }
    }
    Ok(pids)
}

/// Finds the running processes that match the targets of a session and have a name, by PID.
///
/// # Errors
/// Returns an error if the device cannot be reached.
pub async fn matching_processes(
    device: &Device,
    state: &SessionState,
) -> Result<Vec<(u32, String)>, CaptureError> {
    let pids = target_pids(device, state).await?;
    Ok(names(device, pids).await)
}

/// Reads the names of those of `pids` that have one by now. A process that is gone is named
/// by its number.
pub(super) async fn names(
    device: &Device,
    pids: impl IntoIterator<Item = u32>,
) -> Vec<(u32, String)> {
    let mut named = Vec::new();
    for pid in pids {
        let Ok(Some(facts)) = probe::process(device, pid).await else {
            continue;
        };
        let argv0 = facts.args.first().map_or(&b""[..], Vec::as_slice);
        let name: String = String::from_utf8_lossy(argv0).chars().take(256).collect();
        // Between fork and the app's own name, a process does not belong to an app yet.
        if !name.is_empty() && !name.starts_with('<') && !name.starts_with("zygote") {
            named.push((pid, name));
        }
    }
    named
}

impl Session {
    /// Records the names of matching processes, if the device can be reached: a trace
    /// might contain the heap of a process that started late, without its name.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be written.
    pub async fn note_targets(&mut self) -> Result<(), CaptureError> {
        match target_pids(&self.device, &self.state).await {
            Ok(mut pids) => {
                pids.retain(|pid| !self.state.seen.contains_key(pid));
                let named = names(&self.device, pids).await;
                self.note_named(named)
            }
            Err(CaptureError::Device(_)) => Ok(()),
            Err(other) => Err(other),
        }
    }

    pub(super) fn note_named(&mut self, named: Vec<(u32, String)>) -> Result<(), CaptureError> {
        for (pid, name) in named {
            if !self.state.seen.contains_key(&pid) {
                self.append(Entry::Seen { pid, name })?;
            }
        }
        Ok(())
    }
}
