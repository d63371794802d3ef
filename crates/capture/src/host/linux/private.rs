//! The private directory of a recording: sockets, config, logs. Its mode is 0700, because traced
//! makes its sockets accessible to all users.

use std::fs::Permissions;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::error::private_directory as failed;
use heaptap_base::error::Failure;

/// Names of the sockets.
pub(super) const PRODUCER: &str = "producer";
pub(super) const CONSUMER: &str = "consumer";
/// Maximum length of a socket's path, bytes; a longer one crashes tracebox.
const MAX_SOCKET_BYTES: usize = 106;
/// Bytes that separate libraries in LD_PRELOAD, or begin a variable of the dynamic linker.
const SEPARATORS: &[u8] = b" \t\n:;$";

/// A directory that is removed when this is dropped, or when heaptap dies.
#[derive(Debug)]
pub(super) struct PrivateDirectory {
    directory: tempfile::TempDir,
    /// Removes the directory after heaptap was killed: it waits for the end of its input.
    keeper: std::process::Child,
}

impl PrivateDirectory {
    pub(super) fn create() -> Result<PrivateDirectory, Failure> {
        let mut error = io::Error::other("every temporary directory has a path that is too long");
        for base in [std::env::temp_dir(), "/tmp".into()] {
            match in_base(&base) {
                Ok(Some(directory)) => {
                    let keeper = keeper(directory.path()).map_err(failed)?;
                    return Ok(PrivateDirectory { directory, keeper });
                }
                Ok(None) => {}
                Err(found) => error = found,
            }
        }
        Err(failed(error))
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the path for LD_PRELOAD, which cannot contain separators.
    pub(super) fn preloadable(&self, library: &Path) -> io::Result<PathBuf> {
        if !has_separator(library) {
            return Ok(library.to_owned());
        }
        let link = self.file("preload.so");
        symlink(library, &link)?;
        Ok(link)
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // The end of its input ends it; it removes the directory, and so does `directory`.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

fn has_separator(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    bytes.iter().any(|byte| SEPARATORS.contains(byte))
}

/// Returns a new directory below `base`; `None` if its path is unsuitable for sockets.
fn in_base(base: &Path) -> io::Result<Option<tempfile::TempDir>> {
    let base = std::fs::canonicalize(base)?;
    let directory = tempfile::Builder::new()
        .prefix("heaptap-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(base)?;
    let longest = directory.path().join(CONSUMER);
    let fits = longest.as_os_str().len() <= MAX_SOCKET_BYTES && !has_separator(directory.path());
    Ok(fits.then_some(directory))
}

/// Starts a shell that removes the directory at the end of its input.
fn keeper(directory: &Path) -> io::Result<std::process::Child> {
    use std::os::unix::process::CommandExt as _;
    Command::new("/bin/sh")
        .args(["-c", "read -r _; exec rm -rf -- \"$1\"", "sh"])
        .arg(directory)
        .current_dir("/")
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // The terminal's signals are for heaptap.
        .process_group(0)
        .spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_private_short_and_gone_afterwards() {
        let private = PrivateDirectory::create().unwrap();
        let directory = private.directory.path().to_owned();
        let mode = std::fs::metadata(&directory).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(private.file("consumer").as_os_str().len() <= MAX_SOCKET_BYTES);
        drop(private);
        assert!(!directory.exists());
    }

    #[test]
    fn a_base_with_a_long_path_or_a_separator_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["x".repeat(100), "a b".to_owned(), "a:b".to_owned()] {
            let base = dir.path().join(name);
            std::fs::create_dir(&base).unwrap();
            assert!(in_base(&base).unwrap().is_none(), "{}", base.display());
            assert_eq!(
                std::fs::read_dir(&base).unwrap().count(),
                0,
                "nothing stays"
            );
        }
    }

    #[test]
    fn a_library_whose_path_ld_preload_cannot_hold_is_linked() {
        let private = PrivateDirectory::create().unwrap();
        let plain = Path::new("/a/lib.so");
        assert_eq!(private.preloadable(plain).unwrap(), plain);
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join("my lib:1.so");
        std::fs::write(&odd, "x").unwrap();
        let link = private.preloadable(&odd).unwrap();
        assert!(!has_separator(&link));
        assert_eq!(std::fs::read(link).unwrap(), b"x");
    }
}
