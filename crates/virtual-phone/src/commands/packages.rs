//! pm, cmd and simpleperf_app_runner: installed packages and their profiling permissions.

use super::{Cmd, Done};
use crate::installer;
use crate::packages::{InstallOptions, InstallSession, Package, Profiling};

/// Number of the first installation session.
const FIRST_SESSION: u32 = 1_405_000_001;

fn installed(cmd: &Cmd, user: Option<u32>) -> Vec<Package> {
    let state = cmd.kernel.state();
    let all = state.packages.iter();
    all.filter(|p| user.is_none_or(|u| p.users.contains(&u)))
        .cloned()
        .collect()
}

/// Removes `--user N` (or `all`, `current`) from the arguments and returns the user.
pub(super) fn take_user(args: &mut Vec<String>) -> Option<u32> {
    let at = args.iter().position(|a| a == "--user")?;
    args.remove(at);
    if at >= args.len() {
        return None;
    }
    match args.remove(at).as_str() {
        "all" => None,
        "current" => Some(0),
        n => n.parse().ok(),
    }
}

pub(super) fn pm(cmd: &mut Cmd) -> Done {
    let mut args = cmd.args();
    let user = take_user(&mut args);
    let Some((verb, rest)) = args.split_first() else {
        cmd.out("Package manager (package) commands:\n  help\n    Print this help text.\n")?;
        return Ok(1);
    };
    match (verb.as_str(), rest) {
        ("path", [name, ..]) => {
            let found = installed(cmd, Some(user.unwrap_or(0)));
            match found.iter().find(|p| p.name == *name) {
                Some(p) => {
                    cmd.answer(&format!("package:{}\n", p.apk()))
                }
                None => Ok(1),
            }
        }
        ("list", [what, rest @ ..]) => match what.as_str() {
            "packages" | "package" => list(cmd, rest, user),
            "users" => {
                cmd.answer("Users:\n\tUserInfo{0:Owner:c13} running\n\tUserInfo{10:Work profile:1030} running\n")
            }
            other => {
                cmd.refuse(255, &format!("Error: unknown list type '{other}'\n"))
            }
        },
        ("resolve-activity", rest) => {
            let name = rest.last().cloned().unwrap_or_default();
            let found = installed(cmd, Some(user.unwrap_or(0)));
            match found
                .iter()
                .find(|p| p.name == name)
                .and_then(|p| p.activity)
            {
                Some(activity) => cmd.out(&format!(
                    "priority=0 preferredOrder=0 match=0x108000\n{name}/{activity}\n"
                ))?,
                None => cmd.out("No activity found\n")?,
            }
            Ok(0)
        }
        ("install", rest) => install(cmd, rest),
        ("install-create", rest) => {
            let options = options(rest);
            let mut state = cmd.kernel.state();
            let id = state
                .installs
                .keys()
                .last()
                .map_or(FIRST_SESSION, |id| id + 1);
            let session = InstallSession {
                options,
                parts: Vec::new(),
            };
            state.installs.insert(id, session);
            drop(state);
            cmd.out(&format!("Success: created install session [{id}]\n"))?;
            Ok(0)
        }
        ("install-write", rest) => install_write(cmd, rest),
        ("install-commit" | "install-abandon", [id, ..]) => {
            let id = id.parse().unwrap_or(0);
            let session = cmd.kernel.state().installs.remove(&id);
            match session {
                None => no_session(cmd, id),
                Some(_) if verb == "install-abandon" => succeeded(cmd),
                Some(session) => commit(cmd, &session),
            }
        }
        ("uninstall", rest) => {
            let name = rest.last().cloned().unwrap_or_default();
            let (now, spec) = (cmd.kernel.clock.now(), &cmd.kernel.spec);
            let removed = installer::uninstall(&mut cmd.kernel.state(), spec, &name, now);
            cmd.kernel.events.notify();
            match removed {
                true => succeeded(cmd),
                false => failed(cmd, "DELETE_FAILED_INTERNAL_ERROR"),
            }
        }
        ("compile", rest) => compile(cmd, rest),
        (verb, _) => {
            cmd.refuse(255, &format!("Unknown command: {verb}\n"))
        }
    }
}

fn succeeded(cmd: &Cmd) -> Done {
    cmd.answer("Success\n")
}

fn failed(cmd: &Cmd, why: &str) -> Done {
    cmd.out(&format!("Failure [{why}]\n"))?;
    Ok(1)
}

fn no_session(cmd: &Cmd, id: u32) -> Done {
    cmd.refuse(255, &format!(
        "\nException occurred while executing:\njava.lang.SecurityException: Caller has no access \
         to session {id}\n"
    ))
}

fn options(args: &[String]) -> InstallOptions {
    InstallOptions {
        downgrade: args.iter().any(|arg| arg == "-d"),
    }
}

/// `pm install [-r] [-t] [-d] PATH`.
fn install(cmd: &Cmd, args: &[String]) -> Done {
    let Some(path) = args.last().filter(|arg| !arg.starts_with('-')) else {
        return cmd.refuse(
            1,
            "Error: must either specify a package size or an APK file\n",
        );
    };
    let session = InstallSession {
        options: options(args),
        parts: match cmd.kernel.read_all(&cmd.cred, &cmd.cwd, path) {
            Ok(bytes) => vec![bytes],
            Err(_) => return unreadable(cmd, path),
        },
    };
    read_slowly(cmd, &session.parts[0])?;
    commit(cmd, &session)
}

