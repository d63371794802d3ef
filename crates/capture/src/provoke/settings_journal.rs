//! Previous settings of a device: recorded on this host before the first change, so that they are
//! restored even if this process or the cable fails.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::commands::press;
use super::event::PutBack;
use super::phone_state::{QUICK, complaint, hardware_serial, refused, run_quick};
use super::unrestored::{self, UnrestoredSetting};
use crate::error::{CaptureError, kind};
use crate::session::{Store, identity, open_lock, remove_if_there};
use heaptap_adb::{Command, Device};
use heaptap_base::directory;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::unfinished;
use heaptap_base::{units, untrusted};
use sha2::{Digest as _, Sha256};

/// The namespace of doze, whose keys are `deep` and `light`, with the values 1 and 0. It is not one
/// of `settings`, and a restart of the device resets it.
pub(super) const DOZE: &str = "deviceidle";

/// A setting and its previous value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// `system`, `global`, or [`DOZE`].
    pub space: String,
    pub key: String,
    /// Previous value; `None` if it was not set.
    pub value: Option<String>,
}

impl Setting {
    /// Returns the command that sets the value.
    pub(super) fn command(&self) -> Command {
        if self.space == DOZE {
            let verb = match self.value.as_deref() {
                Some("0") => "disable",
                _ => "enable",
            };
            return Command::program("cmd").args([DOZE, verb, &self.key]);
        }
        let command = Command::program("settings");
        match &self.value {
            Some(value) => command.arg("put").args([&self.space, &self.key, value]),
            None => command.arg("delete").args([&self.space, &self.key]),
        }
    }

    fn unrestored(&self) -> UnrestoredSetting {
        let was = told(self.value.as_deref());
        UnrestoredSetting::new(format!("{} (was {was})", self.key), &self.command())
    }

    /// Restores the setting and verifies it; the inner error describes a rejected value.
    async fn put(&self, device: &Device) -> Result<Result<(), String>, CaptureError> {
        match run_quick(device, &self.command(), SLOW).await {
            Ok(_) => {}
            Err(refused) if refused.is(&[kind::REFUSED]) => return Ok(Err(refused.to_string())),
            Err(error) => return Err(error),
        }
        let text = device.text(&query(&self.space, &self.key), SLOW).await?;
        let now = Some(text.trim()).filter(|text| *text != "null");
        Ok(match now == self.value.as_deref() {
            true => Ok(()),
            false => Err(format!("{} is {}", self.key, told(now))),
        })
    }

    /// Reads a setting. A device that does not report it as a number refuses to: it could not be
    /// restored.
    pub(super) async fn read(
        device: &Device,
        space: &str,
        key: &str,
    ) -> Result<Setting, CaptureError> {
        let query = query(space, key);
        let (text, _) = run_quick(device, &query, SLOW).await?;
        let text = text.trim();
        if text != "null" && text.parse::<f64>().is_err() {
            return Err(refused(device, &query, &told(Some(text))));
        }
        Ok(Setting {
            space: space.to_owned(),
            key: key.to_owned(),
            value: (text != "null").then(|| text.to_owned()),
        })
    }
}

/// Returns the command that prints a setting.
fn query(space: &str, key: &str) -> Command {
    match space {
        DOZE => Command::program("cmd").args([DOZE, "enabled", key]),
        _ => Command::program("settings").args(["get", space, key]),
    }
}

/// Formats a setting's value for a message.
fn told(value: Option<&str>) -> String {
    match value {
        Some(value) if value.chars().count() > MAX_TOLD => {
            let start: String = value.chars().take(MAX_TOLD).collect();
            format!("{}…", untrusted::sanitize(&start))
        }
        Some(value) => untrusted::sanitize(value).into_owned(),
        None => "not set".to_owned(),
    }
}

/// Maximum length of a value in a message; a valid one has one or two digits.
const MAX_TOLD: usize = 40;

/// Bytes of a device's ID in a file name; each can take three.
const MAX_NAME_BYTES: usize = 60;

