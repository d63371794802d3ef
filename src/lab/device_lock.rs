//! One scenario at a time on a device. The lock is a file of the state directory, held by the
//! operating system: it is free when its process ends, however it ends. Hosts that share a device
//! share the directory (`HEAPTAP_STATE_DIR`).

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{ErrorClass, Failure};
use crate::results::output::file_name;
use crate::session::Store;

/// Directory of the locks, next to the journals of recordings.
const FOLDER: &str = "devices";
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// A device that no other scenario uses while this lives.
#[derive(Debug)]
pub struct DeviceLock {
    _file: File,
}

impl DeviceLock {
    /// Waits until no other scenario uses the device. `tell` is called once if it has to wait.
    ///
    /// # Errors
    /// Returns an error if the device is not free within `limit`, or if the state directory cannot
    /// be written.
    pub async fn acquire(
        store: &Store,
        serial: &str,
        limit: Duration,
        tell: impl FnOnce(),
    ) -> Result<DeviceLock, Failure> {
        let until = Instant::now() + limit;
        let mut tell = Some(tell);
        loop {
            if let Some(lock) = DeviceLock::try_acquire(store, serial)? {
                return Ok(lock);
            }
            if Instant::now() >= until {
                let message = format!("another heaptap runs a scenario on {serial}");
                return Err(Failure::new(ErrorClass::Device, "device-busy", message)
                    .with_help("wait until it ends, or choose another device with `-s`"));
            }
            if let Some(tell) = tell.take() {
                tell();
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn try_acquire(store: &Store, serial: &str) -> Result<Option<DeviceLock>, Failure> {
        let sessions = store.folder();
        let folder = sessions.parent().unwrap_or(sessions).join(FOLDER);
        let path = folder.join(format!("{}.lock", file_name(serial)));
        let unwritable = |path: PathBuf, error: &std::io::Error| {
            let message = format!("cannot write {}: {error}", path.display());
            Failure::new(ErrorClass::HostWrite, "journal-unwritable", message)
                .with_help("make the state directory writable, or set HEAPTAP_STATE_DIR")
        };
        std::fs::create_dir_all(&folder).map_err(|error| unwritable(folder, &error))?;
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| unwritable(path.clone(), &error))?;
        match fs4::FileExt::try_lock(&file) {
            Ok(()) => {}
            Err(fs4::TryLockError::WouldBlock) => return Ok(None),
            Err(fs4::TryLockError::Error(error)) => return Err(unwritable(path, &error)),
        }
        // Only for people who look into the directory. The name stays, so that all lock one file.
        let _ = file.set_len(0);
        let _ = writeln!(file, "{}", std::process::id());
        Ok(Some(DeviceLock { _file: file }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_device_is_of_one_scenario_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::in_folder(&folder.path().join("sessions")).unwrap();
        let take = async |serial: &str, limit| {
            let serial = serial.to_owned();
            DeviceLock::acquire(&store, &serial, limit, || {}).await
        };
        let first = take("a:5555", Duration::ZERO).await.unwrap();
        let second = take("a:5555", Duration::ZERO).await.unwrap_err();
        assert_eq!(
            (second.kind, second.class),
            ("device-busy", ErrorClass::Device)
        );
        take("b", Duration::ZERO).await.unwrap();
        let waits = take("a:5555", Duration::from_secs(20));
        let frees = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            drop(first);
        };
        let (taken, ()) = tokio::join!(waits, frees);
        taken.unwrap();
    }
}
