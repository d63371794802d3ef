//! Memory mappings of a process: read from a device, a file, a trace or a recording directory,
//! summed up as a document, and compared.
//!
//! | file | contents |
//! |---|---|
//! | `fetch` | access methods on a device |
//! | `files` | files, traces, directories: available captures, and their selection |
//! | `moment` | mappings at one time, and the facts of their capture |
//! | `document` | sums for tables, JSON and CSV |

mod document;
pub(crate) mod fetch;
mod files;
mod moment;

pub use document::{ChangeRow, ChangesDocument, Document, Row, changes, document};
pub use fetch::{AccessMethod, FetchError};
pub use files::{MappingsError, is_text, load};
pub use moment::{Mapped, Moment, Origin};

use android_memory::smaps;
use heaptap_adb::Device;
use heaptap_capture::config::Targets;

/// Reads the mappings of a running process: `target` is its pid or its name.
///
/// # Errors
/// Returns an error if it is not running, the device denies access or is disconnected, or the
/// output is not a list of mappings.
pub async fn of_phone(
    device: &Device,
    targets: &Targets,
    user: Option<u32>,
) -> Result<Mapped, FetchError> {
    let (pid, process) = fetch::only_process(device, targets, user).await?;
    let fetched = fetch::proc_file(device, (pid, &process), "smaps").await?;
    let smaps = smaps::parse(&fetched.text).map_err(|error| FetchError::Refused {
        serial: device.serial().to_owned(),
        process: process.clone(),
        pid,
        said: error.to_string(),
    })?;
    Ok(Mapped {
        moment: Moment {
            time_ns: fetched.boot_ns,
            method: Some(fetched.method),
            ..Moment::new(Origin::Device, process, pid.into())
        },
        smaps,
        text: Some(fetched.text.into()),
        others: Vec::new(),
    })
}
