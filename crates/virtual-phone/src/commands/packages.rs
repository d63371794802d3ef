//! pm, cmd and simpleperf_app_runner: installed packages and their profiling permissions.

use super::{Cmd, Done, Halt, refuse};
use crate::installer;
use crate::packages::{InstallSession, Package, Profiling};
use crate::state::State;

/// Number of the first installation session.
const FIRST_SESSION: u32 = 1_405_000_001;

/// Returns the packages of a user, by default of the first one.
fn installed(cmd: &Cmd, user: Option<u32>) -> Vec<Package> {
    let mut packages = cmd.kernel.state().packages.clone();
    packages.retain(|p| p.users.contains(&user.unwrap_or(0)));
    packages
}

/// Returns a package of a user, by default of the first one.
pub(super) fn installed_as(cmd: &Cmd, user: Option<u32>, name: &str) -> Option<Package> {
    let package = cmd.kernel.state().package(name).cloned();
    package.filter(|p| p.users.contains(&user.unwrap_or(0)))
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
        return cmd.end(1, "Package manager (package) commands:\n");
    };
    match (verb.as_str(), rest) {
        ("path", [name, ..]) => match installed_as(cmd, user, name) {
            Some(p) => cmd.answer(&format!("package:{}\n", p.apk())),
            None => Ok(1),
        },
        ("list", [what, rest @ ..]) => match what.as_str() {
            "packages" | "package" => list(cmd, rest, user),
            "users" => {
                cmd.answer("Users:\n\tUserInfo{0:Owner:c13} running\n\tUserInfo{10:Work profile:1030} running\n")
            }
            other => refuse(255, format!("Error: unknown list type '{other}'")),
        },
        ("resolve-activity", rest) => {
            let name = rest.last().map_or("", String::as_str);
            match installed_as(cmd, user, name).and_then(|p| p.activity) {
                Some(activity) => cmd.answer(&format!(
                    "priority=0 preferredOrder=0 match=0x108000\n{name}/{activity}\n"
                )),
                None => cmd.answer("No activity found\n"),
            }
        }
        ("install", rest) => install(cmd, rest),
        ("install-create", rest) => {
            let id = cmd.kernel.change(|state, _| {
                let id = state.installs.last_key_value();
                let id = id.map_or(FIRST_SESSION, |(id, _)| id + 1);
                state.installs.insert(id, InstallSession::new(rest));
                id
            });
            cmd.answer(&format!("Success: created install session [{id}]\n"))
        }
        ("install-write", rest) => install_write(cmd, rest),
        ("install-commit" | "install-abandon", [id, ..]) => {
            let id = id.parse().unwrap_or(0);
            let session = cmd.kernel.state().installs.remove(&id);
            match session {
                None => Err(no_session(id)),
                Some(_) if verb == "install-abandon" => succeeded(cmd),
                Some(session) => commit(cmd, &session),
            }
        }
        ("uninstall", rest) => {
            let name = rest.last().cloned().unwrap_or_default();
            let spec = &cmd.kernel.spec;
            let remove = |state: &mut State, now| installer::uninstall(state, spec, &name, now);
            match cmd.kernel.change(remove) {
                true => succeeded(cmd),
                false => failed(cmd, "DELETE_FAILED_INTERNAL_ERROR"),
            }
        }
        ("compile", rest) => compile(cmd, rest),
        (verb, _) => refuse(255, format!("Unknown command: {verb}")),
    }
}

fn succeeded(cmd: &Cmd) -> Done {
    cmd.answer("Success\n")
}

fn failed(cmd: &Cmd, why: &str) -> Done {
    cmd.end(1, &format!("Failure [{why}]\n"))
}

fn no_session(id: u32) -> Halt {
    Halt::refused(
        255,
        format!(
            "\nException occurred while executing:\njava.lang.SecurityException: Caller has no access \
         to session {id}"
        ),
    )
}

/// `pm install [-r] [-t] [-d] PATH`.
fn install(cmd: &Cmd, args: &[String]) -> Done {
    let path = args.last().filter(|arg| !arg.starts_with('-'));
    let missing = || {
        Halt::refused(
            1,
            "Error: must either specify a package size or an APK file",
        )
    };
    let part = read_slowly(cmd, path.ok_or_else(missing)?)?;
    let mut session = InstallSession::new(args);
    session.parts.push(part);
    commit(cmd, &session)
}

