//! `--with smaps`: the mappings of each process at each label.

use super::at::{At, NotTaken};

/// Takes them.
pub(super) async fn capture(_at: &At) -> Result<(), NotTaken> {
    Ok(())
}
