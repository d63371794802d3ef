//! am, monkey, input, wm, settings: starting and stopping apps, and what they show.

use super::packages::take_user;
use super::{Cmd, Done};
use crate::phone::packages::Package;
use crate::phone::population;
use crate::phone::process::Role;
use crate::phone::tracing;

/// The package of `PKG/.Activity` or `PKG`.
fn package_of(cmd: &Cmd, component: &str) -> Option<Package> {
    let name = component.split('/').next().unwrap_or(component);
    let state = cmd.kernel.state();
    state.packages.iter().find(|p| p.name == name).cloned()
}

pub(super) fn am(cmd: &mut Cmd) -> Done {
    let mut args = cmd.args();
    // Its options have an order of their own.
    if let Some((verb, rest)) = args.split_first()
        && verb == "dumpheap"
    {
        return super::dumpheap::dumpheap(cmd, rest);
    }
    let given = args.iter().any(|a| a == "--user");
    let user = take_user(&mut args);
    let Some((verb, rest)) = args.split_first() else {
        cmd.out("Activity manager (activity) commands:\n  help\n      Print this help text.\n")?;
        return Ok(1);
    };
    match verb.as_str() {
        "get-current-user" => {
            cmd.out("0\n")?;
            Ok(0)
        }
        "start" | "start-activity" => start(cmd, rest, user.unwrap_or(0)),
        "force-stop" => {
            let Some(name) = rest.last() else {
                cmd.err("Error: Argument expected after \"force-stop\"\n")?;
                return Ok(255);
            };
            // Without --user it means every user.
            let only = if given { user } else { None };
            population::stop_package(&mut cmd.kernel.state(), name, only);
            cmd.kernel.events.notify();
            Ok(0)
        }
        "kill" => {
            if let Some(name) = rest.last() {
                let background = {
                    let state = cmd.kernel.state();
                    state.foreground != *name
                };
                if background {
                    population::stop_package(&mut cmd.kernel.state(), name, None);
                    cmd.kernel.events.notify();
                }
            }
            Ok(0)
        }
        "broadcast" => {
            // The app's own receiver, which has it allocate until there is no more.
            if rest
                .iter()
                .any(|a| a == "com.example.app.RUN_OUT_OF_MEMORY")
            {
                tracing::run_out(&cmd.kernel);
            }
            cmd.out("Broadcasting: Intent { flg=0x400000 }\nBroadcast completed: result=0\n")?;
            Ok(0)
        }
        "send-trim-memory" | "compact" | "freeze" | "unfreeze" => freeze(cmd, verb, rest),
        "get-config" => {
            cmd.out("config: mcc310-en-rUS-ldltr-sw411dp-v34\n")?;
            Ok(0)
        }
        "start-user" | "switch-user" | "instrument" | "profile" => {
            cmd.err(&format!(
                "Error: {verb} is not supported on this virtual phone\n"
            ))?;
            Ok(1)
        }
        other => {
            cmd.err(&format!("Unknown command: {other}\n"))?;
            Ok(255)
        }
    }
}

fn freeze(cmd: &mut Cmd, verb: &str, rest: &[String]) -> Done {
    let Some(name) = rest.iter().rev().find(|a| !a.starts_with('-')) else {
        return Ok(255);
    };
    let found = {
        let mut state = cmd.kernel.state();
        let pids: Vec<u32> = state
            .processes
            .iter()
            .filter(|p| p.name() == name || p.pid.to_string() == *name)
            .map(|p| p.pid)
            .collect();
        for pid in &pids {
            if let Some(p) = state.processes.get_mut(*pid)
                && matches!(verb, "freeze" | "unfreeze")
            {
                p.frozen = verb == "freeze";
            }
        }
        !pids.is_empty()
    };
    cmd.kernel.events.notify();
    if !found {
        cmd.err(&format!("Error: could not find process {name}\n"))?;
        return Ok(255);
    }
    Ok(0)
}

