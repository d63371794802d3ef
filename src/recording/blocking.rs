//! Work on large files, on threads that do not serve connections: a device without answers in the
//! meantime counts as lost.

/// Runs `work` on a separate thread.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and this future with it.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On the only thread of this runtime, the work would wait forever.
    #[tokio::test]
    async fn connections_are_served_meanwhile() {
        let (say, heard) = std::sync::mpsc::channel();
        let work = blocking(move || heard.recv().unwrap());
        let served = async move { say.send(7).unwrap() };
        assert_eq!(tokio::join!(work, served).0, 7);
    }

    #[tokio::test]
    #[should_panic(expected = "broken")]
    async fn what_breaks_is_heard() {
        blocking(|| panic!("broken")).await
    }
}
