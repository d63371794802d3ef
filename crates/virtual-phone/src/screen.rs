//! Screen of a phone: tasks and their activities, rotation, keyguard, and the related settings.
//! `foreground` owns the effects of keys and starts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::app_actions::{AllDeeds, AppAction};
use super::clock::{BootNs, Now};
use super::process::{Pid, Process};
use super::spec::{PhoneSpec, ScreenState};

/// Package of the home screen.
pub(crate) const LAUNCHER: &str = "com.google.android.apps.nexuslauncher";
/// Namespace of what `deviceidle` disabled, which a reboot enables.
pub(crate) const DOZE: &str = "deviceidle";
/// One activity of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Activity {
    /// Identity of the system's record, which outlives the app's process.
    pub(crate) record: u32,
    /// Identity of the app's object …
    pub(crate) object: u32,
    /// … in this process; it disappears with the process.
    pub(crate) pid: Pid,
    /// Class, such as `.ui.FeedActivity`.
    pub(crate) class: String,
}

/// A task: a stack of activities; the last one is visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) id: u32,
    pub(crate) package: String,
    pub(crate) user: u32,
    pub(crate) activities: Vec<Activity>,
}

/// Reason for the end of a process, in the words of `exit-info`.
#[derive(Debug, Clone)]
pub(crate) struct Why {
    pub(crate) reason: (u32, &'static str),
    pub(crate) subreason: (u32, &'static str),
    pub(crate) description: Cow<'static, str>,
}

impl Why {
    pub(crate) const fn new(code: u32, reason: &'static str, description: &'static str) -> Why {
        Why {
            reason: (code, reason),
            subreason: (0, "UNKNOWN"),
            description: Cow::Borrowed(description),
        }
    }
}

/// End of an app's process, for `exit-info`.
#[derive(Debug, Clone)]
pub(crate) struct Exit {
    /// State of the process and time at its end.
    pub(crate) last: Process,
    pub(crate) at: Now,
    pub(crate) why: Why,
    /// Signal that ended the process, if any.
    pub(crate) status: u8,
}

/// State of the screen, except processes.
pub(crate) struct Screen {
    /// Tasks, front first.
    pub(crate) tasks: Vec<Task>,
    pub(crate) rotation: u32,
    /// Whether the lock screen is shown.
    pub(crate) locked: bool,
    /// Whether the lock screen appears when the screen turns off.
    pub(crate) locks: bool,
    /// Time of the last request for the list of recent apps.
    pub(crate) recents: Option<BootNs>,
    /// Whether unlocking requires a PIN.
    pub(crate) pin: bool,
    pub(crate) settings: BTreeMap<(String, String), String>,
    pub(crate) exits: Vec<Exit>,
    pub(crate) deeds: AllDeeds,
    identities: u32,
    task_ids: u32,
}

impl Screen {
    pub(crate) fn new(spec: &PhoneSpec) -> Screen {
        let settings = [
            ("system", "accelerometer_rotation", "1"),
            ("system", "screen_off_timeout", "60000"),
            ("system", "screen_brightness", "102"),
            ("global", "stay_on_while_plugged_in", "0"),
            ("global", "airplane_mode_on", "0"),
            ("global", "adb_enabled", "1"),
            ("secure", "android_id", "7c0ffee17ea5e57a"),
        ];
        let settings = settings.map(|(space, key, value)| {
            let key = (space.to_owned(), key.to_owned());
            (key, value.to_owned())
        });
        let locks = matches!(spec.screen, ScreenState::Locked | ScreenState::Pin);
        Screen {
            tasks: Vec::new(),
            rotation: 0,
            locked: locks,
            locks,
            recents: None,
            pin: spec.screen == ScreenState::Pin,
            settings: settings.into(),
            exits: Vec::new(),
            deeds: AllDeeds::default(),
            identities: spec.seed as u32,
            task_ids: 10,
        }
    }

    /// Resets the screen after a reboot: settings stay, and a PIN is required.
    pub(crate) fn reboot(&mut self) {
        self.tasks.clear();
        self.deeds.clear();
        self.settings.retain(|(space, _), _| space != DOZE);
        self.locked = self.pin;
        self.turn_as_set();
    }

    /// Returns the next hash code of an object.
    pub(crate) fn identity(&mut self) -> u32 {
        self.identities = self.identities.wrapping_add(1);
        let mixed = u64::from(self.identities).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 36) as u32
    }

    pub(crate) fn setting(&self, space: &str, key: &str) -> Option<&str> {
        let key = (space.to_owned(), key.to_owned());
        self.settings.get(&key).map(String::as_str)
    }

    /// Applies the rotation of the settings; returns whether it changed. With auto-rotation, the
    /// phone is upright, as if it lay on a desk.
    pub(crate) fn turn_as_set(&mut self) -> bool {
        let number = |key| self.setting("system", key).and_then(|v| v.parse().ok());
        let wanted = match number("accelerometer_rotation").unwrap_or(0) {
            0 => number("user_rotation").filter(|r| *r < 4).unwrap_or(0),
            _ => 0,
        };
        std::mem::replace(&mut self.rotation, wanted) != wanted
    }

    pub(crate) fn note_destroyed(&mut self, pid: Pid, count: usize, at: BootNs) {
        (0..count).for_each(|_| self.deeds.note(pid, at, AppAction::Destroyed));
    }
}

impl Task {
    /// Returns whether it is the task of a package, of this user or of any.
    pub(crate) fn is_of(&self, package: &str, user: Option<u32>) -> bool {
        self.package == package && user.is_none_or(|user| user == self.user)
    }

    pub(crate) fn top(&self) -> Option<&Activity> {
        self.activities.last()
    }
}

impl Screen {
    pub(crate) fn new_activity(&mut self, class: &str, pid: Pid) -> Activity {
        Activity {
            record: self.identity(),
            object: self.identity(),
            pid,
            class: class.to_owned(),
        }
    }

    pub(crate) fn push_task(&mut self, package: &str, user: u32, activity: Activity) {
        self.task_ids += 1;
        let task = Task {
            id: self.task_ids,
            package: package.to_owned(),
            user,
            activities: vec![activity],
        };
        self.tasks.insert(0, task);
    }
}
