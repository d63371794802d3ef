//! Mappings read for a command, and how much of them a page shows.

use crate::commands::shared::blocking;
use crate::console::flags::context::Context;
use crate::heaps::selector::{JavaInput, ProcessFilter};
use crate::heaps::smaps::{self, Mapped, MappingsError};
use heaptap_base::error::Failure;

/// Maximum number of rows in text output.
pub(crate) const PAGE: usize = 30;

/// Warning about a truncated text.
pub(crate) const CUT: &str = "is truncated within a mapping; sums are too low";

/// Reads the memory mappings of a file, a trace or a directory.
pub(crate) async fn load(
    ctx: &Context,
    input: JavaInput,
    processes: ProcessFilter,
) -> Result<Mapped, Failure> {
    blocking::stepwise(ctx, move |progress| -> Result<Mapped, MappingsError> {
        smaps::load(&input, &processes, progress)
    })
    .await
}