/// Everything to restore on one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Serial that adb used.
    pub serial: String,
    /// Address of the adb server.
    #[serde(default)]
    pub server: String,
    /// `ro.serialno`: the serial that adb uses might be an address of another device by now.
    pub hardware_serial: String,
    /// Package for which the settings were changed.
    pub package: String,
    /// Settings, in the order in which they are restored.
    pub settings: Vec<Setting>,
    /// The screen was off.
    pub screen_off: bool,
    /// PID of a monkey that might still be running.
    #[serde(default)]
    pub monkey: Option<u32>,
}

impl Saved {
    /// Begins with nothing to restore.
    pub(super) fn new(device: &Device, hardware_serial: &str, package: &str) -> Saved {
        Saved {
            serial: device.serial().to_owned(),
            server: device.server().address(),
            hardware_serial: hardware_serial.to_owned(),
            package: package.to_owned(),
            settings: Vec::new(),
            screen_off: false,
            monkey: None,
        }
    }

    /// Returns the [`identity`] of its device.
    pub fn phone(&self) -> String {
        identity(&self.serial, &self.hardware_serial, &self.server)
    }
}

/// Returns the [`identity`] of a device that reports this serial number of its own.
pub(super) fn identity_of(device: &Device, hardware_serial: &str) -> String {
    let server = device.server().address();
    identity(device.serial(), hardware_serial, &server)
}

/// Directory of these journals.
#[derive(Debug, Clone)]
pub struct Journals {
    directory: PathBuf,
}

/// The right to change a device, held until dropped.
#[derive(Debug)]
pub struct Lock {
    // Closing the file releases the lock.
    _file: File,
}

impl Journals {
    /// Opens the journals below the state directory `directory`.
    ///
    /// # Errors
    /// Returns an error if it cannot be created.
    pub fn in_directory(directory: &Path) -> Result<Journals, CaptureError> {
        let directory = directory.join("provoke");
        match directory::create(&directory) {
            Ok(()) => Ok(Journals { directory }),
            Err(source) => Err(unwritable(&directory, source)),
        }
    }

    /// Opens the journals next to those of recordings.
    ///
    /// # Errors
    /// Returns an error if their directory cannot be created.
    pub fn beside(store: &Store) -> Result<Journals, CaptureError> {
        let directory = store.directory();
        Journals::in_directory(directory.parent().unwrap_or(directory))
    }

    /// Returns the journals of settings that are held for a whole run.
    pub fn of_runs(&self) -> Journals {
        let directory = self.directory.join("runs");
        // If this fails, so does locking, with the reason.
        let _ = directory::create(&directory);
        Journals { directory }
    }

    fn path(&self, phone: &str, ending: &str) -> PathBuf {
        // A serial can contain characters that a file name cannot.
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        let mut name = String::new();
        for byte in phone.bytes().take(MAX_NAME_BYTES) {
            match plain(byte) {
                true => name.push(char::from(byte)),
                false => name.push_str(&format!("_{byte:02x}")),
            }
        }
        // The address of a server can be long, and differ at its end only.
        if phone.len() > MAX_NAME_BYTES {
            let hash = units::hex(&Sha256::digest(phone)[..4]);
            name.push_str(&format!("-{hash}"));
        }
        self.directory.join(format!("{name}.{ending}"))
    }

    /// Acquires the right to change a device, and restores what an earlier run left. Returns the
    /// device's own serial number, too.
    ///
    /// # Errors
    /// Returns the errors of [`put_back`], or an error if another process has the right.
    pub(super) async fn claim(
        &self,
        device: &Device,
    ) -> Result<(String, Lock, Option<PutBack>), CaptureError> {
        let hardware_serial = hardware_serial(device).await?;
        let identity = identity_of(device, &hardware_serial);
        let lock = self.lock(&identity)?;
        let restored = match self.of(&identity)? {
            Some(left) => Some(put_back(device, self, &left).await?),
            None => None,
        };
        Ok((hardware_serial, lock, restored))
    }

    /// Acquires the right to change the device with this [`identity`].
    ///
    /// # Errors
    /// Returns an error if another process has it.
    pub fn lock(&self, phone: &str) -> Result<Lock, CaptureError> {
        let path = self.path(phone, "lock");
        let fail = |source| unwritable(&path, source);
        let file = open_lock(&path).map_err(fail)?;
        match fs4::FileExt::try_lock(&file) {
            Ok(()) => Ok(Lock { _file: file }),
            Err(fs4::TryLockError::WouldBlock) => {
                let message = format!("another heaptap process is provoking on {phone}");
                Err(
                    CaptureError::new(ErrorClass::Device, "provoke-busy", message).with_help(
                        "wait for its end, or stop it with Ctrl-C, which restores the device",
                    ),
                )
            }
            Err(fs4::TryLockError::Error(source)) => Err(fail(source)),
        }
    }