/// Takes the time that a part needs.
fn read_slowly(cmd: &Cmd, part: &[u8]) -> Result<(), super::Halt> {
    match installer::seconds(part) {
        0 => Ok(()),
        seconds => super::wait(cmd, seconds.saturating_mul(1000)),
    }
}

fn unreadable(cmd: &Cmd, path: &str) -> Done {
    cmd.refuse(1, &format!("Error: failed to open {path}: open failed\n"))
}

/// `pm install-write -S BYTES SESSION NAME PATH`.
fn install_write(cmd: &Cmd, args: &[String]) -> Done {
    let [flag, size, id, _, path] = args else {
        return cmd.refuse(
            1,
            "Error: must specify a size, a session, a name and a path\n",
        );
    };
    let Ok(bytes) = cmd.kernel.read_all(&cmd.cred, &cmd.cwd, path) else {
        return unreadable(cmd, path);
    };
    let len = bytes.len();
    if flag != "-S" || size.parse() != Ok(len) {
        return failed(cmd, "INSTALL_FAILED_INTERNAL_ERROR: size does not match");
    }
    read_slowly(cmd, &bytes)?;
    let id = id.parse().unwrap_or(0);
    let mut state = cmd.kernel.state();
    let Some(session) = state.installs.get_mut(&id) else {
        drop(state);
        return no_session(cmd, id);
    };
    session.parts.push(bytes);
    drop(state);
    cmd.answer(&format!("Success: streamed {len} bytes\n"))
}

fn commit(cmd: &Cmd, session: &InstallSession) -> Done {
    let (now, spec) = (cmd.kernel.clock.now(), &cmd.kernel.spec);
    let installed = installer::read(&session.parts).and_then(|apk| {
        installer::install(&mut cmd.kernel.state(), spec, &apk, session.options, now)
    });
    cmd.kernel.events.notify();
    match installed {
        Ok(()) => succeeded(cmd),
        Err(why) => failed(cmd, &why),
    }
}

/// `cmd package compile -m MODE [-f] PACKAGE`.
fn compile(cmd: &Cmd, args: &[String]) -> Done {
    const MODES: [&str; 5] = ["verify", "quicken", "speed-profile", "speed", "everything"];
    let mode = args.iter().skip_while(|arg| *arg != "-m").nth(1);
    let mode = mode.cloned().unwrap_or_default();
    if !MODES.contains(&mode.as_str()) {
        return cmd.refuse(
            1,
            &format!("Error: \"{mode}\" is not a valid compilation filter.\n"),
        );
    }
    let name = args.last().cloned().unwrap_or_default();
    let mut state = cmd.kernel.state();
    let package = state.packages.iter_mut().find(|p| p.name == name);
    let is_known = package.is_some();
    if let Some(package) = package {
        package.compiled = mode;
    }
    drop(state);
    match is_known {
        true => succeeded(cmd),
        false => failed(cmd, &format!("package {name} could not be compiled")),
    }
}

/// `pm list packages`: the filter is a substring, as on every phone.
fn list(cmd: &mut Cmd, rest: &[String], user: Option<u32>) -> Done {
    let args = cmd.flags_of(rest, "3iU")?;
    for p in installed(cmd, Some(user.unwrap_or(0))) {
        let hit = args
            .rest
            .first()
            .is_none_or(|f| p.name.contains(f.as_str()));
        if !hit || (args.has('3') && p.system) {
            continue;
        }
        let mut line = format!("package:{}", p.name);
        if args.has('i') {
            line.push_str(&format!("  installer={}", p.installer.unwrap_or("null")));
        }
        if args.has('U') {
            line.push_str(&format!(" uid:{}", p.uid(user.unwrap_or(0))));
        }
        cmd.out(&format!("{line}\n"))?;
    }
    Ok(0)
}

/// `cmd SERVICE …`.
pub(super) fn cmd(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let Some((service, rest)) = args.split_first() else {
        return cmd.refuse(20, "cmd: No service specified\n");
    };
    match service.as_str() {
        "package" => {
            let pm = std::iter::once("pm".to_owned());
            cmd.exec(pm.chain(rest.iter().cloned()).collect())
        }
        "deviceidle" => super::conditions::deviceidle(cmd, rest),
        other => cmd.refuse(20, &format!("cmd: Can't find service: {other}\n")),
    }
}

/// `simpleperf_app_runner PACKAGE --show-app-type` of Android 12 and later.
pub(super) fn simpleperf_app_runner(cmd: &mut Cmd) -> Done {
    let mut args = cmd.args();
    let user = take_user(&mut args).unwrap_or(0);
    let Some(name) = args.iter().find(|a| !a.starts_with("--")) else {
        return cmd.refuse(1, "simpleperf_app_runner: no package name\n");
    };
    let package = installed(cmd, Some(user))
        .into_iter()
        .find(|p| p.name == *name);
    let Some(package) = package else {
        return cmd.refuse(
            1,
            &format!("simpleperf_app_runner: failed to find package {name}\n"),
        );
    };
    if !args.iter().any(|a| a == "--show-app-type") {
        return cmd.refuse(
            1,
            "simpleperf_app_runner: unsupported on this virtual phone\n",
        );
    }
    cmd.answer(match package.profiling {
        Profiling::Debuggable => "debuggable\n",
        Profiling::Shell => "profileable\n",
        Profiling::Platform | Profiling::Closed => "non_profileable\n",
    })
}
