//! Blocking work, such as symbolization, on a separate thread: the console shows its progress, and
//! a signal ends it cleanly.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinError;

use super::lookup;
use crate::console::flags::context::Context;
use crate::console::signals::watch_signals;
use crate::heaps::java::ProgressReporter;
use crate::names::device_libs::DeviceLibs;
use crate::names::frames::LookupControl;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::parallel::lock;

/// Time limit for cleaning up after a signal.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs `work`, which can ask `phone` for libraries. After a signal, symbolization stops and the
/// work ends by itself; after a second signal, this returns without waiting for it.
///
/// # Errors
/// Returns the error of the work, or an interruption.
pub(crate) async fn watched<T, E>(
    ctx: &Context,
    what: &str,
    phone: Option<Arc<DeviceLibs>>,
    work: impl FnOnce(LookupControl) -> Result<T, E> + Send + 'static,
) -> Result<T, Failure>
where
    T: Send + 'static,
    E: Into<Failure> + Send + 'static,
{
    let status = ctx.console.status();
    ctx.console.set_status(&status, what);
    let control = lookup::names_on(&ctx.console, &status, what).asking(phone);
    let mut signals = watch_signals()?;
    let mut task = {
        let control = control.clone();
        tokio::task::spawn_blocking(move || work(control))
    };
    let result = tokio::select! {
        result = &mut task => Some(result),
        _ = signals.recv() => {
            control.cancel();
            tokio::select! {
                result = &mut task => Some(result),
                _ = signals.recv() => None,
                () = tokio::time::sleep(PATIENCE) => None,
            }
        }
    };
    status.finish_and_clear();
    ended(result)
}

/// Runs `work`, which reports its steps. The status line shows the step after one second. A signal
/// ends the program, because there is nothing to clean up.
///
/// # Errors
/// Returns the error of the work, or an interruption.
pub(crate) async fn stepwise<T, E>(
    ctx: &Context,
    work: impl FnOnce(&ProgressReporter) -> Result<T, E> + Send + 'static,
) -> Result<T, Failure>
where
    T: Send + 'static,
    E: Into<Failure> + Send + 'static,
{
    let at = Arc::new(Mutex::new(String::new()));
    let progress = {
        let at = Arc::clone(&at);
        ProgressReporter::telling(move |step| step.clone_into(&mut lock(&at)))
    };
    let status = ctx.console.status();
    let mut signals = watch_signals()?;
    let mut task = tokio::task::spawn_blocking(move || work(&progress));
    let began = Instant::now();
    let result = loop {
        tokio::select! {
            result = &mut task => break Some(result),
            _ = signals.recv() => break None,
            () = tokio::time::sleep(TICK) => {
                let passed = began.elapsed();
                if passed >= Duration::from_secs(1) {
                    let step = lock(&at).clone();
                    ctx.console.set_status(&status, format_args!("{step} … {} s", passed.as_secs()));
                }
            }
        }
    };
    status.finish_and_clear();
    ended(result)
}

/// Returns the result of the work; `None` if a signal ended it.
pub(crate) fn ended<T, E: Into<Failure>>(
    result: Option<Result<Result<T, E>, JoinError>>,
) -> Result<T, Failure> {
    match result {
        Some(Ok(result)) => result.map_err(Into::into),
        Some(Err(error)) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(interrupted(error.to_string())),
        },
        None => Err(interrupted("interrupted")),
    }
}

/// Interval of updates of the status line.
const TICK: Duration = Duration::from_millis(200);

fn interrupted(message: impl Into<String>) -> Failure {
    Failure::new(ErrorClass::Interrupted, "interrupted", message)
}
