//! Stopping and starting the app to be recorded (`--launch`).

use std::time::Duration;

use crate::error::CaptureError;
use heaptap_adb::{Command, Device, DeviceError};
use heaptap_base::error::ErrorClass;

/// Timeout of `am`, which is slow because it starts Android's runtime.
const AM_LIMIT: Duration = Duration::from_secs(30);

/// Ends every process of `package`.
///
/// # Errors
/// Returns an error if the device refuses.
pub async fn force_stop(
    device: &Device,
    package: &str,
    user: Option<u32>,
) -> Result<(), CaptureError> {
    let command = with_user(Command::program("am").arg("force-stop"), user).arg(package);
    let output = device.run(&command, AM_LIMIT).await?;
    if output.exit == 0 {
        Ok(())
    } else {
        Err(not_launched(device, package, &output.stderr))
    }
}

/// Activity that the icon of an app starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    pub package: String,
    component: String,
}

/// Finds the activity that the icon of `package` starts.
///
/// # Errors
/// Returns an error if it does not have one, or if the device cannot be reached.
pub async fn launcher_activity(
    device: &Device,
    package: &str,
    user: Option<u32>,
) -> Result<Activity, CaptureError> {
    match resolve_launcher(device, package, user, AM_LIMIT).await? {
        Some(component) => Ok(Activity {
            package: package.to_owned(),
            component,
        }),
        None => Err(not_launched(
            device,
            package,
            b"it does not have exactly one launcher activity",
        )),
    }
}

/// Arguments for what the icon of an app starts.
pub(crate) const LAUNCHER_INTENT: [&str; 4] = [
    "-a",
    "android.intent.action.MAIN",
    "-c",
    "android.intent.category.LAUNCHER",
];

/// Finds the component that the icon of `package` starts: the system offers one of its own if
/// there is no single one.
pub(crate) async fn resolve_launcher(
    device: &Device,
    package: &str,
    user: Option<u32>,
    limit: Duration,
) -> Result<Option<String>, DeviceError> {
    let resolve = Command::program("cmd").args(["package", "resolve-activity", "--brief"]);
    let resolve = with_user(resolve, user).args(LAUNCHER_INTENT);
    let text = device.text(&resolve.arg(package), limit).await?;
    let own = format!("{package}/");
    let found = text.lines().map(str::trim).rfind(|l| l.starts_with(&own));
    Ok(found.map(str::to_owned))
}

/// Starts `activity`.
///
/// # Errors
/// Returns an error if the device refuses.
pub async fn launch(
    device: &Device,
    activity: &Activity,
    user: Option<u32>,
) -> Result<(), CaptureError> {
    let start = with_user(Command::program("am").arg("start"), user);
    let start = start.args(["-n", &activity.component]);
    let output = device.run(&start, AM_LIMIT).await?;
    // `am start` reports errors on stderr and might exit with 0.
    let complaint = String::from_utf8_lossy(&output.stderr);
    if output.exit != 0 || complaint.lines().any(|l| l.starts_with("Error")) {
        return Err(not_launched(device, &activity.package, &output.stderr));
    }
    Ok(())
}

/// Adds the user, if one is given.
pub(crate) fn with_user(command: Command, user: Option<u32>) -> Command {
    match user {
        Some(user) => command.arg("--user").arg(user.to_string()),
        None => command,
    }
}

fn not_launched(device: &Device, package: &str, why: &[u8]) -> CaptureError {
    let (serial, why) = (device.serial(), String::from_utf8_lossy(why));
    let message = format!("cannot launch {package} on {serial}: {}", why.trim());
    CaptureError::new(ErrorClass::Device, "not-launched", message)
        .with_help("start it manually during the recording")
}
