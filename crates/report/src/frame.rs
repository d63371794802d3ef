//! Page frame: content policy, style, the static part, the data, the viewer. Under the policy the
//! page does not fetch anything, and only the viewer's script runs, identified by its hash.

use super::data::blocks::Blocks;
use super::html::Attribute;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};
use std::io::{self, Write};

/// Style of the static part.
const STYLE: &str = include_str!("style.css");
/// Viewer, built from `viewer/src`, which a test verifies.
const VIEWER: &str = include_str!("../../../viewer/dist/report.js");
const VIEWER_STYLE: &str = include_str!("../../../viewer/dist/report.css");

/// Mark of pages written by heaptap, within their first 1024 bytes.
pub const MARK: &str = "<meta name=\"generator\" content=\"heaptap";

/// Writes a page. A page without data does not contain scripts.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub(super) fn write(
    out: &mut dyn Write,
    title: &str,
    body: &str,
    data: Option<&Blocks>,
) -> io::Result<()> {
    let hash = |text: &str| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)));
    let (script, styles) = match data {
        Some(_) => (
            format!("script-src {}; ", hash(VIEWER)),
            format!("{} {}", hash(STYLE), hash(VIEWER_STYLE)),
        ),
        None => (String::new(), hash(STYLE)),
    };
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         {MARK} {version}\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; {script}\
         style-src {styles}; img-src data: blob:; worker-src blob:; base-uri 'none'; \
         form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>",
        version = env!("CARGO_PKG_VERSION"),
        title = Attribute(title),
    )?;
    if data.is_some() {
        write!(out, "<style>{VIEWER_STYLE}</style>")?;
    }
    write!(
        out,
        "</head>\n<body>\n<main id=\"heaptap-static\">\n{body}</main>\n"
    )?;
    if let Some(blocks) = data {
        out.write_all(b"<div id=\"heaptap-app\"></div>\n")?;
        blocks.write(out)?;
        writeln!(out, "<script>{VIEWER}</script>")?;
    }
    out.write_all(b"</body></html>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(data: Option<&Blocks>) -> String {
        let mut page = Vec::new();
        write(&mut page, "<heap>", "<p>body</p>", data).expect("writing to memory cannot fail");
        String::from_utf8(page).expect("it is text")
    }

    #[test]
    fn a_page_without_data_runs_nothing() {
        let page = page(None);
        assert!(page.contains("<title>&lt;heap&gt;</title>"));
        assert!(!page.contains("<script"), "{page}");
        assert!(!page.contains("script-src"), "{page}");
        assert!(page.contains("default-src 'none'; style-src 'sha256-"));
        let head = page.find(MARK).expect("the page has the mark");
        assert!(head < 1024, "within the first 1024 bytes");
    }

    #[test]
    fn scripts_and_styles_are_those_that_the_policy_names() {
        let page = page(Some(&Blocks::from_data(b"data")));
        let policy = page.split("Content-Security-Policy").nth(1);
        let policy = policy.and_then(|rest| rest.split('>').next());
        let policy = policy.expect("it has one");
        let texts = |open: &'static str, close: &'static str| {
            let parts: Vec<&str> = page.split(open).skip(1).collect();
            parts
                .into_iter()
                .filter_map(move |part| part.split(close).next())
        };
        let of_script: Vec<&str> = texts("<script>", "</script>").collect();
        assert_eq!(of_script.len(), 1);
        let of_style: Vec<&str> = texts("<style>", "</style>").collect();
        assert_eq!(of_style.len(), 2);
        for text in of_script.iter().chain(&of_style) {
            let hash = BASE64_STANDARD.encode(Sha256::digest(text));
            assert!(policy.contains(&hash), "{hash}: {policy}");
        }
        assert!(!policy.contains("unsafe"));
        assert_eq!(
            super::super::data::from_page(&page).as_deref(),
            Some(&b"data"[..])
        );
    }
}
