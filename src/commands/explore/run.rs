//! `explore`: the site of a Java heap, which answers while the heap is read.

use super::api;
use super::state::ExploredHeap;
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::heaps::java::JavaError;
use crate::net::{ApiHandler, Site, SitePage};
use std::io;
use std::sync::Arc;

/// Reason why no page is shown.
#[derive(Debug, thiserror::Error)]
pub enum ExploreError {
    /// The heap cannot be read.
    #[error(transparent)]
    Java(#[from] JavaError),
    /// The port cannot be opened.
    #[error("cannot listen on 127.0.0.1:{port}")]
    Listen {
        port: u16,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The server cannot accept connections.
    #[error("cannot accept connections on 127.0.0.1")]
    NoConnections {
        /// Error of the operating system.
        source: io::Error,
    },
}

impl Classified for ExploreError {
    fn facts(&self) -> ErrorFacts {
        match self {
            ExploreError::Java(error) => error.facts(),
            ExploreError::Listen { .. } => ErrorFacts::new(ErrorClass::HostWrite, "no-listener")
                .with_help("omit `--port`, to use any free port"),
            ExploreError::NoConnections { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "no-listener").with_help(
                    "stop other programs and try again; the host might lack a resource such as \
                     open files",
                )
            }
        }
    }
}

/// Opens the site of a heap.
///
/// # Errors
/// Returns an error if the port cannot be opened.
pub async fn site(explored: &Arc<ExploredHeap>, port: u16) -> Result<Site, ExploreError> {
    let (text, policy) = crate::explore::page();
    let answering = Arc::clone(explored);
    let handler: ApiHandler = Arc::new(move |request| api::answer(&answering, request));
    let site = Site::bind(port, SitePage { text, policy }, handler).await;
    site.map_err(|source| ExploreError::Listen { port, source })
}
