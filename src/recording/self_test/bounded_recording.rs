//! A recording without a user: events end it, and so do its deadline, an interrupt of the user, and
//! a device that does not return. Always ends; data that cannot be fetched in time stay on the
//! device, and the session is named.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::context::{Bench, LEFT_ON_DEVICE, RETURN, TryEvent, interrupted};
use crate::recording::advice::device_away;
use crate::recording::events::{EventHandler, RecordEvent};
use crate::recording::outcome::{Finished, Recorded};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::provoke::Cancel;
use heaptap_capture::session::{Control, Controls, SessionEvent};

/// Time to end and fetch a recording after its deadline.
const ENDING: Duration = Duration::from_secs(20);
/// Time to give up after that.
const GIVING_UP: Duration = Duration::from_secs(5);

/// End of a recording that was not its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Deadline,
    Cancelled,
    Away,
}

/// A finished recording, and why it did not end by itself.
pub(super) struct Piloted {
    pub(super) finished: Box<Finished>,
    pub(super) cut: Option<Failure>,
}

/// Returns what a request gets within its limit.
///
/// # Errors
/// Returns the error of the work, or that its time is over, or that the user interrupted it.
pub(super) async fn limited<T>(
    limit: Duration,
    cancel: &Cancel,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        done = work => done,
        () = tokio::time::sleep(limit) => Err(too_slow(limit)),
        () = cancel.wait() => Err(interrupted()),
    }
}

fn too_slow(limit: Duration) -> Failure {
    let message = format!("the step did not end within {:.0} s", limit.as_secs_f64());
    Failure::new(ErrorClass::Device, "step-timeout", message)
        .with_help("run the command again while the device has nothing else to do")
}

impl Bench<'_> {
    /// Records. `on_event` returns the requests that follow from events.
    pub(super) async fn pilot(
        &self,
        limit: Duration,
        mut on_event: impl FnMut(&RecordEvent) -> Option<Control>,
        work: impl AsyncFnOnce(&mut Controls, &EventHandler) -> Result<Recorded, Failure>,
    ) -> Result<Piloted, Failure> {
        let (ask, mut controls) = mpsc::unbounded_channel();
        let (happened, mut events) = mpsc::unbounded_channel();
        let handler: EventHandler = std::sync::Arc::new(move |event| {
            // The receiver lives as long as the work.
            let _ = happened.send(event);
        });
        let mut work = Box::pin(work(&mut controls, &handler));
        let mut deadline = Instant::now() + limit;
        let mut away: Option<Instant> = None;
        let mut cut: Option<Cut> = None;
        let mut has_given_up = false;
        let ended = loop {
            let next = away.map_or(deadline, |away| away.min(deadline));
            tokio::select! {
                biased;
                Some(event) = events.recv() => {
                    match &event {
                        RecordEvent::Session(SessionEvent::ConnectionLost { .. }) => {
                            away.get_or_insert(Instant::now() + RETURN);
                        }
                        RecordEvent::Session(SessionEvent::Reconnected { .. }) => away = None,
                        _ => {}
                    }
                    // After its end, snapshots are of no use.
                    if let Some(control) = on_event(&event).filter(|_| cut.is_none()) {
                        let _ = ask.send(control);
                    }
                    (self.on_event)(TryEvent::Recording(event));
                }
                ended = &mut work => break Some(ended),
                () = self.cancel.wait(), if cut.is_none() => {
                    cut = Some(Cut::Cancelled);
                    let _ = ask.send(Control::Stop);
                    deadline = Instant::now() + ENDING;
                }
                () = sleep_until(next) => {
                    let is_away = away.take().is_some();
                    if has_given_up {
                        break None;
                    }
                    // A second request gives up waiting.
                    has_given_up = cut.is_some() || is_away;
                    cut = cut.or(Some(if is_away { Cut::Away } else { Cut::Deadline }));
                    let _ = ask.send(Control::Stop);
                    if is_away {
                        let _ = ask.send(Control::Stop);
                    }
                    deadline = Instant::now() + if has_given_up { GIVING_UP } else { ENDING };
                }
            }
        };
        while let Ok(event) = events.try_recv() {
            (self.on_event)(TryEvent::Recording(event));
        }
        // Without its future, the session is for `heaptap stop`.
        drop(work);
        let cut = cut.map(|cut| self.cut(cut, limit));
        match (ended, cut) {
            (Some(Ok(Recorded::Finished(mut finished))), cut) => {
                finished.journal.forget()?;
                Ok(Piloted { finished, cut })
            }
            (Some(Err(failure)), None) => Err(failure),
            // What is on the device matters more than why.
            (Some(Err(failure)), Some(_)) if failure.class == ErrorClass::NotFetched => {
                Err(failure)
            }
            (_, Some(cut)) => Err(cut),
            // It was not asked for.
            (_, None) => Err(too_slow(limit)),
        }
    }

    fn cut(&self, cut: Cut, limit: Duration) -> Failure {
        match cut {
            Cut::Deadline => too_slow(limit),
            Cut::Cancelled => interrupted(),
            Cut::Away => {
                let serial = self.device.serial();
                device_away(
                    format!("{serial} was disconnected and did not return"),
                    LEFT_ON_DEVICE,
                )
            }
        }
    }
}
