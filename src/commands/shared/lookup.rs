//! Symbolization of a command that reads a file: the device that libraries come from, and the status
//! line.

use std::sync::Arc;

use indicatif::ProgressBar;

use crate::console::Console;
use crate::console::flags::context::Context;
use crate::console::flags::names::{NamesArgs, PullLibsArg};
use crate::names::device_libs::{DeviceLibs, PullLibs};
use crate::names::frames::LookupControl;

/// Returns the device to fetch libraries from; `None` unless requested. An unavailable device only
/// costs symbols.
pub(crate) async fn phone_asked(ctx: &Context, names: &NamesArgs) -> Option<Arc<DeviceLibs>> {
    if names.pull_libs != PullLibsArg::Always || names.no_symbolize {
        return None;
    }
    match ctx.device().await {
        Ok(device) => Some(Arc::new(DeviceLibs::new(device.clone(), PullLibs::Always))),
        Err(failure) => {
            let why = failure.message;
            ctx.console
                .warn(format_args!("cannot fetch libraries from a device: {why}"));
            None
        }
    }
}

/// Returns a control for symbolization that shows its progress in a status line, and `after` when
/// it is done.
pub(super) fn names_on(console: &Console, status: &ProgressBar, after: &str) -> LookupControl {
    let (console, status, after) = (console.clone(), status.clone(), after.to_owned());
    LookupControl::telling(move |progress| {
        if progress.done == progress.libraries {
            console.set_status(&status, &after);
            return;
        }
        let (done, all) = (progress.done, progress.libraries);
        console.set_status(
            &status,
            format_args!("symbolizing: {done} of {all} libraries"),
        );
    })
}
