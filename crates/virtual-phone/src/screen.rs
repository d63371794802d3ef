//! What is on a phone's screen: tasks and their activities, rotation, power, keyguard, the
//! settings that say so. Owns what keys, rotations and starts do to activities and to the
//! processes behind them; the commands that ask for it are elsewhere.

use std::collections::BTreeMap;

use super::clock::BootNs;
use super::deeds::{AllDeeds, Deed};
use super::kernel::{Kernel, State};
use super::packages::Package;
use super::population;
use super::process::{Pid, Process, Role, SIGKILL, SIGSEGV};
use super::spec::{PhoneSpec, ScreenState};

/// The home screen.
pub(crate) const LAUNCHER: &str = "com.google.android.apps.nexuslauncher";
/// What the phone tells an app that left the screen.
pub(crate) const UI_HIDDEN: u32 = 20;
/// How willingly the system kills the app that was in front before.
const PREVIOUS_APP: i32 = 700;
const HOME_APP: i32 = 600;
const CACHED_APP: i32 = 900;

/// One activity of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Activity {
    /// Identity of the system's record: it outlives the app's process.
    pub(crate) record: u32,
    /// Identity of the app's object …
    pub(crate) object: u32,
    /// … in this process; gone with it.
    pub(crate) pid: Pid,
    /// `.ui.FeedActivity`.
    pub(crate) class: String,
}

/// A task: activities on top of one another, the last one visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) id: u32,
    pub(crate) package: String,
    pub(crate) user: u32,
    pub(crate) activities: Vec<Activity>,
}

/// What an app's activities do when the screen turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnRotation {
    /// They are destroyed and created anew.
    Recreated,
    /// `android:configChanges` names what changes: they are only told.
    Told,
    /// `android:screenOrientation` is fixed: nothing changes for them.
    Fixed,
    /// They are created anew, and a bug ends the app at the third time.
    CrashesAtThird,
}

/// A moment on both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) boot: BootNs,
    pub(crate) real: u64,
}

impl Now {
    pub(crate) fn of(kernel: &Kernel) -> Now {
        Now {
            boot: kernel.clock.boot(),
            real: kernel.clock.real(),
        }
    }
}

/// How an app's process ended, for `exit-info`.
#[derive(Debug, Clone)]
pub(crate) struct Exit {
    pub(crate) real_ns: u64,
    pub(crate) pid: Pid,
    pub(crate) uid: u32,
    pub(crate) process: String,
    pub(crate) package: String,
    pub(crate) user: u32,
    pub(crate) reason: (u32, &'static str),
    pub(crate) subreason: (u32, &'static str),
    /// As it was when it ended, and when that was on the boot clock.
    pub(crate) last: Process,
    pub(crate) boot: BootNs,
    /// The signal, where one ended it.
    pub(crate) status: u8,
    pub(crate) description: String,
}

/// Exits that are remembered.
const MAX_EXITS: usize = 64;

/// How a start ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Launch {
    /// The process was started for it.
    Cold,
    /// The activity was created in a process that ran.
    Warm,
    /// The task came to the front as it was.
    Hot,
    /// It was in front already.
    Nothing,
}

/// Everything about the screen but the processes.
pub(crate) struct Screen {
    /// Front first.
    pub(crate) tasks: Vec<Task>,
    pub(crate) rotation: u32,
    /// Whether the lock screen shows.
    pub(crate) locked: bool,
    /// Whether it comes when the screen goes off.
    pub(crate) locks: bool,
    /// When the list of recent apps was asked for.
    pub(crate) recents: Option<BootNs>,
    /// Whether a PIN is needed to leave it.
    pub(crate) pin: bool,
    settings: BTreeMap<(String, String), String>,
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
        Screen {
            tasks: Vec::new(),
            rotation: 0,
            locked: matches!(spec.screen, ScreenState::Locked | ScreenState::Pin),
            locks: matches!(spec.screen, ScreenState::Locked | ScreenState::Pin),
            recents: None,
            pin: spec.screen == ScreenState::Pin,
            settings: settings.into(),
            exits: Vec::new(),
            deeds: AllDeeds::default(),
            identities: spec.seed as u32,
            task_ids: 10,
        }
    }

