//! What of a phone was not put back, and what a person can type to put it back.

use heaptap_adb::Command;
use heaptap_model::untrusted;
use heaptap_model::untrusted::shell::Shell;

/// Something that is not as it was, and what would make it so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnrestoredSetting {
    /// In words, such as `user_rotation (was 0)`.
    pub what: String,
    /// What the device's shell is to be told; `None` where that cannot be shown as it is.
    pub command: Option<String>,
}

impl UnrestoredSetting {
    pub(super) fn new(what: String, command: &Command) -> UnrestoredSetting {
        let text = command.text();
        let command = (!text.contains(untrusted::is_unsafe)).then(|| text.to_owned());
        UnrestoredSetting { what, command }
    }

    /// The command for the user's shell.
    pub(super) fn by_hand(&self, serial: &str, shell: Shell) -> Option<String> {
        let command = self.command.as_deref()?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b" -_./:".contains(&b);
        let serial = shell.quoted(serial);
        let command = match command.bytes().all(plain) {
            true => command.to_owned(),
            // One argument for adb, which the device's shell takes apart.
            false => shell.quoted(command),
        };
        Some(format!("adb -s {serial} shell {command}"))
    }
}
