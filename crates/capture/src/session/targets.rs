//! The processes that match the targets of a session, and their names.

use std::collections::BTreeSet;

use super::error::SessionError;
use super::journal::{Entry, SessionState};
use super::probe::{self, QUICK};
use super::session::Session;
use heaptap_adb::{Command, Device};

/// Processes that match the targets of a session now.
pub(super) async fn target_pids(
    device: &Device,
    state: &SessionState,
) -> Result<BTreeSet<u32>, SessionError> {
    let header = &state.header;
    let mut pids = BTreeSet::new();
    if !header.names.is_empty() {
        let output = device
            .run(&Command::program("pidof").args(&header.names), QUICK)
            .await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        pids.extend(
            text.split_whitespace()
                .filter_map(|p| p.parse::<u32>().ok()),
        );
    }
    for pid in &header.pids {
        if probe::process(device, *pid).await?.is_some() {
            pids.insert(*pid);
        }
    }
    Ok(pids)
}

/// Processes that match the targets of a session now and have a name, ordered by id.
///
/// # Errors
/// Where the device cannot be asked.
pub async fn matching_processes(
    device: &Device,
    state: &SessionState,
) -> Result<Vec<(u32, String)>, SessionError> {
    let pids = target_pids(device, state).await?;
    Ok(names(device, pids).await)
}

/// The names of those of `pids` that have one by now. Whoever is gone keeps its number for a
/// name.
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
        // Between fork and the app's own name a process is nobody's.
        if !name.is_empty() && !name.starts_with('<') && !name.starts_with("zygote") {
            named.push((pid, name));
        }
    }
    named
}

impl Session {
    /// Notes the names of the processes that match now, as far as the device can be asked: a
    /// trace may hold the heap of a process that started late, without its name.
    ///
    /// # Errors
    /// Where the journal cannot be written.
    pub async fn note_targets(&mut self) -> Result<(), SessionError> {
        match target_pids(&self.device, &self.state).await {
            Ok(mut pids) => {
                pids.retain(|pid| !self.state.seen.contains_key(pid));
                let named = names(&self.device, pids).await;
                self.note_named(named)
            }
            Err(SessionError::Device(_)) => Ok(()),
            Err(other) => Err(other),
        }
    }

    pub(super) fn note_named(&mut self, named: Vec<(u32, String)>) -> Result<(), SessionError> {
        for (pid, name) in named {
            if !self.state.seen.contains_key(&pid) {
                self.append(Entry::Seen { pid, name })?;
            }
        }
        Ok(())
    }
}