    /// After a reboot: settings stay, and a PIN is asked for.
    pub(crate) fn reboot(&mut self) {
        self.tasks.clear();
        self.deeds.clear();
        self.locked = self.pin;
        self.turn_as_set();
    }

    /// The next hash code of an object.
    fn identity(&mut self) -> u32 {
        self.identities = self.identities.wrapping_add(1);
        let mixed = u64::from(self.identities).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 36) as u32
    }

    pub(crate) fn setting(&self, space: &str, key: &str) -> Option<&str> {
        let key = (space.to_owned(), key.to_owned());
        self.settings.get(&key).map(String::as_str)
    }

    /// All of one space.
    pub(crate) fn settings_of<'a>(
        &'a self,
        space: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        let of = self.settings.iter().filter(move |((s, _), _)| s == space);
        of.map(|((_, key), value)| (key.as_str(), value.as_str()))
    }

    /// Where the settings want the screen to be: a phone that lies on a desk stands upright.
    fn turn_as_set(&mut self) -> bool {
        let number = |key| self.setting("system", key).and_then(|v| v.parse().ok());
        let wanted = match number("accelerometer_rotation").unwrap_or(0) {
            0 => number("user_rotation").filter(|r| *r < 4).unwrap_or(0),
            _ => 0,
        };
        std::mem::replace(&mut self.rotation, wanted) != wanted
    }

    fn note_destroyed(&mut self, pid: Pid, count: usize, at: BootNs) {
        (0..count).for_each(|_| self.deeds.note(pid, at, Deed::Destroyed));
    }
}

impl Task {
    pub(crate) fn top(&self) -> Option<&Activity> {
        self.activities.last()
    }
}

/// What an app does when the screen turns.
pub(crate) fn on_rotation(package: &str) -> OnRotation {
    match package {
        "com.example.browser" => OnRotation::Told,
        "com.example.chat" | LAUNCHER => OnRotation::Fixed,
        "com.example.closed" => OnRotation::CrashesAtThird,
        _ => OnRotation::Recreated,
    }
}

/// Shows what a phone that has booted shows.
pub(crate) fn begin(state: &mut State) {
    let front = state.foreground.clone();
    for package in [LAUNCHER, &front] {
        let mut installed = state.packages.iter();
        let class = installed.find(|p| p.name == package);
        let Some(class) = class.and_then(|p| p.activity) else {
            continue;
        };
        let pid = population::main_process(state, package, 0);
        let frozen = |pid| state.processes.get(pid).is_some_and(|p| p.frozen);
        if let Some(pid) = pid
            && !frozen(pid)
            && state.screen.tasks.iter().all(|t| t.package != package)
        {
            let activity = state.screen.new_activity(class, pid);
            state.screen.push_task(package, 0, activity);
        }
    }
}

impl Screen {
    fn new_activity(&mut self, class: &str, pid: Pid) -> Activity {
        Activity {
            record: self.identity(),
            object: self.identity(),
            pid,
            class: class.to_owned(),
        }
    }

    fn push_task(&mut self, package: &str, user: u32, activity: Activity) {
        self.task_ids += 1;
        let task = Task {
            id: self.task_ids,
            package: package.to_owned(),
            user,
            activities: vec![activity],
        };
        self.tasks.insert(0, task);
    }

    /// Whether anything on it can be used.
    pub(crate) fn is_usable(state: &State) -> bool {
        state.screen_on && !state.screen.locked
    }

    /// What is in front, where the screen shows it.
    pub(crate) fn front(state: &State) -> Option<&Task> {
        state
            .screen
            .tasks
            .first()
            .filter(|_| Screen::is_usable(state))
    }
}

