//! `--with smaps`: the memory mappings of each process at each label, and the output of its
//! allocator, as written by the device.

use flate2::Compression;

use super::at_label::{At, NotTaken, gzip};
use crate::heaps::smaps::fetch::{self, FetchError};
use crate::recording::events::{EventHandler, warn};
use android_memory::smaps;
use heaptap_adb::Device;
use heaptap_capture::session::{self, SessionState};
use heaptap_model::timeline::{Entry, Observation};

/// Warns once at the start of the recording if the device does not allow reading memory mappings.
pub(super) async fn warn_of_obstacle(
    device: Device,
    session_state: SessionState,
    on_event: EventHandler,
) {
    let Ok(processes) = session::matching_processes(&device, &session_state).await else {
        return;
    };
    for (pid, name) in &processes {
        // The same permission as for smaps, without walking the pages.
        let readable = fetch::proc_file(&device, (*pid, name), "maps").await;
        if let Err(refused @ FetchError::Refused { .. }) = readable {
            let help = fetch::refused_help(name);
            warn(
                &on_event,
                format!("`--with smaps` has no effect: {refused}; {help}"),
            );
            return;
        }
    }
}

/// Captures the mappings. A missing allocator output (before Android 10, of apps that are not
/// debuggable) is recorded but is not a failure.
pub(super) async fn capture(at: &At) -> Result<(), NotTaken> {
    let mut missed = Vec::new();
    for (pid, name) in &at.processes {
        let fetched = fetch::proc_file(&at.device, (*pid, name), "smaps").await;
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(FetchError::Device(error)) => return Err(error.into()),
            Err(FetchError::Gone { .. }) => {
                missed.push((*pid, format!("{name} ({pid}) had ended")));
                continue;
            }
            Err(refused) => {
                missed.push((*pid, refused.to_string()));
                continue;
            }
        };
        // A process with a few hundred mappings has 500 KiB of text, compressed to a twentieth.
        let packed = gzip(&fetched.text, Compression::default())?;
        at.keep("smaps", (*pid, "smaps.gz"), fetched.boot_ns, &packed)?;
        if let Ok(smaps) = smaps::parse(&fetched.text)
            && let Some(parts) = smaps.parts()
        {
            at.timeline.add(&Entry {
                boot_ns: fetched.boot_ns.unwrap_or(at.boot_ns),
                pid: *pid,
                cost: None,
                seen: Observation::Parts(parts),
            });
        }
        let told = match fetch::malloc_info(&at.device, *pid).await {
            // The mappings of an unresponsive app are kept.
            Err(error) if !fetch::is_lost(&error) => Err(error.to_string()),
            told => told?,
        };
        match told {
            Ok(info) => at.keep("malloc-info", (*pid, "xml"), info.boot_ns, &info.text)?,
            Err(why) => at.missed("malloc-info", *pid, why),
        }
    }
    at.without("smaps", missed)
}
