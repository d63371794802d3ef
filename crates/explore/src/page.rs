//! The page: its script and style, and the policy under which a browser shows it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

/// Built from `viewer/src`, which a test verifies.
const SCRIPT: &str = include_str!("../../../viewer/dist/explore.js");
const STYLE: &str = include_str!("../../../viewer/dist/report.css");

/// Text for browsers without scripts, where the server answers.
const NO_SCRIPT: &str = "This page needs scripts. Without them: heaptap top, heaptap paths and heaptap \
                         leaks.";

/// Returns the page and its Content-Security-Policy. Only its own script runs, identified by its
/// hash, and it asks only the server that sent the page.
pub fn page() -> (String, String) {
    (html(), policy())
}

fn policy() -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; \
         img-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
}

fn html() -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>heaptap: Java heap</title>\n\
         <style>{STYLE}</style></head>\n<body>\n<noscript>{NO_SCRIPT}</noscript>\n\
         <div id=\"heaptap-app\"></div>\n<script>{SCRIPT}</script>\n</body></html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_policy_names_runs() {
        let (text, policy) = page();
        let parts = |open: &'static str, close: &'static str| {
            let after = text.split(open).nth(1).expect("it is there");
            after.split(close).next().expect("it is closed")
        };
        assert_eq!(text.matches("<script>").count(), 1);
        for part in [parts("<script>", "</script>"), parts("<style>", "</style>")] {
            let hash = BASE64_STANDARD.encode(Sha256::digest(part));
            assert!(policy.contains(&hash), "{hash}: {policy}");
        }
        assert!(!policy.contains("unsafe"));
    }
}
