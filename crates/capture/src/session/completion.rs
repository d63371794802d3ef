//! Notification that the dumps of a session are complete, sent once by a concurrent observer.

use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Notification that the dumps of a session are complete. Dropping it stops the observer.
#[derive(Default)]
pub(super) struct Completion {
    complete: Option<mpsc::Receiver<()>>,
    /// Aborted when this is dropped.
    _looking: JoinSet<()>,
}

impl Completion {
    /// Completes when `looking` returns `Some`; never if it returns `None`.
    pub(super) fn when(looking: impl Future<Output = Option<()>> + Send + 'static) -> Completion {
        let (done, complete) = mpsc::channel(1);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            if looking.await.is_some() {
                // The follower might have ended it meanwhile.
                let _ = done.send(()).await;
            }
        });
        Completion {
            complete: Some(complete),
            _looking: tasks,
        }
    }

    /// Returns when the dumps are complete; never if there is no observer or it failed.
    pub(super) async fn reached(&mut self) {
        let reached = match &mut self.complete {
            Some(complete) => complete.recv().await,
            None => None,
        };
        if reached.is_none() {
            std::future::pending::<()>().await;
        }
    }
}
