//! Signals that end a recording: Ctrl-C, and termination requests of the system. Contains all
//! differences between operating systems.

use std::io;
#[cfg(unix)]
use std::time::Duration;

use tokio::sync::mpsc;
#[cfg(unix)]
use tokio::time::Instant;

use heaptap_base::error::{ErrorClass, Failure};

/// Signals that follow another one this soon are the same: `timeout` and CI systems signal a process
/// and then its group. A key is pressed twice more slowly.
#[cfg(unix)]
const ECHO: Duration = Duration::from_millis(100);

/// A received signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT; Ctrl-C on Windows.
    Interrupt,
    /// SIGTERM, SIGHUP; CTRL_BREAK, a closed console, a log-off or shutdown on Windows.
    Terminate,
}

/// As [`watch`], with a failure for the command line.
///
/// # Errors
/// Returns an error if the system does not allow handlers.
pub(crate) fn watch_signals() -> Result<mpsc::UnboundedReceiver<Signal>, Failure> {
    watch().map_err(|error| {
        Failure::new(
            ErrorClass::Bug,
            "no-signals",
            format!("cannot watch for signals: {error}"),
        )
    })
}

/// Sends every signal from now on; signals no longer end the process.
///
/// # Errors
/// Returns an error if the system does not allow handlers.
#[cfg(unix)]
fn watch() -> io::Result<mpsc::UnboundedReceiver<Signal>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Under `nohup`, a recording goes on after the terminal is closed.
    let mut hangup = match heaptap_base::hangup::is_ignored() {
        true => None,
        false => Some(signal(SignalKind::hangup())?),
    };
    // With a handler, a write beyond `ulimit -f` fails with an error instead of ending the process.
    drop(signal(SignalKind::from_raw(
        rustix::process::Signal::XFSZ.as_raw(),
    ))?);
    let (sender, receiver) = mpsc::unbounded_channel();
    let next = async move || {
        tokio::select! {
            Some(()) = interrupt.recv() => Some(Signal::Interrupt),
            Some(()) = terminate.recv() => Some(Signal::Terminate),
            Some(()) = received_by(&mut hangup) => Some(Signal::Terminate),
            else => None,
        }
    };
    tokio::spawn(without_echoes(next, sender));
    Ok(receiver)
}

/// Sends each signal that is not the echo of the one before.
#[cfg(unix)]
async fn without_echoes(
    mut next: impl AsyncFnMut() -> Option<Signal>,
    sender: mpsc::UnboundedSender<Signal>,
) {
    let mut last: Option<Instant> = None;
    while let Some(received) = next().await {
        let before = last.replace(Instant::now());
        let is_echo = before.is_some_and(|before| before.elapsed() < ECHO);
        if !is_echo && sender.send(received).is_err() {
            return;
        }
    }
}

/// Waits for a signal that is watched, or forever.
#[cfg(unix)]
async fn received_by(signal: &mut Option<tokio::signal::unix::Signal>) -> Option<()> {
    match signal {
        Some(signal) => signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Receives Ctrl-C also in a process group of its own, where Windows ignores it by default: programs
/// that start others put them there.
#[cfg(windows)]
fn take_ctrl_c() {
    type Handler = Option<unsafe extern "system" fn(u32) -> i32>;
    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn SetConsoleCtrlHandler(handler: Handler, add: i32) -> i32;
    }
    // SAFETY: without a handler, the call only clears a flag of this process.
    unsafe {
        SetConsoleCtrlHandler(None, 0);
    }
}

/// Sends every signal from now on; signals no longer end the process.
///
/// # Errors
/// Returns an error if the system does not allow handlers.
#[cfg(windows)]
fn watch() -> io::Result<mpsc::UnboundedReceiver<Signal>> {
    use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown};
    take_ctrl_c();
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn signals_of_a_supervisor_to_a_process_and_its_group_are_one() {
        let mut pauses_ms = [0, 20, 90, 190, 99, 100].into_iter();
        let next = async || {
            tokio::time::sleep(Duration::from_millis(pauses_ms.next()?)).await;
            Some(Signal::Terminate)
        };
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let begun = Instant::now();
        let noted = tokio::spawn(async move {
            let mut at_ms = Vec::new();
            while receiver.recv().await.is_some() {
                at_ms.push(begun.elapsed().as_millis());
            }
            at_ms
        });
        without_echoes(next, sender).await;
        assert_eq!(noted.await.unwrap(), [0, 300, 499]);
    }
}
