//! Effects of keys, rotations and starts on the activities on the screen and their processes. The
//! commands that request them are in other modules.

use super::app_actions::AppAction;
use super::clock::Now;
use super::init;
use super::packages::Package;
use super::process::{Pid, Process, SIGKILL, SIGSEGV};
use super::screen::{Exit, LAUNCHER, Task, Why};
use super::state::State;

/// UID of lmkd.
const LMKD: u32 = 1069;
/// `onTrimMemory` level for an app that left the screen.
pub(crate) const UI_HIDDEN: u32 = 20;
/// `oom_score_adj` of the app that was in front before.
const PREVIOUS_APP: i32 = 700;
const HOME_APP: i32 = 600;
const CACHED_APP: i32 = 900;

/// Reaction of an app's activities to a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnRotation {
    /// They are destroyed and recreated.
    Recreated,
    /// `android:configChanges` lists the changes: the activities are only notified.
    Told,
    /// `android:screenOrientation` is fixed: nothing changes for them.
    Fixed,
    /// They are recreated, and a bug ends the app at the third rotation.
    CrashesAtThird,
}

/// Maximum number of stored exits.
const MAX_EXITS: usize = 64;

/// Outcome of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Launch {
    /// The process was started for it.
    Cold,
    /// The activity was created in a running process.
    Warm,
    /// The task came to the front unchanged.
    Hot,
    /// The activity was already in front.
    Nothing,
}

/// Returns the reaction of an app to a rotation.
pub(crate) fn on_rotation(package: &str) -> OnRotation {
    match package {
        "com.example.browser" => OnRotation::Told,
        "com.example.chat" | LAUNCHER => OnRotation::Fixed,
        "com.example.closed" => OnRotation::CrashesAtThird,
        _ => OnRotation::Recreated,
    }
}

