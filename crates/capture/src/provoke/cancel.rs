//! Ending a run from outside: the current step finishes, and changed settings are restored.

use tokio::sync::watch;

use crate::error::CaptureError;

/// Handle to end a run.
#[derive(Debug)]
pub struct Canceller(watch::Sender<bool>);

/// Receiver that is notified when a run must end.
#[derive(Debug, Clone)]
pub struct Cancel(watch::Receiver<bool>);

impl Cancel {
    /// Creates a connected pair.
    pub fn new() -> (Canceller, Cancel) {
        let (sender, receiver) = watch::channel(false);
        (Canceller(sender), Cancel(receiver))
    }

    /// Returns the error of an ended run.
    ///
    /// # Errors
    /// Returns an error if the run must end.
    pub fn check(&self) -> Result<(), CaptureError> {
        match *self.0.borrow() {
            true => Err(CaptureError::canceled()),
            false => Ok(()),
        }
    }

    /// Returns when the run must end; never if the [`Canceller`] is gone.
    pub async fn wait(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|ended| *ended).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Canceller {
    /// Ends the run: the current step finishes, and changed settings are restored.
    pub fn cancel(&self) {
        // There is no receiver if the run has already ended.
        let _ = self.0.send(true);
    }
}
