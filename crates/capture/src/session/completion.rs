//! Whether the dumps of a session are complete, told once by whoever looks beside the following.

use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Tells when the dumps of a session are complete. Nobody looks any more once it is dropped.
#[derive(Default)]
pub(super) struct Completion {
    complete: Option<mpsc::Receiver<()>>,
    /// Ends with this.
    _looking: JoinSet<()>,
}

impl Completion {
    /// Complete once `looking` gives something; never where it gives `None`.
    pub(super) fn when(looking: impl Future<Output = Option<()>> + Send + 'static) -> Completion {
        let (done, complete) = mpsc::channel(1);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            if looking.await.is_some() {
                // Whoever follows may have ended it meanwhile.
                let _ = done.send(()).await;
            }
        });
        Completion {
            complete: Some(complete),
            _looking: tasks,
        }
    }

    /// Ready once the dumps are complete; never where nobody looks, or cannot any more.
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
