//! Notification that the dumps of a session are complete, sent once by a concurrent observer.

use tokio::task::JoinSet;

/// Notification that the dumps of a session are complete. Dropping it stops the observer.
#[derive(Default)]
pub(super) struct Completion(JoinSet<Option<()>>);

impl Completion {
    /// Completes when `looking` returns `Some`; never if it returns `None`.
    pub(super) fn when(looking: impl Future<Output = Option<()>> + Send + 'static) -> Completion {
        let mut observer = JoinSet::new();
        observer.spawn(looking);
        Completion(observer)
    }

    /// Returns when the dumps are complete; never if there is no observer or it failed.
    pub(super) async fn reached(&mut self) {
        if !matches!(self.0.join_next().await, Some(Ok(Some(())))) {
            std::future::pending::<()>().await;
        }
    }
}
