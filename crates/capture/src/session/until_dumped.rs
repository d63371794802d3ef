//! Ends a session after its dumps on devices that cannot do this themselves: reads the new end of
//! the file while following, until every process that matched at the start has a complete dump.

use std::collections::BTreeSet;

use super::completion::Completion;
use super::growing_trace::{LOOK, look};
use super::journal::SessionState;
use super::session::Session;
use super::targets::target_pids;
use heaptap_adb::Device;
use perfetto_heap::DumpScanner;

impl Session {
    /// From now on [`Session::follow`] ends when every process that matches the targets now
    /// has a complete dump.
    pub fn end_with_dumps(&mut self) {
        let device = self.device.clone();
        let state = self.state().clone();
        self.completion = Completion::when(async move { until_complete(&device, &state).await });
    }
}

/// Returns `None` if the dumps cannot be observed: the session then ends after its duration.
async fn until_complete(device: &Device, state: &SessionState) -> Option<()> {
    let mut scan = DumpScanner::default();
    let file = (
        state.header.remote_path.as_str(),
        state.process.as_ref()?.pid,
    );
    let expected = loop {
        match target_pids(device, state).await {
            Ok(pids) => break pids,
            Err(_) => tokio::time::sleep(LOOK).await,
        }
    };
    let mut at = 0;
    while !expected.is_empty() {
        // The follower reports a lost connection.
        if let Ok(seen) = look(device, file, &mut at, &mut scan).await {
            if scan.is_lost() || !seen.alive {
                return None;
            }
            let pids = scan.dumps().iter().map(|dump| u32::try_from(dump.pid));
            let dumped: BTreeSet<u32> = pids.flatten().collect();
            if expected.is_subset(&dumped) {
                return Some(());
            }
        }
        tokio::time::sleep(LOOK).await;
    }
    None
}
