//! Permissive SELinux during a recording: a loop on the device restores it after
//! perfetto has ended, even if this host or the cable fails.

use std::time::Duration;

use super::error::SessionError;
use super::session::Session;
use heaptap_adb::{Command, Device};

/// Runs as root. `$1` is the trace file that only our perfetto writes to, `$2` the guard: a
/// separate program, so that it does not hold this connection open. There is one guard at a time:
/// the first of two would restore SELinux during the recording of the other. The name of the guard
/// is quoted in its middle, so that the search does not match this script.
const RELAX: &str = r#"if ps -A -o ARGS | grep -q "[h]eaptap-guard"; then echo guarded; exit 0; fi
if [ "$(getenforce)" != Enforcing ]; then echo unchanged; exit 0; fi
sh -c "$2" heaptap"-guard" "$1" </dev/null >/dev/null 2>&1 &
if setenforce 0; then echo permissive; else echo refused; fi"#;

/// Waits up to two minutes for our perfetto, then until it ends. Its own line in `ps` begins with
/// `sh`, so it does not match itself.
const GUARD: &str = r#"trap "" HUP INT TERM
n=0
while [ $n -lt 240 ]; do
  if ps -A -o ARGS | grep -q "^perfetto .*$1"; then n=1000; else n=$((n+1)); sleep 0.5; fi
done
while ps -A -o ARGS | grep -q "^perfetto .*$1"; do sleep 0.3; done
setenforce 1"#;

/// Time allowed for arming the guard.
const ARMING: Duration = Duration::from_secs(20);

/// Result of a request to relax SELinux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelinuxChange {
    /// It is permissive now, and will be enforcing again after the session.
    UntilTheEnd,
    /// It was not enforcing before.
    AsItWas,
}

/// Makes SELinux permissive while a perfetto process writes to `remote_path`.
///
/// # Errors
/// Returns an error if the device does not allow it, or another recording has done it.
pub async fn relax_selinux(
    device: &Device,
    as_root: bool,
    remote_path: &str,
) -> Result<SelinuxChange, SessionError> {
    let script = Command::script(RELAX)
        .called("arming the SELinux guard")
        .arg(remote_path)
        .arg(GUARD);
    let output = device.run(&root_command(script, as_root), ARMING).await?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match said.as_str() {
        "permissive" => Ok(SelinuxChange::UntilTheEnd),
        "unchanged" => Ok(SelinuxChange::AsItWas),
        "guarded" => Err(SessionError::SelinuxGuarded {
            serial: device.serial().to_owned(),
        }),
        _ => Err(SessionError::SelinuxStays {
            serial: device.serial().to_owned(),
            text: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }),
    }
}

/// Runs as root. Makes SELinux enforcing and ends the guard for `$1`. Otherwise the guard would do
/// this only after its two minutes, in the middle of a later recording.
const RESTORE: &str = r#"setenforce 1
ps -A -o PID,ARGS | grep "[h]eaptap-guard" | grep "$1" | while read pid rest; do kill -KILL $pid; done
getenforce"#;

/// Undoes [`relax_selinux`] if perfetto was not started.
///
/// # Errors
/// Returns an error if SELinux is not enforcing afterwards; then the guard restores it.
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

/// Waits until the guard for `$1` has ended; checks three times a second. Commands that search for
/// it do not match themselves.
const AWAIT_GUARD: &str = r#"n=0
while [ $n -lt 50 ] && ps -A -o ARGS | grep "[h]eaptap-guard" | grep -q "$1"; do
  n=$((n+1)); sleep 0.1
done
getenforce"#;

impl Session {
    /// Waits until the guard has restored SELinux: otherwise it would undo the request of a
    /// later recording. Returns whether it has.
    pub async fn await_guard(&self) -> bool {
        let command = Command::script(AWAIT_GUARD)
            .called("waiting for the SELinux guard")
            .arg(&self.header().remote_path);
        match self.device.run(&command, ARMING).await {
            Ok(output) if output.stdout.trim_ascii() == b"Enforcing" => true,
            _ => {
                self.warn(
                    "SELinux is not enforcing yet; a guard on the device will restore it"
                        .to_owned(),
                );
                false
            }
        }
    }
}
