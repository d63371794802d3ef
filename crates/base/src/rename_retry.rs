//! Renames that wait for other programs. On Windows, a file that another program has just opened
//! (a virus scanner, an indexer, a backup) cannot be renamed, replaced or removed for a moment.

use std::io;
use std::path::Path;
use std::time::Duration;

/// First pause; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// Number of attempts: 2.5 s in all.
const ATTEMPTS: u32 = 9;

/// Renames `from` to `to`, and replaces a file of that name.
///
/// # Errors
/// Returns the error of the last attempt.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let attempt = |()| std::fs::rename(from, to).map_err(|error| (error, ()));
    patiently((), attempt).map_err(|(error, ())| error)
}

/// Repeats an attempt while another program is in the way. `attempt` returns `subject` with its
/// error, because a temporary file is consumed by its renaming.
///
/// # Errors
/// Returns the error of the last attempt.
pub fn patiently<S, T>(
    subject: S,
    attempt: impl Fn(S) -> Result<T, (io::Error, S)>,
) -> Result<T, (io::Error, S)> {
    repeat(subject, attempt, is_in_use, std::thread::sleep)
}

fn repeat<S, T>(
    mut subject: S,
    attempt: impl Fn(S) -> Result<T, (io::Error, S)>,
    is_in_use: impl Fn(&io::Error) -> bool,
    mut sleep: impl FnMut(Duration),
) -> Result<T, (io::Error, S)> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..ATTEMPTS {
        match attempt(subject) {
            Err((error, again)) if is_in_use(&error) => subject = again,
            result => return result,
        }
        sleep(pause);
        pause *= 2;
    }
    attempt(subject)
}

/// Whether the error can be due to another program that has the file open.
fn is_in_use(error: &io::Error) -> bool {
    const ACCESS_DENIED: i32 = 5;
    const SHARING_VIOLATION: i32 = 32;
    const LOCK_VIOLATION: i32 = 33;
    cfg!(windows)
        && matches!(
            error.raw_os_error(),
            Some(ACCESS_DENIED | SHARING_VIOLATION | LOCK_VIOLATION)
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Fails `busy` times; returns the result, the attempts and the time of all pauses.
    fn after(busy: u32, is_in_use: bool) -> (bool, u32, Duration) {
        let attempts = Cell::new(0);
        let mut paused = Duration::ZERO;
        let result = repeat(
            "file",
            |file| {
                attempts.set(attempts.get() + 1);
                match attempts.get() > busy {
                    true => Ok(file),
                    false => Err((io::Error::other("in use"), file)),
                }
            },
            |_| is_in_use,
            |pause| paused += pause,
        );
        (result.is_ok(), attempts.get(), paused)
    }

    #[test]
    fn a_file_that_is_scanned_is_renamed_a_moment_later() {
        assert_eq!(after(0, true), (true, 1, Duration::ZERO));
        assert_eq!(after(3, true), (true, 4, Duration::from_millis(70)));
    }

    #[test]
    fn a_file_that_stays_open_is_given_up_after_some_seconds() {
        let (renamed, attempts, paused) = after(u32::MAX, true);
        assert_eq!((renamed, attempts), (false, ATTEMPTS));
        assert!((2..4).contains(&paused.as_secs()), "{paused:?}");
    }

    #[test]
    fn another_error_is_returned_at_once() {
        assert_eq!(after(3, false), (false, 1, Duration::ZERO));
        let missing = io::Error::from(io::ErrorKind::NotFound);
        assert!(!is_in_use(&missing));
    }

    /// As a scanner opens a file: others can read it, and not remove it.
    #[cfg(windows)]
    #[test]
    fn a_rename_waits_for_a_reader() {
        use std::os::windows::fs::OpenOptionsExt as _;
        const SHARE_READ: u32 = 1;
        let directory = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| directory.path().join(name));
        std::fs::write(&from, "text").unwrap();
        let opened = std::fs::File::options()
            .read(true)
            .share_mode(SHARE_READ)
            .open(&from)
            .unwrap();
        assert!(is_in_use(&std::fs::rename(&from, &to).unwrap_err()));
        let reader = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(opened);
        });
        rename(&from, &to).unwrap();
        reader.join().unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"text");
    }
}
