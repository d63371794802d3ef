//! Showing a page in the browser.

use crate::console::Console;
use crate::console::flags::context::Context;
use crate::page::report::browser::{self, NoBrowser};
use std::ffi::OsString;
use std::path::Path;

/// Shows a page in a browser.
///
/// # Errors
/// Returns an error if no browser could be started.
pub(crate) async fn show_page(ctx: &Context, page: &Path) -> Result<(), NoBrowser> {
    let page = std::path::absolute(page).unwrap_or_else(|_| page.to_owned());
    let url = file_url(&page);
    ctx.console.say(format_args!("opening {url}"));
    let shown = browser::open(page.as_os_str()).await;
    shown.map_err(|source| NoBrowser { url, page, source })
}

/// Starts a browser with `entry`, an address without a secret that leads to `url`. Does not wait:
/// some programs return only when the window is closed.
pub(crate) fn show_site(console: &Console, entry: &str, url: &str) {
    console.say(format_args!("if no browser opens: {url}"));
    let (console, entry, url) = (console.clone(), OsString::from(entry), url.to_owned());
    tokio::spawn(async move {
        if let Err(error) = browser::open(&entry).await {
            console.warn_with_help(
                format_args!("cannot start a browser: {error}"),
                Some(&format!("open {url} in a browser")),
            );
        }
    });
}

pub(crate) fn file_url(path: &Path) -> String {
    let path = path.to_string_lossy().replace('\\', "/");
    let mut url = String::from("file://");
    // `C:/x` on Windows; UNC paths already begin with a server name.
    if !path.starts_with('/') {
        url.push('/');
    }
    for byte in path.trim_start_matches("//").bytes() {
        match byte {
            b'/' | b':' | b'.' | b'-' | b'_' | b'~' => url.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => url.push(char::from(byte)),
            byte => url += &format!("%{byte:02X}"),
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_file_has_no_odd_letters() {
        let of = |path: &str| file_url(Path::new(path));
        assert_eq!(of("/a b/ä#?.html"), "file:///a%20b/%C3%A4%23%3F.html");
        assert_eq!(of("C:/x/y.html"), "file:///C:/x/y.html");
    }
}
