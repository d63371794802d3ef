//! Fetches recordings that an interrupted run left on a device.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::device::Device;
use crate::error::Failure;
use crate::recording::events::EventHandler;
use crate::recording::sessions::{self, SessionSelector};
use crate::session::Store;

/// Ends and fetches the recordings whose results belong into `folder`. They stay on the device if
/// it is not at hand; `heaptap status` lists them.
///
/// # Errors
/// Returns an error if the sessions cannot be listed, or the first that cannot be fetched.
pub(super) async fn collect(device: &Device, store: &Store, folder: &Path) -> Result<(), Failure> {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let (left, _) = store.list()?;
    let ours = left
        .into_iter()
        .filter(|state| state.header.output.starts_with(&folder));
    for state in ours {
        let (_ask, mut controls) = mpsc::unbounded_channel();
        let ignored: EventHandler = Arc::new(|_| {});
        let selector = SessionSelector::Id(state.header.id.to_string());
        let device = device.clone();
        sessions::stop(
            store,
            async || Ok(device),
            &selector,
            None,
            None,
            &mut controls,
            &ignored,
        )
        .await?;
    }
    Ok(())
}
