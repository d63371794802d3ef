//! The adb program on the host: searches for it and starts a server if none is running. Never runs
//! adb against a running server, because adb kills servers of other versions.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

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

/// Searches for adb in PATH, then in `ANDROID_HOME` and `ANDROID_SDK_ROOT`, then in the default SDK
/// paths of Android Studio and Linux distributions.
pub fn find_adb() -> HostAdb {
    if let Ok(path) = which::which("adb") {
        return HostAdb::Found(path);
    }
    let places = sdk_places(|name| std::env::var_os(name), std::env::home_dir());
    match places.iter().find(|path| which::which(path).is_ok()) {
        Some(path) => HostAdb::Found(path.clone()),
        None => HostAdb::Missing(places),
    }
}

fn sdk_places(variable: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Vec<PathBuf> {
    let mut sdks: Vec<PathBuf> = ["ANDROID_HOME", "ANDROID_SDK_ROOT"]
        .iter()
        .filter_map(|name| variable(name))
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .collect();
    if cfg!(windows) {
        sdks.extend(variable("LOCALAPPDATA").map(|p| PathBuf::from(p).join("Android").join("Sdk")));
        sdks.push(PathBuf::from(r"C:\Android\android-sdk"));
    } else if cfg!(target_os = "macos") {
        sdks.extend(home.map(|p| p.join("Library/Android/sdk")));
        sdks.push(PathBuf::from(
            "/opt/homebrew/share/android-commandlinetools",
        ));
        sdks.push(PathBuf::from("/usr/local/share/android-commandlinetools"));
    } else {
        sdks.extend(home.map(|p| p.join("Android/Sdk")));
        sdks.push(PathBuf::from("/usr/lib/android-sdk"));
        sdks.push(PathBuf::from("/opt/android-sdk"));
    }
    let name = if cfg!(windows) { "adb.exe" } else { "adb" };
    let mut places: Vec<PathBuf> = Vec::new();
    for sdk in sdks {
        let place = sdk.join("platform-tools").join(name);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdk_is_looked_for_where_variables_point_first() {
        let places = sdk_places(
            |name| match name {
                "ANDROID_HOME" => Some("/sdk".into()),
                "ANDROID_SDK_ROOT" => Some("/sdk".into()),
                _ => None,
            },
            Some("/home/u".into()),
        );
        let name = if cfg!(windows) { "adb.exe" } else { "adb" };
        let first: PathBuf = ["/sdk", "platform-tools", name].iter().collect();
        assert_eq!(places[0], first);
        assert_eq!(places.iter().filter(|p| **p == first).count(), 1);
        assert!(places.len() >= 2, "and the default paths: {places:?}");
    }
}
