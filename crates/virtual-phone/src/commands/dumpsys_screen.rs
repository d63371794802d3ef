//! Screen reports of dumpsys: the activities of each task, the activity in front, windows, and
//! exits of processes.

use super::Cmd;
use crate::screen::{Activity, Exit, Task};
use crate::state::State;
use crate::{foreground, init};

/// Formats `ActivityRecord{…}` for this release.
fn record(android: u32, task: &Task, activity: &Activity) -> String {
    let (hash, user, package) = (activity.record, task.user, &task.package);
    let (class, id) = (&activity.class, task.id);
    match android {
        15.. => format!("ActivityRecord{{{hash:x} u{user} {package}/{class}}} t{id}}}"),
        _ => format!("ActivityRecord{{{hash:x} u{user} {package}/{class} t{id}}}"),
    }
}

fn alive(state: &State, task: &Task, activity: &Activity) -> bool {
    init::main_process(state, &task.package, task.user) == Some(activity.pid)
}

/// `dumpsys activity activities`.
pub(super) fn activities(cmd: &Cmd) -> String {
    let android = cmd.kernel.spec.android;
    let state = cmd.kernel.state();
    let mut out = "ACTIVITY MANAGER ACTIVITIES (dumpsys activity activities)\n\
                   Display #0 (activities from top to bottom):\n"
        .to_owned();
    let front = foreground::front(&state);
    for task in &state.screen.tasks {
        let visible = front.is_some_and(|f| f.id == task.id);
        let (id, package, user) = (task.id, &task.package, task.user);
        let count = task.activities.len();
        match android {
            10 => out.push_str(&format!(
                "\n  Stack #{id}: type=standard mode=fullscreen\n    isSleeping={}\n    * TaskRecord{{{:x} #{id} A={package} U={user} StackId={id} sz={count}}}\n",
                !state.screen_on,
                id * 0x3_5131
            )),
            _ => out.push_str(&format!(
                "  * Task{{{:x} #{id} type=standard A={}:{package} U={user} visible={visible} mode=fullscreen translucent={} sz={count}}}\n",
                id * 0x3_5131,
                10_000 + id,
                !visible
            )),
        }
        if let Some(top) = task.top().filter(|_| visible) {
            let key = if android <= 11 {
                "mResumedActivity: "
            } else {
                "topResumedActivity="
            };
            out.push_str(&format!("    {key}{}\n", record(android, task, top)));
        }
        for (n, activity) in task.activities.iter().enumerate().rev() {
            let word = match (visible && n + 1 == count, alive(&state, task, activity)) {
                (true, true) => "RESUMED",
                (false, true) => "STOPPED",
                (_, false) => "DESTROYED",
            };
            out.push_str(&format!(
                "    * Hist #{n}: {}\n      packageName={package} processName={package}\n      app={}\n      state={word} stopped={} finishing=false\n",
                record(android, task, activity),
                match alive(&state, task, activity) {
                    true => format!("ProcessRecord{{{:x} {}:{package}/u{user}}}", activity.pid * 77, activity.pid),
                    false => "null".to_owned(),
                },
                word != "RESUMED"
            ));
        }
    }
    let resumed = front.and_then(|task| Some(record(android, task, task.top()?)));
    let resumed = resumed.unwrap_or_else(|| "null".to_owned());
    out.push_str(&match android {
        10 | 11 => format!("\n  ResumedActivity: {resumed}\n"),
        _ => format!("\n  ResumedActivity: {resumed}\n  topDisplayFocusedRootTask=Task{{1c2d #1 type=standard}}\n"),
    });
    out
}

/// `dumpsys activity top`: each visible activity with its app's description.
pub(super) fn top(cmd: &Cmd) -> String {
    let android = cmd.kernel.spec.android;
    let state = cmd.kernel.state();
    let mut out = String::new();
    for task in state.screen.tasks.iter().take(1) {
        let Some(top) = task.top() else { continue };
        let (package, class, user) = (&task.package, &top.class, task.user);
        let head = match android {
            10 => format!("TASK {package} id={} userId={user}", task.id),
            _ => format!("TASK 10{}:{package} id={} userId={user}", task.id, task.id),
        };
        let shown = foreground::front(&state).is_some();
        match alive(&state, task, top) {
            true => out.push_str(&format!(
                "{head}\n  ACTIVITY {package}/{class} {:x} pid={}\n    Local Activity {:x} State:\n      mResumed={shown} mStopped={} mFinished=false\n      mChangingConfigurations=false\n      mCurrentConfig={{1.0 310mcc260mnc [en_US] ldltr sw411dp rot{}}}\n    View Hierarchy:\n      DecorView@{:x}[{}]\n",
                top.record,
                top.pid,
                top.object,
                !shown,
                state.screen.rotation,
                top.object ^ 0x5a5a,
                class.trim_start_matches('.'),
            )),
            false => out.push_str(&format!(
                "{head}\n  ACTIVITY {package}/{class} {:x} pid=(not running)\n",
                top.record
            )),
        }
    }
    out
}

/// `dumpsys window`.
pub(super) fn windows(cmd: &Cmd) -> String {
    let state = cmd.kernel.state();
    let focus = match foreground::front(&state) {
        Some(task) => {
            let class = task.top().map_or("", |a| &a.class);
            let (package, user) = (&task.package, task.user);
            format!("Window{{4c0de u{user} {package}/{package}{class}}}")
        }
        None if state.screen_on => "Window{5afe0 u0 NotificationShade}".to_owned(),
        None => "null".to_owned(),
    };
    format!(
        "WINDOW MANAGER POLICY STATE (dumpsys window policy)\n    isKeyguardShowing={locked}\n\
         WINDOW MANAGER WINDOWS (dumpsys window windows)\n  mCurrentFocus={focus}\n  mRotation={rotation}\n",
        locked = state.screen.locked,
        rotation = state.screen.rotation,
    )
}

/// `dumpsys activity exit-info [PKG]`, since Android 11.
pub(super) fn exits(cmd: &Cmd, package: Option<&String>) -> String {
    let mut out = "ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)\n".to_owned();
    let state = cmd.kernel.state();
    let exits = &state.screen.exits;
    let package_of = |e: &'_ Exit| e.last.app().map_or("", |(name, _)| name).to_owned();
    let mut names: Vec<String> = exits.iter().map(package_of).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        if package.is_some_and(|wanted| *wanted != name) {
            continue;
        }
        out.push_str(&format!("  package: {name}\n"));
        let of = exits.iter().filter(|e| package_of(e) == name);
        for (n, exit) in of.enumerate() {
            let (last, at, why, status) = (&exit.last, exit.at, &exit.why, exit.status);
            let time = crate::logcat::timestamp(at.real);
            let was = cmd.kernel.memory.ledger(&state, last, at.boot);
            let (pss, rss) = was.map_or((0, 0), |l| (l.rows().total_pss(), l.pages().rss()));
            out.push_str(&format!(
                "    Historical Process Exit for uid={uid}\n        ApplicationExitInfo #{n}:\n          timestamp=2026-{time} pid={pid} realUid={uid} packageUid={uid} definingUid={uid} user={user}\n          process={process} reason={} ({}) subreason={} ({}) status={status}\n          importance=100 pss={pss}KB rss={rss}KB description={} state=empty trace=null\n",
                why.reason.0,
                why.reason.1,
                why.subreason.0,
                why.subreason.1,
                why.description,
                uid = last.uid,
                user = last.app().map_or(0, |(_, user)| user),
                pid = last.pid,
                process = last.name(),
            ));
        }
    }
    out
}
