//! Ending a run from outside: what is under way is finished, what was changed is put back.

use tokio::sync::watch;

use super::error::ProvokeError;

/// Whoever may end a run.
#[derive(Debug)]
pub struct Canceller(watch::Sender<bool>);

/// Whether a run is to end.
#[derive(Debug, Clone)]
pub struct Cancel(watch::Receiver<bool>);

impl Cancel {
    /// A pair of both.
    pub fn new() -> (Canceller, Cancel) {
        let (sender, receiver) = watch::channel(false);
        (Canceller(sender), Cancel(receiver))
    }

    pub(super) fn check(&self) -> Result<(), ProvokeError> {
        match *self.0.borrow() {
            true => Err(ProvokeError::Interrupted),
            false => Ok(()),
        }
    }

    /// Returns once it is to end; never where nobody can say so any more.
    pub(super) async fn wait(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|ended| *ended).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Canceller {
    /// Ends the run: what is under way is finished, what was changed is put back.
    pub fn cancel(&self) {
        // Nobody listens once it has ended.
        let _ = self.0.send(true);
    }
}
