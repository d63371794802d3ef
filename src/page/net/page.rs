//! The page that transfers a trace to Perfetto's UI if the UI cannot fetch it itself: on a port
//! other than 9001, or in a browser that blocks plain HTTP requests of TLS pages. It opens the UI
//! in a window and posts the trace to it, as described in the UI's documentation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

/// Returns the page, and its content policy. `file` is the URL of the trace, `title` is shown in
/// the UI.
pub(super) fn page(ui: &str, file: &str, title: &str, bytes: u64) -> (String, String) {
    let offer = serde_json::json!({ "ui": ui, "file": file, "title": title, "bytes": bytes });
    // Prevents text from closing its element.
    let offer = offer.to_string().replace('<', "\\u003c");
    let text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>heaptap: open a \
         trace</title>\n<style>{STYLE}</style></head>\n<body><main>\n<h1>Open the trace in \
         Perfetto's UI</h1>\n<p id=\"what\"></p>\n<p><button id=\"open\" \
         disabled>Open</button></p>\n<p id=\"state\" role=\"status\">reading the trace \
         …</p>\n<p>This page sends the trace only to the window that opens.</p>\n</main>\n<script \
         type=\"application/json\" \
         id=\"offer\">{offer}</script>\n<script>{SCRIPT}</script>\n</body></html>\n"
    );
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        hash(SCRIPT),
        hash(STYLE)
    );
    (text, policy)
}
