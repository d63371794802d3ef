//! SELinux, permissive for the time of a recording: a loop on the device puts it back when
//! perfetto is gone, whatever becomes of this host and of the cable.

use std::time::Duration;

use super::error::SessionError;
use super::probe::QUICK;
use super::session::Session;
use crate::device::{Command, Device};

/// Runs as root. `$1` is the trace file that only our perfetto writes to. The loop waits two
/// minutes for that perfetto, then until it is gone. Its name in `ps` begins with `sh`, so
/// that it does not find itself.
const GUARD: &str = r#"if [ "$(getenforce)" != Enforcing ]; then echo unchanged; exit 0; fi
(trap "" HUP INT TERM
n=0
while [ $n -lt 240 ]; do
  if ps -A -o ARGS | grep -q "^perfetto .*$1"; then n=1000; else n=$((n+1)); sleep 0.5; fi
done
while ps -A -o ARGS | grep -q "^perfetto .*$1"; do sleep 1; done
setenforce 1) </dev/null >/dev/null 2>&1 &
if setenforce 0; then echo permissive; else echo refused; fi"#;

/// Time allowed for arming the guard.
const ARMING: Duration = Duration::from_secs(20);

/// What became of a request to relax SELinux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relaxed {
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
) -> Result<Relaxed, SessionError> {
    let script = Command::script(GUARD)
        .called("guarding SELinux")
        .arg(remote_path);
    let command = if as_root {
        script
    } else {
        Command::program("su")
            .args(["root", "sh", "-c"])
            .arg(script.text())
    };
    let output = device.run(&command, ARMING).await?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match said.as_str() {
        "permissive" => Ok(Relaxed::UntilTheEnd),
        "unchanged" => Ok(Relaxed::AsItWas),
        _ => Err(SessionError::SelinuxStays {
            serial: device.serial().to_owned(),
            text: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }),
    }
}

impl Session {
    /// Puts SELinux back at once, rather than when the guard notices.
    pub async fn restore_selinux(&self, as_root: bool) {
        let words = ["setenforce", "1"];
        let command = if as_root {
            Command::program(words[0]).arg(words[1])
        } else {
            Command::program("su").arg("root").args(words)
        };
        match self.device.run(&command, QUICK).await {
            Ok(output) if output.exit == 0 => {}
            _ => self.warn(
                "SELinux could not be put back at once; a guard on the device does it shortly"
                    .to_owned(),
            ),
        }
    }
}