/// Reads a part, in the time that it needs.
fn read_slowly(cmd: &Cmd, path: &str) -> Result<Vec<u8>, Halt> {
    let part = cmd.kernel.read_all(&cmd.cred, &cmd.cwd, path);
    let failed = |_| Halt::refused(1, format!("Error: failed to open {path}: open failed"));
    let part = part.map_err(failed)?;
    cmd.wait(installer::seconds(&part).saturating_mul(1000))?;
    Ok(part)
}

/// `pm install-write -S BYTES SESSION NAME PATH`.
fn install_write(cmd: &Cmd, args: &[String]) -> Done {
    let [flag, size, id, _, path] = args else {
        return refuse(
            1,
            "Error: must specify a size, a session, a name and a path",
        );
    };
    let bytes = read_slowly(cmd, path)?;
    let len = bytes.len();
    if flag != "-S" || size.parse() != Ok(len) {
        return failed(cmd, "INSTALL_FAILED_INTERNAL_ERROR: size does not match");
    }
    let id = id.parse().unwrap_or(0);
    cmd.kernel.change(|state, _| {
        let session = state.installs.get_mut(&id);
        let session = session.ok_or_else(|| no_session(id))?;
        session.parts.push(bytes);
        Ok::<(), Halt>(())
    })?;
    cmd.answer(&format!("Success: streamed {len} bytes\n"))
}

fn commit(cmd: &Cmd, session: &InstallSession) -> Done {
    let (spec, downgrade) = (&cmd.kernel.spec, session.downgrade);
    let installed = installer::read(&session.parts).and_then(|apk| {
        let change = |state: &mut State, now| installer::install(state, spec, &apk, downgrade, now);
        cmd.kernel.change(change)
    });
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
        let text = format!("Error: \"{mode}\" is not a valid compilation filter.");
        return refuse(1, text);
    }
    let name = args.last().cloned().unwrap_or_default();
    let compiled = cmd.kernel.change(|state, _| {
        let mut packages = state.packages.iter_mut();
        packages.find(|p| p.name == name)?.compiled = mode;
        Some(())
    });
    match compiled {
        Some(()) => succeeded(cmd),
        None => failed(cmd, &format!("package {name} could not be compiled")),
    }
}

/// `pm list packages`: the filter is a substring, as on every phone.
fn list(cmd: &mut Cmd, rest: &[String], user: Option<u32>) -> Done {
    let args = cmd.options_of(rest, "-3 -i -U")?;
    let filter = args.rest.first().map_or("", String::as_str);
    for p in installed(cmd, user) {
        if !p.name.contains(filter) || (args.has("-3") && p.system) {
            continue;
        }
        let mut line = format!("package:{}", p.name);
        if args.has("-i") {
            line.push_str(&format!("  installer={}", p.installer.unwrap_or("null")));
        }
        if args.has("-U") {
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
        return refuse(20, "cmd: No service specified");
    };
    match service.as_str() {
        "package" => {
            let pm = std::iter::once("pm".to_owned());
            cmd.exec(pm.chain(rest.iter().cloned()).collect())
        }
        "deviceidle" => super::conditions::deviceidle(cmd, rest),
        other => refuse(20, format!("cmd: Can't find service: {other}")),
    }
}

/// `simpleperf_app_runner PACKAGE --show-app-type` of Android 12 and later.
pub(super) fn simpleperf_app_runner(cmd: &mut Cmd) -> Done {
    let mut args = cmd.args();
    let user = take_user(&mut args);
    let [name, "--show-app-type"] = args.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        return cmd.only("PACKAGE --show-app-type");
    };
    let text = || format!("simpleperf_app_runner: failed to find package {name}");
    let package = installed_as(cmd, user, name).ok_or_else(|| Halt::refused(1, text()))?;
    cmd.answer(match package.profiling {
        Profiling::Debuggable => "debuggable\n",
        Profiling::Shell => "profileable\n",
        Profiling::Platform | Profiling::Closed => "non_profileable\n",
    })
}
