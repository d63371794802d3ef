//! SELinux, permissive for the time of a recording: a loop on the device puts it back when
//! perfetto is gone, whatever becomes of this host and of the cable.

use std::time::Duration;

use super::error::SessionError;
use super::session::Session;
use heaptap_adb::{Command, Device};

/// Runs as root. `$1` is the trace file that only our perfetto writes to, `$2` the guard: a
/// program of its own, so that it holds nothing of this connection.
const RELAX: &str = r#"if [ "$(getenforce)" != Enforcing ]; then echo unchanged; exit 0; fi
sh -c "$2" heaptap-guard "$1" </dev/null >/dev/null 2>&1 &
if setenforce 0; then echo permissive; else echo refused; fi"#;

/// Waits two minutes for our perfetto, then until it is gone. Its own line in `ps` begins with
/// `sh`, so that it does not find itself.
const GUARD: &str = r#"trap "" HUP INT TERM
n=0
while [ $n -lt 240 ]; do
  if ps -A -o ARGS | grep -q "^perfetto .*$1"; then n=1000; else n=$((n+1)); sleep 0.5; fi
done
while ps -A -o ARGS | grep -q "^perfetto .*$1"; do sleep 0.3; done
setenforce 1"#;

/// Time allowed for arming the guard.
const ARMING: Duration = Duration::from_secs(20);

/// What became of a request to relax SELinux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelinuxChange {
    /// It is permissive now, and enforcing again once the session is over.
    UntilTheEnd,
    /// It was not enforcing.
    AsItWas,
}

/// Makes SELinux permissive for as long as a perfetto writes to `remote_path`.
///
/// # Errors
/// Where the device allows it not.
pub async fn relax_selinux(
    device: &Device,
    as_root: bool,
    remote_path: &str,
) -> Result<SelinuxChange, SessionError> {
    let script = Command::script(RELAX)
        .called("guarding SELinux")
        .arg(remote_path)
        .arg(GUARD);
    let output = device.run(&root_command(script, as_root), ARMING).await?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match said.as_str() {
        "permissive" => Ok(SelinuxChange::UntilTheEnd),
        "unchanged" => Ok(SelinuxChange::AsItWas),
        _ => Err(SessionError::SelinuxStays {
            serial: device.serial().to_owned(),
            text: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }),
    }
}

/// Runs as root. Enforces again and ends the guard for `$1`, which would do so only after its
/// two minutes, in the middle of a later recording.
const RESTORE: &str = r#"setenforce 1
ps -A -o PID,ARGS | grep "[h]eaptap-guard" | grep "$1" | while read pid rest; do kill -KILL $pid; done
getenforce"#;

/// Undoes [`relax_selinux`] where no perfetto was started.
///
/// # Errors
/// Where SELinux is not seen to enforce again; the guard then sees to it.
pub async fn restore_selinux(
    device: &Device,
    as_root: bool,
    remote_path: &str,
) -> Result<(), SessionError> {
    let script = Command::script(RESTORE)
        .called("restoring SELinux")
        .arg(remote_path);
    let output = device.run(&root_command(script, as_root), ARMING).await?;
    if output.stdout.trim_ascii() == b"Enforcing" {
        Ok(())
    } else {
        Err(SessionError::SelinuxStays {
            serial: device.serial().to_owned(),
            text: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }
}

fn root_command(script: Command, as_root: bool) -> Command {
    if as_root {
        script
    } else {
        Command::program("su")
            .args(["root", "sh", "-c"])
            .arg(script.text())
    }
}

/// Waits until the guard for `$1` has done its work; it looks three times a second. Commands
/// that look for it do not find themselves.
const AWAIT_GUARD: &str = r#"n=0
while [ $n -lt 50 ] && ps -A -o ARGS | grep "[h]eaptap-guard" | grep -q "$1"; do
  n=$((n+1)); sleep 0.1
done
getenforce"#;

impl Session {
    /// Waits until the guard has put SELinux back: one that is left would undo what a later
    /// recording asks for.
    pub async fn await_guard(&self) {
        let command = Command::script(AWAIT_GUARD)
            .called("waiting for the SELinux guard")
            .arg(&self.header().remote_path);
        match self.device.run(&command, ARMING).await {
            Ok(output) if output.stdout.trim_ascii() == b"Enforcing" => {}
            _ => self.warn(
                "SELinux was not seen to enforce again; a guard on the device sees to it"
                    .to_owned(),
            ),
        }
    }
}
