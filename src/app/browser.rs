//! The user's browser, told to show a file or an address. Owns how each system is asked; what is
//! shown there is others'.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{Command, Stdio};

/// Asks the system to show `what`, a file or an address. Returns as soon as it was asked;
/// whether a window came of it, nobody tells.
///
/// # Errors
/// Where there is nobody to ask.
pub fn open(what: &OsStr) -> io::Result<()> {
    let named = std::env::var_os("BROWSER");
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for words in openers(named.as_deref(), what) {
        let Some((program, arguments)) = words.split_first() else {
            continue;
        };
        let spawned = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match spawned {
            Ok(mut child) => {
                // Whoever asked goes on; the child is not left behind as a zombie.
                std::thread::spawn(move || child.wait());
                return Ok(());
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Who may be asked, best first. `BROWSER` goes before all: commands with `:` between them,
/// `%s` for what is to be shown, as xdg-open and Python have it.
fn openers(named: Option<&OsStr>, what: &OsStr) -> Vec<Vec<OsString>> {
    let mut all: Vec<Vec<OsString>> = Vec::new();
    let separator = if cfg!(windows) { ';' } else { ':' };
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
    let usual: &[&[&str]] = if cfg!(target_os = "macos") {
        &[&["open"]]
    } else if cfg!(windows) {
        // `start` and `explorer` take parts of an address for something else.
        &[&["rundll32", "url.dll,FileProtocolHandler"]]
    } else {
        &[&["xdg-open"], &["gio", "open"], &["wslview"]]
    };
    for opener in usual {
        let words = opener.iter().map(OsString::from);
        all.push(words.chain([what.to_owned()]).collect());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

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