    /// Records what to restore; it is completely on disk when this returns.
    ///
    /// # Errors
    /// Returns an error if this host cannot write.
    pub fn note(&self, saved: &Saved) -> Result<(), CaptureError> {
        let path = self.path(&saved.phone(), "json");
        let write =
            || -> io::Result<()> { unfinished::write(&path, &serde_json::to_vec_pretty(saved)?) };
        write().map_err(|source| unwritable(&path, source))
    }

    /// Returns what to restore on the device with this [`identity`]; `None` if there is nothing.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read.
    pub fn of(&self, phone: &str) -> Result<Option<Saved>, CaptureError> {
        let path = self.path(phone, "json");
        let read = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.and_then(|bytes| Ok(serde_json::from_slice(&bytes)?)),
        };
        read.map(Some).map_err(|source| unwritable(&path, source))
    }

    /// Returns what to restore on all devices, by their serials, with the settings of runs.
    pub fn all(&self) -> Vec<Saved> {
        let directories = [&self.directory, &self.of_runs().directory];
        let entries = directories
            .into_iter()
            .flat_map(std::fs::read_dir)
            .flatten();
        let saved = entries.flatten().filter_map(|entry| {
            let path = entry.path();
            let is_journal = path.extension().is_some_and(|ending| ending == "json");
            let bytes = is_journal.then(|| std::fs::read(path).ok()).flatten()?;
            serde_json::from_slice(&bytes).ok()
        });
        let mut all: Vec<Saved> = saved.collect();
        all.sort_by(|a, b| a.serial.cmp(&b.serial));
        all
    }

    /// Removes the journal of a restored device.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be removed.
    pub fn forget(&self, saved: &Saved) -> Result<(), CaptureError> {
        let path = self.path(&saved.phone(), "json");
        remove_if_there(&path).map_err(|source| unwritable(&path, source))
    }
}

/// Ends a monkey, unless its PID belongs to another process by now.
const END_MONKEY: &str = include_str!("../scripts/end_monkey.sh").trim_ascii_end();

/// Timeout of `settings`: it is a program of Android's runtime.
const SLOW: Duration = Duration::from_secs(30);

/// Ends the monkey; returns whether it was still running.
pub(super) async fn end_monkey(device: &Device, pid: u32) -> Result<bool, CaptureError> {
    let script = Command::script(END_MONKEY).called("ending monkey");
    let answer = device.run(&script.arg(pid.to_string()), QUICK).await?;
    Ok(answer.stdout.starts_with(b"ended"))
}

/// Restores the recorded settings of a device, and verifies them.
///
/// # Errors
/// Returns an error if the device cannot be reached, is another one, or does not accept a value;
/// then the journal stays.
pub async fn put_back(
    device: &Device,
    journals: &Journals,
    saved: &Saved,
) -> Result<PutBack, CaptureError> {
    let done = try_put_back(device, journals, saved).await;
    done.map_err(|not_yet| not_yet.error(device.serial()))
}

fn unwritable(path: &Path, source: io::Error) -> CaptureError {
    let message = format!("cannot write the settings to restore to {}", path.display());
    Failure::new(ErrorClass::HostWrite, "journal-unwritable", message)
        .with_help("free disk space, or set `HEAPTAP_STATE_DIR` to another directory")
        .caused_by(&source)
        .into()
}

/// Reason why not everything was restored, and the rest.
pub(super) struct NotYet {
    pub(super) why: CaptureError,
    pub(super) unrestored: Vec<UnrestoredSetting>,
}

impl NotYet {
    /// Converts this into the error for the user, who can only run the printed commands.
    pub(super) fn error(self, serial: &str) -> CaptureError {
        match self.why {
            CaptureError::Device(error) => {
                unrestored::error(serial, &error.to_string(), &self.unrestored)
            }
            other => other,
        }
    }
}

