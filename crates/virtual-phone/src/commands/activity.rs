//! am: starts, stops and trims apps.

use super::packages::take_user;
use super::refusals::{bad_option, exception, missing};
use super::{Arguments, BadOption, Cmd, Done, Halt, refuse};
use crate::app_actions::AppAction;
use crate::foreground::{self, Launch, UI_HIDDEN};
use crate::history::Event;
use crate::packages::Package;
use crate::process::Process;
use crate::screen::Why;
use crate::tracing;

/// Returns the package of `PKG/.Activity` or `PKG`.
pub(super) fn package_of(cmd: &Cmd, component: &str) -> Option<Package> {
    let name = component.split('/').next().unwrap_or(component);
    cmd.kernel.state().package(name).cloned()
}

pub(super) fn am(cmd: &mut Cmd) -> Done {
    let mut args = cmd.args();
    let given = args.iter().any(|a| a == "--user");
    let user = take_user(&mut args);
    let Some((verb, rest)) = args.split_first() else {
        return cmd.end(1, "Activity manager (activity) commands:\n");
    };
    // Without --user, it applies to every user.
    let only = if given { user } else { None };
    match verb.as_str() {
        "get-current-user" => cmd.answer("0\n"),
        "start" => start(cmd, rest, user.unwrap_or(0)),
        "dumpheap" => super::dumpheap::dumpheap(cmd, rest, user.unwrap_or(0)),
        "force-stop" | "kill" | "crash" => {
            end(cmd, verb, rest.last().ok_or_else(|| missing(verb))?, only);
            Ok(0)
        }
        "broadcast" => {
            // The app's own receiver, which makes it allocate until memory runs out.
            if rest.contains(&"com.example.app.RUN_OUT_OF_MEMORY".to_owned()) {
                tracing::run_out(&cmd.kernel);
            }
            cmd.answer("Broadcasting: Intent { flg=0x400000 }\nBroadcast completed: result=0\n")
        }
        "send-trim-memory" => trim(cmd, rest, only),
        // Compaction took a UID before Android 14.
        "compact" | "freeze" | "unfreeze" if cmd.kernel.spec.android >= 14 => {
            freeze(cmd, verb, rest)
        }
        other => cmd.end(255, &format!("Unknown command: {other}\n")),
    }
}

/// Ends processes of a package.
fn end(cmd: &Cmd, verb: &str, name: &str, user: Option<u32>) {
    cmd.kernel.change(|state, now| match verb {
        "force-stop" => {
            let why = Why {
                subreason: (21, "FORCE STOP"),
                description: format!("stop {name} due to from pid {}", cmd.pid).into(),
                ..Why::new(10, "USER REQUESTED", "")
            };
            foreground::stop(state, name, user, why, None, now);
        }
        // Only background processes that are safe to kill.
        "kill" => {
            let why = Why::new(13, "OTHER KILLS BY SYSTEM", "kill background");
            foreground::stop(state, name, user, why, Some(500), now);
        }
        // A PID or a package: if a package has several processes, the last one crashes.
        _ => {
            let fits = |p: &&Process| match name.parse::<u32>() {
                Ok(pid) => p.app().is_some() && p.pid == pid,
                Err(_) => p.is_of(name) && p.is_app_of(user),
            };
            let found = state.processes.iter().filter(fits).map(|p| p.pid).max();
            let what = "android.app.RemoteServiceException$CrashedByAdbException: \
                        shell-induced crash";
            if let Some(pid) = found {
                foreground::crash(state, pid, what, now);
            }
        }
    });
}

/// Returns whether an app's process has this name or PID.
fn is_called(process: &Process, name: &str) -> bool {
    process.name() == name || process.pid.to_string() == name
}

