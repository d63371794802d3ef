//! Models behind tables: given, or read once when a table first needs them.

use std::sync::{Arc, Mutex};

use super::table::{Model, TableError};
use heaptap_base::parallel::lock;

/// Returns a model that exists already.
pub(super) fn given<M: Send + Sync + 'static>(model: &Arc<M>) -> Model<M> {
    let model = Arc::clone(model);
    Arc::new(move || Ok(Arc::clone(&model)))
}

/// Returns a model that is read when first needed, and again only after an error.
pub(super) fn read_once<M: Send + Sync + 'static>(
    read: impl Fn() -> Result<M, TableError> + Send + Sync + 'static,
) -> Model<M> {
    let kept: Mutex<Option<Arc<M>>> = Mutex::default();
    Arc::new(move || {
        let mut kept = lock(&kept);
        if let Some(kept) = &*kept {
            return Ok(Arc::clone(kept));
        }
        Ok(Arc::clone(kept.insert(Arc::new(read()?))))
    })
}