/// Shows the screen of a booted phone.
pub(crate) fn begin(state: &mut State) {
    let front = state.foreground.clone();
    for package in [LAUNCHER, &front] {
        let Some(class) = state.package(package).and_then(|p| p.activity) else {
            continue;
        };
        let pid = init::main_process(state, package, 0);
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

/// Returns whether the screen is on and unlocked.
pub(crate) fn is_usable(state: &State) -> bool {
    state.screen_on && !state.screen.locked
}

/// Returns the task in front, if the screen shows it.
pub(crate) fn front(state: &State) -> Option<&Task> {
    state.screen.tasks.first().filter(|_| is_usable(state))
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
    let mine = |t: &Task| t.is_of(package.name, Some(user));
    let was_running = init::main_process(state, package.name, user);
    let was_front = state.screen.tasks.first().is_some_and(mine);
    init::start_package(state, package, user, now.boot);
    let Some(pid) = init::main_process(state, package.name, user) else {
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
                // A link opens on top of the task's activities.
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
    if !is_usable(state) {
        return;
    }
    let launcher = |t: &Task| t.package == LAUNCHER;
    if let Some(at) = state.screen.tasks.iter().position(launcher) {
        let task = state.screen.tasks.remove(at);
        state.screen.tasks.insert(0, task);
    }
    front_changed(state, now);
}

/// BACK: the top activity of the task is destroyed. Since Android 12, the last activity of a task
/// stays, behind the home screen.
pub(crate) fn back(state: &mut State, android: u32, now: Now) {
    let Some(task) = front(state).filter(|t| t.package != LAUNCHER) else {
        return;
    };
    let last = task.activities.len() <= 1;
    let owner = init::main_process(state, &task.package, task.user);
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

/// Recents, twice: the previous app comes to the front.
pub(crate) fn previous_app(state: &mut State, now: Now) {
    if !is_usable(state) {
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

/// Sets or deletes a setting and updates the screen. Returns whether the setting existed before.
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

/// Applies a rotation: visible activities are recreated, unless their app prevents that.
fn turned(state: &mut State, now: Now) {
    let Some(task) = front(state) else {
        return;
    };
    let behaviour = on_rotation(&task.package);
    let Some(pid) = init::main_process(state, &task.package, task.user) else {
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

/// Ends an app's process by an uncaught exception: logs it and removes the activity on top.
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
        let from = (pid, process.uid);
        state.log.add(now, from, 'E', "AndroidRuntime", line);
    }
    if let Some((package, user)) = process.app() {
        let mine = |t: &&mut Task| t.is_of(package, Some(user));
        if let Some(task) = state.screen.tasks.iter_mut().find(mine) {
            task.activities.pop();
        }
    }
    state.screen.tasks.retain(|t| !t.activities.is_empty());
    let why = Why::new(4, "APP CRASH(EXCEPTION)", "crash");
    end(state, &process, why, SIGKILL, now);
    front_changed(state, now);
}

/// Ends a process by a signal that did not come from the system, or stores the end that it brought.
/// The end of an app's process is stored with the signal; others only end.
pub(crate) fn died(state: &mut State, process: &Process, signal: u8, now: Now) {
    let why = match signal {
        SIGSEGV => Why::new(5, "APP CRASH(NATIVE)", "crash"),
        _ => Why::new(2, "SIGNALED", "null"),
    };
    match process.app() {
        Some(_) => end(state, process, why, signal, now),
        None => state.processes.end(process.pid, 128 + signal),
    }
}

/// Ends an app's process as lmkd does, with its line in the log.
pub(crate) fn killed_for_memory(state: &mut State, pid: Pid, now: Now) {
    let Some(process) = state.processes.get(pid).cloned() else {
        return;
    };
    let text = format!(
        "Kill '{}' ({pid}), uid {}, oom_score_adj {} to free 184320kB rss, 0kB swap; reason: \
         low watermark is breached and swap is low",
        process.name(),
        process.uid,
        process.oom_score_adj,
    );
    let lmkd = state.processes.pid_of("/system/bin/lmkd").unwrap_or(0);
    let lmkd = (lmkd, LMKD);
    state.log.add(now, lmkd, 'I', "lowmemorykiller", &text);
    let why = Why::new(3, "LOW_MEMORY", "null");
    end(state, &process, why, SIGKILL, now);
}

/// Ends a process of an app and stores the reason.
fn end(state: &mut State, process: &Process, why: Why, signal: u8, now: Now) {
    let Some((_, user)) = process.app() else {
        return;
    };
    let (name, pid) = (process.name(), process.pid);
    state.processes.end(pid, 128 + signal);
    let text = match why.reason.0 {
        2..=5 => format!("Process {name} (pid {pid}) has died: fg  TOP"),
        _ => format!("Killing {pid}:{name}/u{user}: {}", why.description),
    };
    let server = (1_204, 1_000);
    state.log.add(now, server, 'I', "ActivityManager", &text);
    let exit = Exit {
        last: process.clone(),
        at: now,
        // Exceptions and ends by the system have no signal.
        status: match why.reason.0 {
            2 | 5 => signal,
            _ => 0,
        },
        why,
    };
    let screen = &mut state.screen;
    screen.exits.insert(0, exit);
    screen.exits.truncate(MAX_EXITS);
    // Drop the actions of processes that are gone and no longer listed.
    let (exits, processes) = (&screen.exits, &state.processes);
    let told = |pid| exits.iter().any(|exit| exit.last.pid == pid);
    screen
        .deeds
        .retain(|pid| processes.get(pid).is_some() || told(pid));
}

/// Ends all processes of a package and its activities, as force-stop does; with a minimum score,
/// only the processes that the system could do without.
pub(crate) fn stop(
    state: &mut State,
    package: &str,
    user: Option<u32>,
    why: Why,
    only_from: Option<i32>,
    now: Now,
) {
    let doomed = state.processes.select(|p| {
        p.is_of(package)
            && p.is_app_of(user)
            && only_from.is_none_or(|score| p.oom_score_adj >= score)
    });
    for process in &doomed {
        end(state, process, why.clone(), SIGKILL, now);
    }
    if only_from.is_none() {
        state.screen.tasks.retain(|t| !t.is_of(package, user));
    }
    front_changed(state, now);
}

/// Updates the app in front: the app that left is notified that it is hidden and gets a higher
/// score; the app that came forgets earlier trim requests.
fn front_changed(state: &mut State, now: Now) {
    let Some(front) = state.screen.tasks.first() else {
        return;
    };
    state.foreground.clone_from(&front.package);
    let mut adj = PREVIOUS_APP;
    let tasks = state.screen.tasks.clone();
    for (place, task) in tasks.iter().enumerate() {
        let Some(pid) = init::main_process(state, &task.package, task.user) else {
            continue;
        };
        let level = state.screen.deeds.trim_level(pid, now.boot);
        let deeds = &mut state.screen.deeds;
        if place == 0 && level > 0 {
            deeds.note(pid, now.boot, AppAction::Trimmed(0));
        }
        if place > 0 && level < UI_HIDDEN && task.package != LAUNCHER {
            deeds.note(pid, now.boot, AppAction::Trimmed(UI_HIDDEN));
        }
        let own = match place {
            0 => 0,
            _ if task.package == LAUNCHER => HOME_APP,
            _ => std::mem::replace(&mut adj, CACHED_APP),
        };
        let uid = state.processes.get(pid).map(|p| p.uid);
        let of_app = |p: &&mut Process| Some(p.uid) == uid && p.app().is_some();
        for p in state.processes.iter_mut().filter(of_app) {
            p.frozen &= place > 0;
            // Processes that serve the app in front get its score.
            p.oom_score_adj = match (p.pid == pid, place) {
                (true, _) => own,
                (false, 0) => 0,
                (false, _) => p.oom_score_adj.max(200),
            };
        }
    }
}
