//! The adb program on the host: searches for it and starts a server if none is running. Never runs
//! adb against a running server, because adb kills servers of other versions.

use std::path::{Path, PathBuf};
use std::time::Duration;

use heaptap_base::host::Host;
use tokio::time::{Instant, sleep, timeout_at};

use super::connect::{Address, Connect};
use super::detach;
use super::error::DeviceError;
use super::wire::Wire;

/// Time limit for a new server to answer. adb itself allows 3 s; slow laptops need more.
const START: Duration = Duration::from_secs(10);
/// Pause between two checks for an answer.
const POLL: Duration = Duration::from_millis(20);

/// The adb program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostAdb {
    /// Found in PATH or in the SDK.
    Found(PathBuf),
    /// Not found; contains the searched paths other than PATH.
    Missing(Vec<PathBuf>),
}

/// Searches for adb in PATH, then in the SDKs of [`Host::sdks`].
pub fn find_adb() -> HostAdb {
    if let Ok(path) = which::which("adb") {
        return HostAdb::Found(path);
    }
    let sdks = Host::CURRENT.sdks(|name| std::env::var_os(name), std::env::home_dir());
    let program = Path::new("platform-tools").join(Host::CURRENT.program("adb"));
    let places: Vec<PathBuf> = sdks.iter().map(|sdk| sdk.join(&program)).collect();
    match places.iter().find(|path| which::which(path).is_ok()) {
        Some(path) => HostAdb::Found(path.clone()),
        None => HostAdb::Missing(places),
    }
}

/// Starts a server at `address`, where nothing answered, and waits until a server answers.
///
/// heaptap runs adb as a detached `nodaemon server`, because that only tries to bind the port.
/// `start-server` would first contact a server that another program started in the meantime, and
/// kill it if its version differs.
pub(super) async fn start_server(
    address: &Address,
    connector: &dyn Connect,
) -> Result<(), DeviceError> {
    let adb = match find_adb() {
        HostAdb::Found(adb) => adb,
        HostAdb::Missing(searched) => {
            return Err(DeviceError::AdbMissing {
                address: address.to_string(),
                searched,
            });
        }
    };
    let failed = |why: String| DeviceError::ServerStart {
        adb: adb.clone(),
        address: address.to_string(),
        why,
    };
    let mut command = std::process::Command::new(&adb);
    command
        .arg("-P")
        .arg(address.port().to_string())
        .args(["nodaemon", "server"])
        .env_remove("ADB_SERVER_SOCKET")
        .env_remove("ANDROID_ADB_SERVER_ADDRESS")
        .env_remove("ANDROID_ADB_SERVER_PORT");
    let mut child = detach::spawn(command).map_err(|e| failed(format!("cannot run it: {e}")))?;
    let deadline = Instant::now() + START;
    loop {
        let asked = timeout_at(deadline, async {
            let mut wire = Wire::new(connector.connect().await.ok()?);
            wire.request("host:version").await.ok()?;
            wire.text().await.ok()
        });
        if let Ok(Some(_)) = asked.await {
            return Ok(());
        }
        // A server that ended might have lost a race for the port; then the other one answers soon.
        if let Ok(Some(status)) = child.try_wait()
            && connector.connect().await.is_err()
        {
            return Err(failed(format!("it ended with {status}")));
        }
        if Instant::now() >= deadline {
            // The server is a child of this process, and no other program uses it.
            let _ = child.kill();
            return Err(failed(format!("no answer within {} s", START.as_secs())));
        }
        sleep(POLL).await;
    }
}
