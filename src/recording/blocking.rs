//! Work on files that are large, away from the threads that serve connections: a phone that is
//! not answered meanwhile counts as lost.

/// Does `work` on a thread of its own.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and whoever waits here with it.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On the one thread of this runtime the work would wait for ever.
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
