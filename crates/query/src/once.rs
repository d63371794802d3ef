//! Values read once, when a table first needs them.

use std::sync::{Arc, Mutex};

use super::table::TableError;
use heaptap_model::parallel::lock;

/// Value read at most once.
pub(super) struct Once<T>(Mutex<Option<Arc<T>>>);

impl<T> Once<T> {
    pub(super) fn new() -> Arc<Once<T>> {
        Arc::new(Once(Mutex::new(None)))
    }

    pub(super) fn get(
        &self,
        read: impl FnOnce() -> Result<T, TableError>,
    ) -> Result<Arc<T>, TableError> {
        let mut kept = lock(&self.0);
        if let Some(kept) = &*kept {
            return Ok(Arc::clone(kept));
        }
        let read = Arc::new(read()?);
        *kept = Some(Arc::clone(&read));
        Ok(read)
    }
}
