//! Showing a file or an address in the user's browser. Contains the commands of each system. All
//! users of a computer see the arguments of programs, so addresses must not contain secrets.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_base::host::Host;
use heaptap_base::untrusted::sanitize;

/// Time limit for an opener to report a failure. Some end immediately, others with the browser
/// window.
const PATIENCE: Duration = Duration::from_secs(3);

/// Error of starting a browser.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a browser for {url}: {source}")]
pub struct NoBrowser {
    /// Address of the page.
    pub url: String,
    /// File of the page.
    pub page: PathBuf,
    /// Failed commands, with reasons.
    pub source: io::Error,
}

impl Classified for NoBrowser {
    fn facts(&self) -> ErrorFacts {
        let page = self.page.to_string_lossy();
        ErrorFacts::new(ErrorClass::HostWrite, "no-browser").with_help(format!(
            "open {} in a browser on any computer (the page needs no other file), or set BROWSER \
             to the command that starts one",
            sanitize(&page)
        ))
    }
}

/// Asks the system to show `what`, a file or an address. Returns as soon as a program accepts it.
///
/// # Errors
/// Returns an error with all reasons if no program accepts it.
pub async fn open(what: &OsStr) -> io::Result<()> {
    let named = std::env::var_os("BROWSER");
    let mut tried = Vec::new();
    for words in openers(named.as_deref(), what) {
        let Some((program, arguments)) = words.split_first() else {
            continue;
        };
        match ask(program, arguments).await {
            Ok(()) => return Ok(()),
            Err(error) => tried.push(format!("{}: {error}", program.to_string_lossy())),
        }
    }
    Err(io::Error::other(tried.join("; ")))
}

/// Runs a program that shows something.
async fn ask(program: &OsStr, arguments: &[OsString]) -> io::Result<()> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    match timeout(PATIENCE, child.wait()).await {
        Ok(ended) => match ended? {
            status if status.success() => Ok(()),
            status => Err(io::Error::other(status.to_string())),
        },
        Err(_) => Ok(()),
    }
}

/// Returns the commands to try, best first. `BROWSER` has priority: commands separated by `:`, with
/// `%s` for the argument, as in xdg-open and Python.
fn openers(named: Option<&OsStr>, what: &OsStr) -> Vec<Vec<OsString>> {
    let mut all: Vec<Vec<OsString>> = Vec::new();
    let separator = Host::CURRENT.list_separator();
    for command in named.and_then(OsStr::to_str).unwrap_or("").split(separator) {
        let mut words: Vec<OsString> = command.split_whitespace().map(OsString::from).collect();
        if words.is_empty() {
            continue;
        }
        let places = words.iter_mut().filter(|word| *word == "%s");
        if places.map(|word| word.clone_from(&what.to_owned())).count() == 0 {
            words.push(what.to_owned());
        }
        all.push(words);
    }
    for opener in Host::CURRENT.browsers() {
        let words = opener.iter().map(OsString::from);
        all.push(words.chain([what.to_owned()]).collect());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_browser_the_help_names_the_page_and_is_safe() {
        let error = NoBrowser {
            url: "file:///rec%1B/report.html".to_owned(),
            page: PathBuf::from("/rec\u{1b}/report.html"),
            source: io::Error::other("xdg-open: exit status: 3"),
        };
        let help = error.help().unwrap();
        assert!(
            help.starts_with("open /rec\u{fffd}/report.html in a browser"),
            "{help}"
        );
    }

    #[test]
    fn the_browser_that_is_named_goes_first() {
        let of = |named: &str| openers(Some(OsStr::new(named)), OsStr::new("http://x/?a b"));
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            of("firefox -P work")[0],
            words(&["firefox", "-P", "work", "http://x/?a b"])
        );
        let one = "chromium --app %s --new";
        assert_eq!(
            of(one)[0],
            words(&["chromium", "--app", "http://x/?a b", "--new"])
        );
        assert_eq!(of("").len(), openers(None, OsStr::new("x")).len());
        assert!(!openers(None, OsStr::new("x")).is_empty());
    }
}