/// Runs `send-trim-memory PROCESS LEVEL`. Levels only rise while an app is not visible, and levels
/// for invisible apps are refused for the app in front.
fn trim(cmd: &mut Cmd, rest: &[String], user: Option<u32>) -> Done {
    let [name, level] = rest else {
        return Err(missing("send-trim-memory"));
    };
    let level = match level.as_str() {
        "RUNNING_MODERATE" => 5,
        "RUNNING_LOW" => 10,
        "RUNNING_CRITICAL" => 15,
        "HIDDEN" => UI_HIDDEN,
        "BACKGROUND" => 40,
        "MODERATE" => 60,
        "COMPLETE" => 80,
        other => match other.parse() {
            Ok(level) if cmd.kernel.spec.android >= 12 => level,
            _ => return refuse(255, format!("Error: Unknown level option: {other}")),
        },
    };
    let refusal = cmd.kernel.change(|state, now| {
        let mut all = state.processes.iter();
        let found = all.find(|p| p.is_app_of(user) && is_called(p, name));
        let Some((pid, score)) = found.map(|p| (p.pid, p.oom_score_adj)) else {
            return Some(format!("Unknown process: {name}"));
        };
        let deeds = &mut state.screen.deeds;
        let kind = match deeds.trim_level(pid, now.boot) >= level {
            true => "higher trim level than current level",
            false if level >= 40 && score <= 100 => "background trim level on a foreground process",
            false => {
                deeds.note(pid, now.boot, AppAction::Trimmed(level));
                return None;
            }
        };
        Some(format!("Unable to set a {kind}"))
    });
    match refusal {
        None => Ok(0),
        Some(what) => {
            let what = format!("java.lang.IllegalArgumentException: {what}");
            Err(exception(cmd, "send-trim-memory", &what))
        }
    }
}

fn freeze(cmd: &mut Cmd, verb: &str, rest: &[String]) -> Done {
    let Some(name) = rest.iter().rev().find(|a| !a.starts_with('-')) else {
        return Ok(255);
    };
    let found = cmd.kernel.change(|state, now| {
        let all = state.processes.select(|p| is_called(p, name));
        for before in all.iter().filter(|_| verb != "compact") {
            if let Some(p) = state.processes.get_mut(before.pid) {
                p.frozen = verb == "freeze";
                let event = Event::Asleep(p.frozen || p.idle || p.stopped);
                cmd.kernel.memory.note(state, before, now.boot, event);
            }
        }
        !all.is_empty()
    });
    if !found {
        return refuse(255, format!("Error: could not find process {name}"));
    }
    Ok(0)
}

/// Intent of a command line.
struct Intent {
    action: Option<String>,
    data: Option<String>,
    categories: Vec<String>,
    flags: Option<String>,
    package: Option<String>,
    component: Option<String>,
    wait: bool,
    clear_task: bool,
}

impl Intent {
    fn parse(args: &[String]) -> Result<Intent, Halt> {
        let args = Arguments::split(args, "-W -a: -d: -c: -n: -p: -f:").map_err(bad_option)?;
        if let Some(word) = args.rest.first() {
            return Err(bad_option(BadOption::Unknown(word.clone())));
        }
        let value = |option| args.value(option).map(str::to_owned);
        let flags = args.value("-f").map(|text| {
            let hex = text.strip_prefix("0x");
            let flags = hex.map_or(text.parse(), |h| u32::from_str_radix(h, 16));
            flags.map_err(|_| Halt::refused(255, format!("Error: Bad flags: {text}")))
        });
        let flags = flags.transpose()?;
        Ok(Intent {
            action: value("-a"),
            data: value("-d"),
            categories: args.values("-c").map(str::to_owned).collect(),
            flags: flags.map(|flags| format!("0x{flags:x}")),
            package: value("-p"),
            component: value("-n"),
            wait: args.has("-W"),
            clear_task: flags.is_some_and(|flags| flags & 0x8000 != 0),
        })
    }

