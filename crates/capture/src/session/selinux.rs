//! Permissive SELinux during a recording: a loop on the device restores it after
//! perfetto has ended, even if this host or the cable fails.

use std::time::Duration;

use super::session::Session;
use crate::error::CaptureError;
use heaptap_adb::{Command, Device, Output};
use heaptap_base::error::ErrorClass;

/// Runs as root. `$1` is the trace file that only our perfetto writes to, `$2` the guard: a
/// separate program, so that it does not hold this connection open. There is one guard at a time:
/// the first of two would restore SELinux during the recording of the other. The name of the guard
/// is quoted in its middle, so that the search does not match this script.
const RELAX: &str = include_str!("../scripts/selinux_relax.sh").trim_ascii_end();

/// Waits up to two minutes for our perfetto, then until it ends. Its own line in `ps` begins with
/// `sh`, so it does not match itself.
const GUARD: &str = include_str!("../scripts/selinux_guard.sh").trim_ascii_end();

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
) -> Result<SelinuxChange, CaptureError> {
    let script = Command::script(RELAX)
        .called("arming the SELinux guard")
        .arg(remote_path)
        .arg(GUARD);
    let output = device.run(&root_command(script, as_root), ARMING).await?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match said.as_str() {
        "permissive" => Ok(SelinuxChange::UntilTheEnd),
        "unchanged" => Ok(SelinuxChange::AsItWas),
        "guarded" => {
            let serial = device.serial();
            let message =
                format!("another recording on {serial} makes SELinux permissive until it ends");
            let error = CaptureError::new(ErrorClass::Device, "selinux-guarded", message);
            Err(error.with_help(
                "end it with `heaptap stop`; if `heaptap status` does not list it, try again in \
                 two minutes",
            ))
        }
        _ => Err(stays(device, &output)),
    }
}

fn stays(device: &Device, output: &Output) -> CaptureError {
    let (serial, text) = (device.serial(), String::from_utf8_lossy(&output.stderr));
    let message = format!(
        "cannot make SELinux permissive on {serial}: {}",
        text.trim()
    );
    CaptureError::new(ErrorClass::Device, "selinux-stays", message)
        .with_help("use a userdebug build, where `su root setenforce 0` works")
}

/// Runs as root. Makes SELinux enforcing and ends the guard for `$1`. Otherwise the guard would do
/// this only after its two minutes, in the middle of a later recording.
const RESTORE: &str = include_str!("../scripts/selinux_restore.sh").trim_ascii_end();

/// Undoes [`relax_selinux`] if perfetto was not started.
///
/// # Errors
/// Returns an error if SELinux is not enforcing afterwards; then the guard restores it.
pub async fn restore_selinux(
    device: &Device,
    as_root: bool,
    remote_path: &str,
) -> Result<(), CaptureError> {
    let script = Command::script(RESTORE)
        .called("restoring SELinux")
        .arg(remote_path);
    let output = device.run(&root_command(script, as_root), ARMING).await?;
    match output.stdout.trim_ascii() {
        b"Enforcing" => Ok(()),
        _ => Err(stays(device, &output)),
    }
}

fn root_command(script: Command, as_root: bool) -> Command {
    match as_root {
        true => script,
        false => Command::program("su").args(["root", "sh", "-c", script.text()]),
    }
}

/// Waits until the guard for `$1` has ended; checks three times a second. Commands that search for
/// it do not match themselves.
const AWAIT_GUARD: &str = include_str!("../scripts/selinux_await.sh").trim_ascii_end();

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
                let warning = "SELinux is not enforcing yet; a guard on the device will restore it";
                self.warn(warning.to_owned());
                false
            }
        }
    }
}
