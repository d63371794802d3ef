//! `heaptap sessions`.

mod view;

pub use view::{CollectArgs, SnapshotArgs, StatusArgs, StopArgs, collect, snapshot, status, stop};