/// Brings the task of a package to the front, or starts one.
pub(crate) fn start(
    state: &mut State,
    package: &Package,
    user: u32,
    class: &str,
    clear_task: bool,
    now: Now,
) -> Launch {
    let mine = |t: &Task| t.package == package.name && t.user == user;
    let was_running = population::main_process(state, package.name, user);
    let was_front = state.screen.tasks.first().is_some_and(mine);
    population::start_package(state, package, user, now.boot);
    let Some(pid) = population::main_process(state, package.name, user) else {
        return Launch::Nothing;
    };
    if was_running.is_none() {
        state.screen.deeds.forget(pid);
    }
    let screen = &mut state.screen;
    let launch = match screen.tasks.iter().position(mine) {
        None => {
            let activity = screen.new_activity(class, pid);
            screen.push_task(package.name, user, activity);
            Launch::Warm
        }
        Some(at) => {
            let mut task = screen.tasks.remove(at);
            let alive = task.activities.iter().filter(|a| a.pid == pid).count();
            let is_main = package.activity == Some(class);
            let is_top = task.top().is_some_and(|top| top.class == class);
            let launch = if clear_task {
                screen.note_destroyed(pid, alive, now.boot);
                task.activities = vec![screen.new_activity(class, pid)];
                Launch::Warm
            } else if !is_main && !is_top {
                // A link opens on top of what is there.
                task.activities.push(screen.new_activity(class, pid));
                Launch::Warm
            } else if alive == 0 {
                let object = screen.identity();
                if let Some(top) = task.activities.last_mut() {
                    (top.object, top.pid) = (object, pid);
                }
                Launch::Warm
            } else if was_front {
                Launch::Nothing
            } else {
                Launch::Hot
            };
            screen.tasks.insert(0, task);
            launch
        }
    };
    front_changed(state, now);
    match was_running {
        None => Launch::Cold,
        Some(_) => launch,
    }
}

/// HOME.
pub(crate) fn home(state: &mut State, now: Now) {
    if !Screen::is_usable(state) {
        return;
    }
    let launcher = |t: &Task| t.package == LAUNCHER;
    if let Some(at) = state.screen.tasks.iter().position(launcher) {
        let task = state.screen.tasks.remove(at);
        state.screen.tasks.insert(0, task);
    }
    front_changed(state, now);
}

/// BACK: what is on top of the task goes; since Android 12 the last activity of a task stays,
/// behind the home screen.
pub(crate) fn back(state: &mut State, android: u32, now: Now) {
    let Some(task) = Screen::front(state).filter(|t| t.package != LAUNCHER) else {
        return;
    };
    let last = task.activities.len() <= 1;
    let owner = population::main_process(state, &task.package, task.user);
    if !last || android < 12 {
        let popped = state
            .screen
            .tasks
            .first_mut()
            .and_then(|t| t.activities.pop());
        if let (Some(popped), Some(pid)) = (popped, owner)
            && popped.pid == pid
        {
            state.screen.note_destroyed(pid, 1, now.boot);
        }
        state.screen.tasks.retain(|t| !t.activities.is_empty());
    }
    if last {
        home(state, now);
    }
    front_changed(state, now);
}

/// Recents, twice: the app before comes to the front.
pub(crate) fn previous_app(state: &mut State, now: Now) {
    if !Screen::is_usable(state) {
        return;
    }
    let tasks = &mut state.screen.tasks;
    let other = |t: &Task| t.package != LAUNCHER;
    if let Some(at) = tasks.iter().skip(1).position(other) {
        let task = tasks.remove(at + 1);
        tasks.insert(0, task);
    }
    front_changed(state, now);
}

/// Sets or deletes a setting; the screen follows. Whether it was there before.
pub(crate) fn set(
    state: &mut State,
    space: &str,
    key: &str,
    value: Option<&str>,
    now: Now,
) -> bool {
    let at = (space.to_owned(), key.to_owned());
    let had = match value {
        Some(value) => state.screen.settings.insert(at, value.to_owned()),
        None => state.screen.settings.remove(&at),
    };
    if state.screen.turn_as_set() {
        turned(state, now);
    }
    had.is_some()
}

