//! Settings of a device that were not restored, and commands to restore them manually.

use crate::error::{CaptureError, kind};
use heaptap_adb::Command;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted;
use heaptap_base::untrusted::shell::{Shell, quoted};

/// A setting that was not restored, with the command for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnrestoredSetting {
    /// Text such as `user_rotation (was 0)`.
    pub what: String,
    /// Command for the device's shell; `None` if it contains unprintable characters.
    pub command: Option<String>,
}

impl UnrestoredSetting {
    pub(super) fn new(what: String, command: &Command) -> UnrestoredSetting {
        let text = command.text();
        let command = (!text.contains(untrusted::is_unsafe)).then(|| text.to_owned());
        UnrestoredSetting { what, command }
    }

    /// Returns the command for the user's shell.
    pub(super) fn by_hand(&self, serial: &str, shell: Shell) -> Option<String> {
        let command = self.command.as_deref()?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b" -_./:".contains(&b);
        let serial = shell.quoted(serial);
        let command = match command.bytes().all(plain) {
            true => command.to_owned(),
            // A single argument for adb, which the device's shell splits.
            false => shell.quoted(command),
        };
        Some(format!("adb -s {serial} shell {command}"))
    }
}

impl CaptureError {
    /// The device is not that of the settings to restore.
    pub fn other_device(serial: &str, noted: &str) -> Self {
        let message =
            format!("{serial} is not the device ({noted}) whose settings must be restored");
        Self::new(ErrorClass::NoDevice, "other-device", message)
            .with_help("connect that device, then run `heaptap provoke --restore` again")
    }

    /// The user ended the actions.
    pub(super) fn canceled() -> Self {
        Self::new(ErrorClass::Interrupted, kind::INTERRUPTED, "interrupted")
    }
}

/// Returns the error of a device that is not restored: why, and what is left to do.
pub(super) fn error(serial: &str, why: &str, unrestored: &[UnrestoredSetting]) -> CaptureError {
    let what: Vec<&str> = unrestored.iter().map(|one| one.what.as_str()).collect();
    let mut message = format!("cannot restore {serial}: {why}");
    if !what.is_empty() {
        message += &format!("; not restored: {}", what.join(", "));
    }
    let by_hand = unrestored
        .iter()
        .filter_map(|one| one.by_hand(serial, Shell::HOST));
    let hints: Vec<String> = by_hand.collect();
    let and_by_hand = match hints.is_empty() {
        true => "",
        false => ", or restore the settings manually:",
    };
    let serial = quoted(serial);
    let help = format!("run `heaptap provoke --restore -s {serial}`{and_by_hand}");
    let failure = Failure::new(ErrorClass::Device, "not-restored", message);
    failure.with_help(help).with_hints(hints).into()
}
