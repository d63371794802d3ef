//! The signals that end a recording: Ctrl-C, and what the system sends when it wants us gone.
//! The one place that knows how they differ between systems.

use std::io;

use tokio::sync::mpsc;

use crate::error::{ErrorClass, Failure};

/// What was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT; Ctrl-C on Windows.
    Interrupt,
    /// SIGTERM, SIGHUP; CTRL_BREAK, a closed console, a log-off or shutdown on Windows.
    Terminate,
}

/// As [`watch`], with the failure as the command line shows it.
///
/// # Errors
/// Where the system lets no handler be set.
pub(crate) fn watch_signals() -> Result<mpsc::UnboundedReceiver<Signal>, Failure> {
    watch().map_err(|error| {
        Failure::new(
            ErrorClass::Bug,
            "no-signals",
            format!("could not watch for signals: {error}"),
        )
    })
}

/// Sends every signal received from now on; none of them ends the process any more.
///
/// # Errors
/// Where the system lets no handler be set.
#[cfg(unix)]
fn watch() -> io::Result<mpsc::UnboundedReceiver<Signal>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let received = tokio::select! {
                Some(()) = interrupt.recv() => Signal::Interrupt,
                Some(()) = terminate.recv() => Signal::Terminate,
                Some(()) = hangup.recv() => Signal::Terminate,
                else => return,
            };
            if sender.send(received).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

/// Sends every signal received from now on; none of them ends the process any more.
///
/// # Errors
/// Where the system lets no handler be set.
#[cfg(windows)]
fn watch() -> io::Result<mpsc::UnboundedReceiver<Signal>> {
    use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown};
    let mut interrupt = ctrl_c()?;
    let mut break_ = ctrl_break()?;
    let mut close = ctrl_close()?;
    let mut logoff = ctrl_logoff()?;
    let mut shutdown = ctrl_shutdown()?;
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let received = tokio::select! {
                Some(()) = interrupt.recv() => Signal::Interrupt,
                Some(()) = break_.recv() => Signal::Terminate,
                Some(()) = close.recv() => Signal::Terminate,
                Some(()) = logoff.recv() => Signal::Terminate,
                Some(()) = shutdown.recv() => Signal::Terminate,
                else => return,
            };
            if sender.send(received).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}
