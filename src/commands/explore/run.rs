//! `explore`: the site of a Java heap, which answers while the heap is read.

use super::shown::ShownHeap;
use crate::page::net::{Api, ApiHandler, Site, SitePage};
use heaptap_base::error::{ErrorClass, Failure};
use std::sync::Arc;

/// Opens the site of a heap.
///
/// # Errors
/// Returns an error if the port cannot be opened.
pub async fn site(explored: &Arc<ShownHeap>, port: u16) -> Result<Site, Failure> {
    let (text, policy) = heaptap_explore::page();
    let answering = Arc::clone(explored);
    let handler: ApiHandler = Arc::new(move |request| answering.answer(request));
    let api = Api {
        handler,
        quick: &["meta", "show"],
    };
    let site = Site::bind(port, SitePage { text, policy }, api).await;
    site.map_err(|error| {
        let message = format!("cannot listen on 127.0.0.1:{port}");
        Failure::new(ErrorClass::HostWrite, "no-listener", message)
            .with_help("omit `--port`, to use any free port")
            .caused_by(&error)
    })
}
