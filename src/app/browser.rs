//! The user's browser, told to show a file or an address. Owns how each system is asked; what is
//! shown there is others'.

use std::ffi::OsStr;
use std::io;
use std::process::{Command, Stdio};

/// Asks the system to show `what`, a file or an address. Returns as soon as it was asked.
///
/// # Errors
/// Where there is nobody to ask.
pub fn open(what: &OsStr) -> io::Result<()> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for mut command in commands(what) {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match command.spawn() {
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

/// Who may be asked, best first. `BROWSER` goes before all.
fn commands(what: &OsStr) -> Vec<Command> {
    let mut all: Vec<Command> = Vec::new();
    let named = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    all.extend(named.map(Command::new));
    let openers: &[&str] = if cfg!(target_os = "macos") {
        &["open"]
    } else if cfg!(windows) {
        &["explorer"]
    } else {
        &["xdg-open", "gio", "wslview"]
    };
    for opener in openers {
        let mut command = Command::new(opener);
        if *opener == "gio" {
            command.arg("open");
        }
        all.push(command);
    }
    for command in &mut all {
        command.arg(what);
    }
    all
}
