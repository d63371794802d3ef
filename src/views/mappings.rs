//! Mappings read for a command, and how much of them a page shows.

use crate::error::Failure;
use crate::flags::context::Context;
use crate::heaps::selector::JavaInput;
use crate::system::smaps::{self, InputError, Mapped};
use crate::views::blocking;

/// Rows of a table for people.
pub(crate) const PAGE: usize = 30;

/// What is said of a text whose end is missing.
pub(crate) const CUT: &str = "is cut off: it ends within a mapping, and sums are too low";

/// Reads the mappings of a file, a trace or a folder.
pub(crate) async fn load(
    ctx: &Context,
    input: JavaInput,
    process: Option<String>,
) -> Result<Mapped, Failure> {
    blocking::stepwise(ctx, move |progress| -> Result<Mapped, InputError> {
        smaps::load(&input, process.as_deref(), progress)
    })
    .await
}
