//! Work that blocks, such as looking names up, on a thread of its own: the console shows how far
//! it is, and a signal ends it in good order.

use std::sync::Arc;
use std::time::Duration;

use super::signals::watch_signals;
use super::{Context, progress};
use crate::app::device_libs::DeviceLibs;
use crate::app::naming::Watch;
use crate::error::{ErrorClass, Failure};

/// After a signal, what is under way may take so long to tidy up.
const PATIENCE: Duration = Duration::from_secs(5);

/// Does `work`, which may ask `phone` for libraries. After a signal no more names are looked up, and it ends by itself; whoever asks
/// twice does not wait for that.
///
/// # Errors
/// The work's, or that it was interrupted.
pub(super) async fn watched<T, E>(
    ctx: &Context,
    what: &str,
    phone: Option<Arc<DeviceLibs>>,
    work: impl FnOnce(Watch) -> Result<T, E> + Send + 'static,
) -> Result<T, Failure>
where
    T: Send + 'static,
    E: Into<Failure> + Send + 'static,
{
    let status = ctx.console.status();
    ctx.console.set_status(&status, what);
    let watch = progress::names_on(&ctx.console, &status, what).asking(phone);
    let mut signals = watch_signals()?;
    let mut task = {
        let watch = watch.clone();
        tokio::task::spawn_blocking(move || work(watch))
    };
    let result = tokio::select! {
        result = &mut task => Some(result),
        _ = signals.recv() => {
            watch.cancel();
            tokio::select! {
                result = &mut task => Some(result),
                _ = signals.recv() => None,
                () = tokio::time::sleep(PATIENCE) => None,
            }
        }
    };
    status.finish_and_clear();
    match result {
        Some(Ok(result)) => result.map_err(Into::into),
        Some(Err(error)) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(interrupted(error.to_string())),
        },
        None => Err(interrupted("interrupted")),
    }
}

fn interrupted(message: impl Into<String>) -> Failure {
    Failure::new(ErrorClass::Interrupted, "interrupted", message)
}
