//! Settings of a device that were not restored, and commands to restore them manually.

use heaptap_adb::Command;
use heaptap_model::untrusted;
use heaptap_model::untrusted::shell::Shell;

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