/// The screen has turned: what is visible is created anew, unless its app says otherwise.
fn turned(state: &mut State, now: Now) {
    let Some(task) = Screen::front(state) else {
        return;
    };
    let behaviour = on_rotation(&task.package);
    let Some(pid) = population::main_process(state, &task.package, task.user) else {
        return;
    };
    if matches!(behaviour, OnRotation::Told | OnRotation::Fixed) {
        return;
    }
    let before = state.screen.deeds.destroyed(pid, now.boot);
    if behaviour == OnRotation::CrashesAtThird && before >= 2 {
        let what = "java.lang.NullPointerException: Attempt to invoke virtual method 'int \
                    java.lang.String.length()' on a null object reference";
        crash(state, pid, what, now);
        return;
    }
    state.screen.note_destroyed(pid, 1, now.boot);
    let object = state.screen.identity();
    let task = state.screen.tasks.first_mut();
    if let Some(top) = task.and_then(|t| t.activities.last_mut()) {
        (top.object, top.pid) = (object, pid);
    }
}

/// An app's process ends on an exception that nobody caught: the log says so, and what was on
/// top is gone.
pub(crate) fn crash(state: &mut State, pid: Pid, what: &str, now: Now) {
    let Some(process) = state.processes.get(pid).cloned() else {
        return;
    };
    for line in [
        "FATAL EXCEPTION: main",
        &format!("Process: {}, PID: {pid}", process.name()),
        what,
        "\tat android.os.Handler.dispatchMessage(Handler.java:106)",
    ] {
        let at = (now.boot, now.real);
        state
            .log
            .add(at, (pid, process.uid), 'E', "AndroidRuntime", line);
    }
    if let Role::App { package, user, .. } = &process.role {
        let mine = |t: &&mut Task| t.package == *package && t.user == *user;
        if let Some(task) = state.screen.tasks.iter_mut().find(mine) {
            task.activities.pop();
        }
    }
    state.screen.tasks.retain(|t| !t.activities.is_empty());
    let why = Why {
        reason: (4, "APP CRASH(EXCEPTION)"),
        subreason: (0, "UNKNOWN"),
        description: "crash",
    };
    end(state, &process, why, now);
    front_changed(state, now);
}

/// A process is ended by a signal that nobody asked the system for: an app's is remembered with
/// it, any other just ends.
pub(crate) fn killed(state: &mut State, pid: Pid, signal: u8, now: Now) {
    let Some(process) = state.processes.get(pid).cloned() else {
        return;
    };
    let why = Why {
        reason: match signal {
            SIGSEGV => (5, "APP CRASH(NATIVE)"),
            _ => (2, "SIGNALED"),
        },
        subreason: (0, "UNKNOWN"),
        description: match signal {
            SIGSEGV => "crash",
            _ => "null",
        },
    };
    match process.role {
        Role::App { .. } => end_by(state, &process, why, signal, now),
        _ => state.processes.end(pid, 128 + signal),
    }
}

