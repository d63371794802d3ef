//! The page: its script and style, and the policy under which a browser shows it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

/// Built from `viewer/src`, which a test verifies.
const SCRIPT: &str = include_str!("../../../viewer/dist/explore.js");
const STYLE: &str = include_str!("../../../viewer/dist/explore.css");

/// Text for browsers without scripts, where the server answers.
const NO_SCRIPT: &str = "This page needs scripts. Without them: heaptap top, heaptap paths and heaptap \
                         leaks.";

/// Returns the page and its Content-Security-Policy. Only its own script runs, identified by its
/// hash, and it asks only the server that sent the page.
pub fn page() -> (String, String) {
    let policy = policy("'self'");
    let policy = format!("{policy}; frame-ancestors 'none'");
    (html("", NO_SCRIPT, ""), policy)
}

/// Returns the page as a file that asks no server. `mark` is in its head; `facts` is HTML for browsers
/// without scripts; `data` is the answers that the script needs: JSON, gzip, Base64.
pub fn file_page(mark: &str, facts: &str, data: &str) -> String {
    let policy = policy("'none'");
    let head =
        format!("{mark}\n<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n");
    let data = format!("<script type=\"text/plain\" id=\"heaptap-data\">{data}</script>\n");
    html(&head, facts, &data)
}

fn policy(connect: &str) -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src {connect}; \
         img-src blob:; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
}

fn html(head: &str, without_scripts: &str, data: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n{head}<meta \
         name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>heaptap: Java \
         heap</title>\n<style>{STYLE}</style></head>\n<body>\n<noscript>{without_scripts}\
         </noscript>\n<div id=\"heaptap-app\"></div>\n{data}<script>{SCRIPT}</script>\n</body>\
         </html>\n"
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
        let file = file_page("<meta name=\"made-by\">", "<p>facts</p>", "ZGF0YQ==");
        assert!(file.contains("connect-src 'none'") && file.contains("<noscript><p>facts</p>"));
        assert_eq!(file.matches("<script").count(), 2);
    }
}
