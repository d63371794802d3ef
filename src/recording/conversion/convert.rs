//! Traces to gzipped pprofs: opens an input, decodes it, writes one file per dump, and returns
//! findings. `record` and `demo` also use it.

mod java;
mod request;
mod run;

pub use request::{Converted, Input, Plain, Request};

use super::error::ConvertError;
use crate::names::r8_mappings::R8Mappings;
use run::Run;
use std::io;

/// Converts. Blocks: decodes on this thread, writes on others. Files get their names only when they
/// are complete.
///
/// # Errors
/// Returns an error if the input contains no trace, or a file cannot be written. A damaged trace is
/// not an error: its readable data are converted, and findings describe the damage.
pub fn convert(request: &Request) -> Result<Converted, ConvertError> {
    convert_with(request, &request.maps()?)
}

/// As [`convert`], with the opened mappings of the request, for callers that need them again.
///
/// # Errors
/// As [`convert`].
pub fn convert_with(request: &Request, maps: &R8Mappings) -> Result<Converted, ConvertError> {
    let (traces, hprofs) = match &request.input {
        Input::Path(path) => java::open_path(path)?,
        Input::Stdin => {
            let traces = heaptap_input::open_stream(io::stdin().lock(), heaptap_input::STDIN_NAME)?;
            (traces, Vec::new())
        }
    };
    let mut run = Run::new(request, maps);
    for trace in traces {
        run.trace(trace)?;
    }
    run.hprofs(hprofs)?;
    run.finish()
}