    fn text(&self) -> String {
        let mut words = Vec::new();
        words.extend(self.action.as_ref().map(|a| format!("act={a}")));
        if !self.categories.is_empty() {
            words.push(format!("cat=[{}]", self.categories.join(",")));
        }
        words.extend(self.data.as_ref().map(|d| format!("dat={d}")));
        words.extend(self.flags.as_ref().map(|f| format!("flg={f}")));
        words.extend(self.package.as_ref().map(|p| format!("pkg={p}")));
        words.extend(self.component.as_ref().map(|c| format!("cmp={c}")));
        format!("Intent {{ {} }}", words.join(" "))
    }

    /// Returns package and class of the activity to start.
    fn resolve(&self, cmd: &Cmd, user: u32) -> Option<(Package, String)> {
        let settings = "android.settings.SETTINGS";
        let name = match (&self.component, &self.package) {
            (Some(component), _) => component.clone(),
            (None, Some(package)) => package.clone(),
            (None, None) if self.action.as_deref() == Some(settings) => {
                "com.android.settings".to_owned()
            }
            (None, None) => return None,
        };
        let package = package_of(cmd, &name).filter(|p| p.users.contains(&user))?;
        let main = package.activity?;
        let is_link = self.action.as_deref() == Some("android.intent.action.VIEW");
        let class = match (is_link, &self.data) {
            (true, Some(data)) => link_activity(package.name, data)?,
            _ => main,
        };
        // `PKG/.Class` or `PKG/PKG.Class`; a package alone means its launcher activity.
        let named = name.split_once('/').map(|(_, named)| named);
        let is_there = named.is_none_or(|named| {
            let short = named.strip_prefix(package.name).unwrap_or(named);
            short == class || short == main
        });
        is_there.then(|| (package, class.to_owned()))
    }
}

/// Returns the activity of an app that opens a link.
fn link_activity(package: &str, uri: &str) -> Option<&'static str> {
    let opens = match package {
        "com.example.app" => {
            uri.starts_with("https://www.example.com/") || uri.starts_with("example:")
        }
        "com.example.browser" => uri.starts_with("https:") || uri.starts_with("http:"),
        _ => false,
    };
    opens.then_some(".ui.DetailActivity")
}

fn start(cmd: &mut Cmd, rest: &[String], user: u32) -> Done {
    let intent = Intent::parse(rest)?;
    if intent.component.is_none() && intent.package.is_none() && intent.action.is_none() {
        return refuse(1, "Error: Intent is empty");
    }
    cmd.out(&format!("Starting: {}\n", intent.text()))?;
    let Some((package, class)) = intent.resolve(cmd, user) else {
        // Old releases report it only on stderr.
        let status = u8::from(cmd.kernel.spec.android >= 11);
        let text = match &intent.component {
            Some(component) => {
                format!("Error type 3\nError: Activity class {{{component}}} does not exist.")
            }
            None => {
                let text = intent.text();
                format!("Error: Activity not started, unable to resolve {text}")
            }
        };
        return refuse(status, text);
    };
    let launch = cmd.kernel.change(|state, now| {
        foreground::start(state, &package, user, &class, intent.clear_task, now)
    });
    match launch {
        Launch::Hot => cmd.err(
            "Warning: Activity not started, its current task has been brought to the front\n",
        )?,
        Launch::Nothing => cmd.err(
            "Warning: Activity not started, intent has been delivered to currently running \
             top-most instance.\n",
        )?,
        Launch::Cold | Launch::Warm => {}
    }
    if intent.wait {
        let (word, ms) = match launch {
            Launch::Cold => ("COLD", 412),
            Launch::Warm => ("WARM", 96),
            Launch::Hot => ("HOT", 51),
            Launch::Nothing => ("UNKNOWN (0)", 0),
        };
        cmd.wait(ms)?;
        cmd.out(&format!(
            "Status: ok\nLaunchState: {word}\nActivity: {}/{class}\nTotalTime: {ms}\nWaitTime: {}\nComplete\n",
            package.name,
            ms + 3
        ))?;
    }
    Ok(0)
}
