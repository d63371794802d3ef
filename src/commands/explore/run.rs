//! `explore`: the site of a Java heap, which answers while the heap is read.

use super::shown::ShownHeap;
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::net::{Api, ApiHandler, Site, SitePage};
use std::io;
use std::sync::Arc;

/// The port cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on 127.0.0.1:{port}")]
pub struct NoSite {
    port: u16,
    /// Error of the operating system.
    source: io::Error,
}

impl Classified for NoSite {
    fn facts(&self) -> ErrorFacts {
        ErrorFacts::new(ErrorClass::HostWrite, "no-listener")
            .with_help("omit `--port`, to use any free port")
    }
}

/// Opens the site of a heap.
///
/// # Errors
/// Returns an error if the port cannot be opened.
pub async fn site(explored: &Arc<ShownHeap>, port: u16) -> Result<Site, NoSite> {
    let (text, policy) = crate::explore::page();
    let answering = Arc::clone(explored);
    let handler: ApiHandler = Arc::new(move |request| answering.answer(request));
    let api = Api {
        handler,
        quick: &["meta", "show"],
    };
    let site = Site::bind(port, SitePage { text, policy }, api).await;
    site.map_err(|source| NoSite { port, source })
}
