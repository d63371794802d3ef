//! The data of a command that reads an input or asks the device: `meminfo`, `smaps`, `gc`. A bare
//! word is always an input; processes are named with `-n`, `-p` and `--package`.

use std::ffi::OsStr;
use std::path::Path;

use crate::heaps::selector::JavaInput;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::sanitize;
use heaptap_base::untrusted::shell::quoted;
use heaptap_input::{STDIN, help_missing};

/// Parses an input of `command`.
///
/// # Errors
/// Returns an error if the path does not exist. If it looks like the name of a process, the help
/// is the command for that process.
pub(crate) fn input(command: &str, typed: &OsStr) -> Result<JavaInput, Failure> {
    let input = JavaInput::parse(typed);
    if input.path == Path::new(STDIN) || input.path.exists() {
        return Ok(input);
    }
    let path = input.path.display().to_string();
    let message = format!("cannot read {}: no such file or directory", sanitize(&path));
    let near = help_missing(&input.path);
    let help = match process_option(&typed.to_string_lossy()) {
        Some(option) if !near.starts_with("did you mean") => {
            format!("for a process on the device: heaptap {command} {option}")
        }
        _ => near,
    };
    Err(Failure::new(ErrorClass::BadInput, "input-unreadable", message).with_help(help))
}

/// The option that names a process, if `typed` may be a process or a package.
fn process_option(typed: &str) -> Option<String> {
    if typed.parse::<u32>().is_ok_and(|pid| pid > 0) {
        return Some(format!("-p {typed}"));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-:@*".contains(c);
    let ending = Path::new(typed).extension().and_then(OsStr::to_str);
    let is_file = ending.is_some_and(|ending| FILE_ENDINGS.contains(&ending));
    let is_name = !typed.is_empty() && typed.chars().all(is_plain) && !is_file;
    is_name.then(|| format!("-n {}", quoted(typed)))
}

/// Endings of files that these commands read. A process with such a name is rare.
const FILE_ENDINGS: [&str; 8] = ["txt", "gz", "zst", "xz", "zip", "json", "hprof", "smaps"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_path_that_looks_like_a_process_names_the_option() {
        for (typed, option) in [
            ("com.example.gone", Some("-n com.example.gone")),
            (
                "com.example.gone:service",
                Some("-n com.example.gone:service"),
            ),
            ("system_server", Some("-n system_server")),
            ("1234", Some("-p 1234")),
            ("0", Some("-n 0")),
            ("logcat.txt", None),
            ("x/y", None),
            ("\u{1b}[31m", None),
        ] {
            assert_eq!(process_option(typed).as_deref(), option, "{typed:?}");
        }
        let failure = input("meminfo", OsStr::new("com.example.gone")).unwrap_err();
        assert_eq!(failure.class, ErrorClass::BadInput);
        let help = failure.help.unwrap();
        assert!(
            help.ends_with("heaptap meminfo -n com.example.gone"),
            "{help}"
        );
        assert!(input("gc", OsStr::new("-")).is_ok());
    }
}
