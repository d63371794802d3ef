//! Facts of the device and the app for the results.

use std::time::Duration;

use heaptap_lab::results::Device as DeviceRow;
use heaptap_lab::scenario::{self, Compare, DeviceClass, Scenario};

use heaptap_adb::{Command, Device};
use heaptap_base::error::Failure;
use heaptap_capture::eligibility::{self, DeviceFacts, names::matches_native};

/// Time limit of short commands.
const QUICK: Duration = Duration::from_secs(30);

/// Returns the device of a result.
pub(super) fn device_row(name: &str, facts: &DeviceFacts, instead_of: Option<String>) -> DeviceRow {
    DeviceRow {
        instead_of,
        serial: name.to_owned(),
        model: facts.model.clone(),
        system: Some(facts.system()),
        fingerprint: facts.fingerprint.clone(),
    }
}

/// Returns the name of the first class whose predicates hold.
pub(super) fn class_of<'a>(scenario: &'a Scenario, facts: &DeviceFacts) -> &'a str {
    let class = scenario.devices.iter().find(|class| is_of(class, facts));
    class.map_or(scenario::DEFAULT_CLASS, |class| &class.name)
}

/// Returns whether a device is of the class with this name.
///
/// # Errors
/// Returns an error if the device cannot be reached.
pub async fn is_of_class(
    scenario: &Scenario,
    device: &Device,
    class: &str,
) -> Result<bool, Failure> {
    let facts = eligibility::facts(device).await?;
    Ok(class_of(scenario, &facts) == class)
}

fn is_of(class: &DeviceClass, facts: &DeviceFacts) -> bool {
    let holds = |wanted: &Option<(Compare, u64)>, value: Option<u64>| match (wanted, value) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some((compare, wanted)), Some(value)) => compare.holds(value, *wanted),
    };
    let model = facts.model.as_deref().unwrap_or_default();
    class
        .model
        .as_ref()
        .is_none_or(|pattern| matches_native(pattern, model))
        && holds(&class.sdk, facts.sdk.map(u64::from))
        && holds(&class.ram, facts.memory_bytes)
}

/// An installed app; without values if it is not installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct App {
    /// `versionName (versionCode)`.
    pub version: Option<String>,
    /// Its directory, which is random in each installation: it tells builds of one version apart.
    pub code_path: Option<String>,
}

/// Returns the version and the directory of a package.
///
/// # Errors
/// Returns an error if the device cannot be reached.
pub(super) async fn app(device: &Device, package: &str) -> Result<App, Failure> {
    let script = r#"dumpsys package "$1" | grep -E "versionName=|versionCode=|codePath=""#;
    let command = Command::script(script).called("reading the version of the app");
    Ok(app_in(&device.text(&command.arg(package), QUICK).await?))
}

fn app_in(text: &str) -> App {
    let value = |key: &str| {
        let mut words = text.split_whitespace();
        words
            .find_map(|word| word.strip_prefix(key))
            .map(str::to_owned)
    };
    let version = match (value("versionName="), value("versionCode=")) {
        (Some(name), Some(code)) => Some(format!("{name} ({code})")),
        (one, other) => one.or(other),
    };
    let code_path = (text.lines()).find_map(|line| line.trim().strip_prefix("codePath="));
    let clean = |text: &str| heaptap_base::untrusted::sanitize(text).into_owned();
    App {
        version: version.as_deref().map(clean),
        code_path: code_path.map(clean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_has_a_version_and_a_directory() {
        let text = "    versionCode=43 minSdk=26 targetSdk=33\n    versionName=1.43\n    \
                    codePath=/data/app/~~x==/com.example.app-y==\n";
        let app = app_in(text);
        assert_eq!(app.version.as_deref(), Some("1.43 (43)"));
        let path = "/data/app/~~x==/com.example.app-y==";
        assert_eq!(app.code_path.as_deref(), Some(path));
        let none = app_in("");
        assert_eq!((none.version, none.code_path), (None, None));
    }
}