fn start(cmd: &mut Cmd, rest: &[String], user: u32) -> Done {
    let value = |flag: &str| {
        let at = rest.iter().position(|a| a == flag)?;
        rest.get(at + 1)
    };
    let component = value("-n")
        .or_else(|| value("-p"))
        .or_else(|| rest.last().filter(|a| !a.starts_with('-')));
    let Some(component) = component.cloned() else {
        cmd.err("Error: Intent is empty\n")?;
        return Ok(1);
    };
    let package = package_of(cmd, &component).filter(|p| p.users.contains(&user));
    cmd.out(&format!("Starting: Intent {{ cmp={component} }}\n"))?;
    let Some(package) = package.filter(|p| p.activity.is_some()) else {
        cmd.err(&format!(
            "Error type 3\nError: Activity class {{{component}}} does not exist.\n"
        ))?;
        return Ok(1);
    };
    let stops = rest.iter().any(|a| a == "-S");
    launch(cmd, &package, user, stops);
    if rest.iter().any(|a| a == "-W") {
        cmd.out("Status: ok\nLaunchState: COLD\nTotalTime: 412\nWaitTime: 415\nComplete\n")?;
    }
    Ok(0)
}

/// Brings a package to the foreground, starting its processes where they don't run.
fn launch(cmd: &Cmd, package: &Package, user: u32, stop_first: bool) {
    let now = cmd.kernel.clock.boot();
    let mut state = cmd.kernel.state();
    if stop_first {
        population::stop_package(&mut state, package.name, Some(user));
    }
    state.foreground = package.name.to_owned();
    population::start_package(&mut state, package, user, now);
    let pids: Vec<u32> = state
        .processes
        .iter()
        .filter(|p| matches!(&p.role, Role::App { package: name, .. } if *name == package.name))
        .map(|p| p.pid)
        .collect();
    for pid in pids {
        if let Some(p) = state.processes.get_mut(pid) {
            p.frozen = false;
            p.oom_score_adj = 0;
        }
    }
    drop(state);
    cmd.kernel.events.notify();
}

pub(super) fn monkey(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let at = args.iter().position(|a| a == "-p");
    let name = at.and_then(|i| args.get(i + 1)).cloned();
    let count = args.last().and_then(|a| a.parse::<u32>().ok());
    let (Some(name), Some(count)) = (name, count) else {
        cmd.err("usage: monkey [-p ALLOWED_PACKAGE] COUNT\n")?;
        return Ok(255);
    };
    let Some(package) = package_of(cmd, &name).filter(|p| p.activity.is_some()) else {
        cmd.out("** No activities found to run, monkey aborted.\n")?;
        return Ok(252);
    };
    launch(cmd, &package, 0, false);
    cmd.out(&format!("Events injected: {count}\n## Network stats: elapsed time=12ms (0ms mobile, 0ms wifi, 12ms not connected)\n"))?;
    Ok(0)
}

pub(super) fn input(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let key = args.iter().map(String::as_str).collect::<Vec<_>>();
    let mut state = cmd.kernel.state();
    match key[..] {
        ["keyevent", "KEYCODE_HOME" | "HOME" | "3"] => {
            state.foreground = "com.google.android.apps.nexuslauncher".to_owned();
        }
        ["keyevent", "KEYCODE_POWER" | "POWER" | "26"] => state.screen_on = !state.screen_on,
        ["keyevent", "KEYCODE_WAKEUP" | "WAKEUP" | "224"] => state.screen_on = true,
        ["keyevent", "KEYCODE_SLEEP" | "SLEEP" | "223"] => state.screen_on = false,
        _ => {}
    }
    Ok(0)
}

pub(super) fn wm(cmd: &mut Cmd) -> Done {
    match cmd.args().first().map(String::as_str) {
        Some("size") => cmd.out("Physical size: 1080x2400\n")?,
        Some("density") => cmd.out("Physical density: 420\n")?,
        _ => {}
    }
    Ok(0)
}

pub(super) fn settings(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    if args.first().is_some_and(|a| a == "get") {
        cmd.out("null\n")?;
    }
    Ok(0)
}