impl Saved {
    /// Returns everything that is not restored.
    pub(super) fn all_unrestored(&self) -> Vec<UnrestoredSetting> {
        let monkey = self.monkey.map(|pid| {
            let end = Command::program("pkill").args(["-f", "com.android.commands.monkey"]);
            UnrestoredSetting::new(format!("monkey ({pid}) might still be running"), &end)
        });
        monkey.into_iter().chain(self.unrestored_after(0)).collect()
    }

    /// Returns the unrestored settings after the first `settings`, and the screen.
    fn unrestored_after(&self, settings: usize) -> Vec<UnrestoredSetting> {
        let settings = self.settings.iter().skip(settings).map(Setting::unrestored);
        let screen = self.screen_off.then(|| {
            let sleep = press("KEYCODE_SLEEP");
            UnrestoredSetting::new("the screen (was off)".to_owned(), &sleep)
        });
        settings.chain(screen).collect()
    }
}

/// Restores like [`put_back`], for callers that retry.
pub(super) async fn try_put_back(
    device: &Device,
    journals: &Journals,
    saved: &Saved,
) -> Result<PutBack, NotYet> {
    let serial = device.serial().to_owned();
    let nothing_done = |why: CaptureError| NotYet {
        why,
        unrestored: saved.all_unrestored(),
    };
    let hardware = hardware_serial(device).await.map_err(nothing_done)?;
    if !saved.hardware_serial.is_empty() && hardware != saved.hardware_serial {
        let error = CaptureError::other_device(&serial, &saved.hardware_serial);
        return Err(nothing_done(error));
    }
    let mut done = PutBack {
        serial: serial.clone(),
        ..PutBack::default()
    };
    if let Some(pid) = saved.monkey {
        done.monkey_ended = end_monkey(device, pid).await.map_err(nothing_done)?;
    }
    // A value that is not accepted does not prevent restoring the others.
    let mut refused: Vec<(UnrestoredSetting, String)> = Vec::new();
    let interrupted = |why, refused: Vec<(UnrestoredSetting, String)>, settings| NotYet {
        why,
        unrestored: refused
            .into_iter()
            .map(|(unrestored, _)| unrestored)
            .chain(saved.unrestored_after(settings))
            .collect(),
    };
    for (at, setting) in saved.settings.iter().enumerate() {
        match setting.put(device).await {
            Ok(Ok(())) => done.settings.push(match &setting.value {
                Some(value) => format!("{}={value}", setting.key),
                None => format!("{} deleted", setting.key),
            }),
            Ok(Err(why)) => refused.push((setting.unrestored(), why)),
            Err(error) => return Err(interrupted(error, refused, at)),
        }
    }
    if saved.screen_off {
        let all = saved.settings.len();
        let answer = match device.run(&press("KEYCODE_SLEEP"), SLOW).await {
            Ok(answer) => answer,
            Err(error) => return Err(interrupted(error.into(), refused, all)),
        };
        // A device without that key goes to sleep by itself.
        done.screen_off = complaint(&answer).is_none();
    }
    if !refused.is_empty() {
        let (unrestored, why): (Vec<UnrestoredSetting>, Vec<String>) = refused.into_iter().unzip();
        let why = unrestored::error(&serial, &why.join("; "), &unrestored);
        return Err(NotYet {
            why,
            unrestored: Vec::new(),
        });
    }
    journals.forget(saved).map_err(nothing_done)?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_adb::scripted::*;
    use heaptap_base::error::{Classified as _, Failure};
    use heaptap_base::untrusted::shell::Shell;

    #[test]
    fn a_note_is_kept_until_it_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let journals = Journals::in_directory(directory.path()).unwrap();
        let saved = Saved {
            serial: "10.0.0.7:5555/../x".to_owned(),
            server: String::new(),
            hardware_serial: "R5".to_owned(),
            package: "a.b".to_owned(),
            settings: vec![Setting {
                space: "system".to_owned(),
                key: "user_rotation".to_owned(),
                value: None,
            }],
            screen_off: true,
            monkey: None,
        };
        assert_eq!(journals.of("R5").unwrap(), None);
        journals.note(&saved).unwrap();
        assert_eq!(journals.of("R5").unwrap(), Some(saved.clone()));
        assert_eq!(journals.all(), std::slice::from_ref(&saved));
        journals.forget(&saved).unwrap();
        journals.forget(&saved).unwrap();
        assert!(journals.all().is_empty());
    }

    fn noted() -> Saved {
        let setting = |space: &str, key: &str, value: Option<&str>| Setting {
            space: space.to_owned(),
            key: key.to_owned(),
            value: value.map(str::to_owned),
        };
        Saved {
            serial: "S".to_owned(),
            server: "127.0.0.1:5037".to_owned(),
            hardware_serial: "R5".to_owned(),
            package: "a.b".to_owned(),
            settings: vec![
                setting("system", "user_rotation", Some("0")),
                setting("system", "accelerometer_rotation", None),
                setting("global", "stay_on", Some("it's; reboot")),
            ],
            screen_off: true,
            monkey: None,
        }
    }

    fn answered(command: &str, text: &str) -> Vec<Step> {
        let mut script = service(&format!("shell,v2,raw:{command}"));
        script.push(Step::Hear(5, None));
        script.push(say([packet(1, text.as_bytes()), packet(3, &[0])].concat()));
        script
    }

    #[tokio::test(start_paused = true)]
    async fn settings_that_do_not_answer_are_given_up_with_what_is_to_be_typed() {
        let directory = tempfile::tempdir().unwrap();
        let journals = Journals::in_directory(directory.path()).unwrap();
        let saved = noted();
        journals.note(&saved).unwrap();
        let mut hangs = service("shell,v2,raw:settings delete system accelerometer_rotation");
        hangs.push(Step::Hang);
        let script = Scripted::new([
            features("shell_v2"),
            answered("getprop ro.serialno", "R5\n"),
            answered("settings put system user_rotation 0", ""),
            answered("settings get system user_rotation", "1\n"),
            hangs,
        ]);
        let error = put_back(&script.phone(), &journals, &saved).await;
        assert_eq!(script.complaints(), Vec::<String>::new());
        let error = error.unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(
                "not restored: user_rotation (was 0), accelerometer_rotation (was not set), \
                 stay_on (was it's; reboot), the screen (was off)"
            ),
            "{text}"
        );
        let failure = Failure::from(error);
        assert_eq!(
            failure.help.as_deref(),
            Some("run `heaptap provoke --restore -s S`, or restore the settings manually:")
        );
        let hints = failure.hints;
        for command in [
            "adb -s S shell settings put system user_rotation 0",
            "adb -s S shell settings delete system accelerometer_rotation",
            "adb -s S shell input keyevent KEYCODE_SLEEP",
        ] {
            assert!(hints.iter().any(|hint| hint == command), "{hints:?}");
        }
        let quoted = r"shell 'settings put global stay_on '\''it'\''\'\'''\''s; reboot'\'''";
        let for_power_shell = "shell 'settings put global stay_on ''it''\\''''s; reboot'''";
        let expected = if cfg!(windows) {
            for_power_shell
        } else {
            quoted
        };
        let strange = format!("adb -s S {expected}");
        assert!(hints.contains(&strange), "{hints:?}");
        assert_eq!(journals.of("R5").unwrap(), Some(saved));
    }

    #[test]
    fn commands_by_hand_are_quoted_for_the_users_shell() {
        let saved = noted();
        for shell in [Shell::Sh, Shell::PowerShell] {
            for (serial, typed) in [("R5", "R5"), ("adb-R5 (2)._adb", "'adb-R5 (2)._adb'")] {
                let begin = format!("adb -s {typed} shell ");
                for unrestored in saved.all_unrestored() {
                    let command = unrestored.by_hand(serial, shell).unwrap();
                    assert!(command.starts_with(&begin), "{command}");
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_monkey_that_was_ended_is_not_said_to_run() {
        let end = Command::script(END_MONKEY).arg("77");
        let hangs = |command: &str| {
            let mut script = service(&format!("shell,v2,raw:{command}"));
            script.push(Step::Hang);
            script
        };
        let put = "settings put system user_rotation 0";
        let sleep = press("KEYCODE_SLEEP");
        for (settings, interrupted, left) in [
            (1, hangs(put), "user_rotation (was 0), the screen (was off)"),
            (0, hangs(sleep.text()), "the screen (was off)"),
            (
                0,
                hangs(end.text()),
                "monkey (77) might still be running, the screen (was off)",
            ),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let journals = Journals::in_directory(directory.path()).unwrap();
            let mut saved = noted();
            saved.settings.truncate(settings);
            saved.monkey = Some(77);
            let mut scripts = vec![
                features("shell_v2"),
                answered("getprop ro.serialno", "R5\n"),
            ];
            if !left.contains("monkey") {
                scripts.push(answered(end.text(), "ended\n"));
            }
            scripts.push(interrupted);
            let script = Scripted::new(scripts);
            let error = put_back(&script.phone(), &journals, &saved).await;
            assert_eq!(script.complaints(), Vec::<String>::new());
            let error = error.unwrap_err();
            let text = error.to_string();
            assert!(text.ends_with(&format!("; not restored: {left}")), "{text}");
            let hints = error.facts().hints.join("; ");
            assert_eq!(hints.contains("pkill"), left.contains("monkey"), "{hints}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_that_is_not_taken_keeps_no_other_from_being_put_back() {
        let directory = tempfile::tempdir().unwrap();
        let journals = Journals::in_directory(directory.path()).unwrap();
        let strange = format!("\u{1b}{}", "9".repeat(99));
        let mut saved = noted();
        saved.settings.truncate(2);
        saved.settings[0].value = Some(strange.clone());
        saved.screen_off = false;
        journals.note(&saved).unwrap();
        let script = Scripted::new([
            features("shell_v2"),
            answered("getprop ro.serialno", "R5\n"),
            answered(
                &format!("settings put system user_rotation '{strange}'"),
                "",
            ),
            answered("settings get system user_rotation", "1\n"),
            answered("settings delete system accelerometer_rotation", ""),
            answered("settings get system accelerometer_rotation", "null\n"),
        ]);
        let error = put_back(&script.phone(), &journals, &saved).await;
        assert_eq!(script.complaints(), Vec::<String>::new());
        let error = error.unwrap_err();
        let text = error.to_string();
        let nines = "9".repeat(MAX_TOLD - 1);
        assert!(
            text.ends_with(&format!(
                "user_rotation is 1; not restored: user_rotation (was \u{fffd}{nines}…)"
            )),
            "{text}"
        );
        // A command with unprintable characters cannot be typed.
        assert_eq!(error.facts().hints, [""; 0]);
        assert!(!error.help().unwrap().contains("manually"));
        assert_eq!(journals.of("R5").unwrap(), Some(saved));
    }

    #[tokio::test(start_paused = true)]
    async fn settings_of_another_phone_are_not_put_back() {
        let directory = tempfile::tempdir().unwrap();
        let journals = Journals::in_directory(directory.path()).unwrap();
        let script = Scripted::new([
            features("shell_v2"),
            answered("getprop ro.serialno", "R6\n"),
        ]);
        let error = put_back(&script.phone(), &journals, &noted()).await;
        assert_eq!(script.complaints(), Vec::<String>::new());
        assert_eq!(error.unwrap_err().kind(), "other-device");
    }

    #[test]
    fn emulators_of_two_servers_have_their_own_journals() {
        let directory = tempfile::tempdir().unwrap();
        let journals = Journals::in_directory(directory.path()).unwrap();
        let host = "h".repeat(MAX_NAME_BYTES);
        let saved = |port: u16| Saved {
            serial: "emulator-5554".to_owned(),
            server: format!("{host}:{port}"),
            hardware_serial: "EMULATOR34X1X5X0".to_owned(),
            ..noted()
        };
        let [one, other] = [5037, 5038].map(saved);
        journals.note(&one).unwrap();
        assert_eq!(journals.of(&other.phone()).unwrap(), None);
        let _held = journals.lock(&one.phone()).unwrap();
        journals.lock(&other.phone()).unwrap();
        journals.note(&other).unwrap();
        assert_eq!(journals.of(&one.phone()).unwrap(), Some(one));
    }

    #[test]
    fn two_do_not_change_one_phone() {
        let directory = tempfile::tempdir().unwrap();
        let journals = Journals::in_directory(directory.path()).unwrap();
        let held = journals.lock("a").unwrap();
        let busy = journals.lock("a").err().map(|error| error.kind());
        assert_eq!(busy, Some("provoke-busy"));
        journals.lock("b").unwrap();
        drop(held);
        journals.lock("a").unwrap();
    }
}