/// Why a process is ended, in the words of `exit-info`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Why<'a> {
    pub(crate) reason: (u32, &'static str),
    pub(crate) subreason: (u32, &'static str),
    pub(crate) description: &'a str,
}

/// Ends a process of an app and remembers why.
fn end(state: &mut State, process: &Process, why: Why<'_>, now: Now) {
    end_by(state, process, why, SIGKILL, now);
}

fn end_by(state: &mut State, process: &Process, why: Why<'_>, signal: u8, now: Now) {
    let Role::App { package, user, .. } = &process.role else {
        return;
    };
    state.processes.end(process.pid, 128 + signal);
    let name = process.name();
    let text = match why.reason.0 {
        2 | 4 | 5 => format!("Process {name} (pid {}) has died: fg  TOP", process.pid),
        _ => format!(
            "Killing {}:{name}/u{user}: {}",
            process.pid, why.description
        ),
    };
    let at = (now.boot, now.real);
    let server = (1_204, 1_000);
    state.log.add(at, server, 'I', "ActivityManager", &text);
    let exit = Exit {
        real_ns: now.real,
        pid: process.pid,
        uid: process.uid,
        process: name.to_owned(),
        package: package.clone(),
        user: *user,
        reason: why.reason,
        subreason: why.subreason,
        last: process.clone(),
        boot: now.boot,
        // Of exceptions and of what the system ends itself there is none.
        status: match why.reason.0 {
            2 | 5 => signal,
            _ => 0,
        },
        description: why.description.to_owned(),
    };
    let screen = &mut state.screen;
    screen.exits.insert(0, exit);
    screen.exits.truncate(MAX_EXITS);
    // Of who is gone and no longer told of, nothing is asked.
    let (exits, processes) = (&screen.exits, &state.processes);
    let told = |pid| exits.iter().any(|exit| exit.pid == pid);
    screen
        .deeds
        .retain(|pid| processes.get(pid).is_some() || told(pid));
}

/// Ends all processes of a package, and what is on the screen, as force-stop does; or, from a
/// score on, only those that the system could miss.
pub(crate) fn stop(
    state: &mut State,
    package: &str,
    user: Option<u32>,
    why: Why<'_>,
    only_from: Option<i32>,
    now: Now,
) {
    let is_of = |p: &&Process| {
        matches!(&p.role, Role::App { package: name, user: u, .. }
            if name == package && user.is_none_or(|user| user == *u))
            && only_from.is_none_or(|score| p.oom_score_adj >= score)
    };
    let doomed: Vec<Process> = state.processes.iter().filter(is_of).cloned().collect();
    for process in &doomed {
        end(state, process, why, now);
    }
    if only_from.is_none() {
        let mine = |t: &Task| t.package == package && user.is_none_or(|user| user == t.user);
        state.screen.tasks.retain(|t| !mine(t));
    }
    front_changed(state, now);
}

/// The app in front has changed, perhaps: who left hears that it is hidden, and the system
/// would rather kill it; who came is as if it never had been asked to save.
fn front_changed(state: &mut State, now: Now) {
    let Some(front) = state.screen.tasks.first() else {
        return;
    };
    state.foreground.clone_from(&front.package);
    let mut adj = PREVIOUS_APP;
    let tasks = state.screen.tasks.clone();
    for (place, task) in tasks.iter().enumerate() {
        let Some(pid) = population::main_process(state, &task.package, task.user) else {
            continue;
        };
        let level = state.screen.deeds.trim_level(pid, now.boot);
        if place == 0 && level > 0 {
            state.screen.deeds.note(pid, now.boot, Deed::Trimmed(0));
        }
        if place > 0 && level < UI_HIDDEN && task.package != LAUNCHER {
            state
                .screen
                .deeds
                .note(pid, now.boot, Deed::Trimmed(UI_HIDDEN));
        }
        let own = match place {
            0 => 0,
            _ if task.package == LAUNCHER => HOME_APP,
            _ => std::mem::replace(&mut adj, CACHED_APP),
        };
        let uid = state.processes.get(pid).map(|p| p.uid);
        let all: Vec<Pid> = state
            .processes
            .iter()
            .filter(|p| Some(p.uid) == uid && matches!(p.role, Role::App { .. }))
            .map(|p| p.pid)
            .collect();
        for each in all {
            if let Some(p) = state.processes.get_mut(each) {
                p.frozen &= place > 0;
                // What serves the app in front lives with it.
                p.oom_score_adj = match (each == pid, place) {
                    (true, _) => own,
                    (false, 0) => 0,
                    (false, _) => p.oom_score_adj.max(200),
                };
            }
        }
    }
}
