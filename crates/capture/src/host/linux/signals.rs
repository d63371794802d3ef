//! Signals to heaptap while a program runs, with their origin: the terminal signals the program
//! itself, because it is in the same process group; a process signals heaptap alone.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::hangup;
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::end::Origin;

/// `si_code` of signals that the kernel sends, such as those of a terminal.
const SI_KERNEL: i32 = 0x80;

const WATCHED: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// Whether the last signal came from the terminal, in the order of [`WATCHED`].
static BY_TERMINAL: [AtomicBool; WATCHED.len()] = [const { AtomicBool::new(false) }; WATCHED.len()];

/// Signals to heaptap. They do not end heaptap any more.
#[derive(Debug)]
pub struct Signals(mpsc::UnboundedReceiver<(i32, Origin, Instant)>);

impl Signals {
    /// Watches for SIGINT, SIGTERM, SIGHUP and SIGQUIT.
    ///
    /// # Errors
    /// Returns an error if the system does not allow handlers.
    pub fn watch() -> Result<Signals, Failure> {
        watch().map_err(|error| {
            let message = format!("cannot watch for signals: {error}");
            Failure::new(ErrorClass::Bug, "no-signals", message)
        })
    }

    /// Returns the next signal, and its origin.
    pub async fn next(&mut self) -> (i32, Origin) {
        match self.0.recv().await {
            Some((signal, origin, _)) => (signal, origin),
            None => std::future::pending().await,
        }
    }

    /// Returns when a signal has come at `time` or later.
    pub async fn after(&mut self, time: Instant) {
        loop {
            match self.0.recv().await {
                Some((_, _, received)) if received >= time => return,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Forgets the signals that came until now.
    pub fn drain(&mut self) {
        while self.0.try_recv().is_ok() {}
    }
}

fn watch() -> io::Result<Signals> {
    let (sender, receiver) = mpsc::unbounded_channel();
    // Under `nohup`, neither heaptap nor the program ends with the terminal.
    let is_ignored = |signal: Signal| signal == Signal::HUP && hangup::is_ignored();
    for (at, watched) in WATCHED.into_iter().enumerate() {
        if is_ignored(watched) {
            continue;
        }
        let number = watched.as_raw();
        // SAFETY: the action only stores into an atomic, which is allowed in a signal handler.
        // Actions run in the order of their registration, so it precedes tokio's.
        unsafe {
            signal_hook_registry::register_sigaction(number, move |info| {
                BY_TERMINAL[at].store(info.si_code == SI_KERNEL, Ordering::SeqCst);
            })
        }?;
        let mut stream = signal(SignalKind::from_raw(number))?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                let origin = match BY_TERMINAL[at].load(Ordering::SeqCst) {
                    true => Origin::Terminal,
                    false => Origin::Process,
                };
                if sender.send((number, origin, Instant::now())).is_err() {
                    return;
                }
            }
        });
    }
    Ok(Signals(receiver))
}
