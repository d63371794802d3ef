//! Programs that run other programs: sh, su, run-as.

use super::{Cmd, Done};
use crate::access::Cred;
use crate::access::has_su;
use crate::shell::Shell;

pub(super) fn sh(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let mut i = 0;
    match args.first().map(String::as_str) {
        Some("-") => i = 1,
        Some(option) if option.starts_with('-') && option != "-c" => {
            cmd.err(&format!("sh: {option}: unknown option\n"))?;
            return Ok(1);
        }
        _ => {}
    }
    if args.get(i).is_some_and(|a| a == "-c") {
        i += 1;
        let Some(script) = args.get(i) else {
            cmd.err("sh: -c requires an argument\n")?;
            return Ok(2);
        };
        let name = args.get(i + 1).cloned().unwrap_or_else(|| "sh".to_owned());
        let rest = args
            .get(i + 2..)
            .map(<[String]>::to_vec)
            .unwrap_or_default();
        let shell = Shell::new(cmd, name, rest);
        return Ok(shell.run_script(script)?);
    }
    match args.get(i) {
        Some(path) => {
            let script = match cmd.kernel.read_all(&cmd.cred, &cmd.cwd, path) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(errno) => {
                    cmd.err(&format!("sh: {path}: {}\n", errno.text()))?;
                    return Ok(127);
                }
            };
            let shell = Shell::new(cmd, path.clone(), args[i + 1..].to_vec());
            Ok(shell.run_script(&script)?)
        }
        None => {
            let shell = Shell::new(cmd, "sh".to_owned(), Vec::new());
            Ok(shell.run_stdin()?)
        }
    }
}

/// Replaces this program by `argv` under another identity.
fn become_user(cmd: &mut Cmd, cred: Cred, argv: Vec<String>) -> Done {
    if let Some(p) = cmd.kernel.state().processes.get_mut(cmd.pid) {
        p.uid = cred.uid;
        p.domain = cred.domain.to_owned();
    }
    cmd.cred = cred;
    cmd.exec(argv)
}

/// `su [USER] [-c] COMMAND…`, as on userdebug builds.
pub(super) fn su(cmd: &mut Cmd) -> Done {
    if !has_su(&cmd.kernel.spec) {
        cmd.err("sh: su: inaccessible or not found\n")?;
        return Ok(127);
    }
    let mut args = cmd.args();
    let mut cred = Cred::root();
    if let Some(user) = args.first() {
        let uid = match user.as_str() {
            "root" => Some(0),
            "shell" => Some(2000),
            "system" => Some(1000),
            "-" | "-c" => None,
            other => other.parse().ok(),
        };
        match uid {
            Some(uid) => {
                cred.uid = uid;
                cred.gid = uid;
                args.remove(0);
            }
            None if user.starts_with('-') => {}
            None => {
                cmd.err(&format!("su: invalid uid/gid '{user}'\n"))?;
                return Ok(1);
            }
        }
    }
    if args.first().is_some_and(|a| a == "-c") {
        args[0] = "-c".to_owned();
        args.insert(0, "sh".to_owned());
    }
    if args.is_empty() {
        args.push("sh".to_owned());
    }
    become_user(cmd, cred, args)
}

/// `run-as PACKAGE COMMAND…`: only for debuggable apps.
pub(super) fn run_as(cmd: &mut Cmd) -> Done {
    let mut args = cmd.args();
    let mut user = 0;
    if args.first().is_some_and(|a| a == "--user") && args.len() > 1 {
        user = args[1].parse().unwrap_or(0);
        args.drain(..2);
    }
    if args.is_empty() {
        cmd.err("run-as: usage: run-as <package-name> [--user <uid>] <command> [<args>]\n")?;
        return Ok(1);
    }
    let name = args.remove(0);
    let package = {
        let state = cmd.kernel.state();
        state.packages.iter().find(|p| p.name == name).cloned()
    };
    let Some(package) = package.filter(|p| p.users.contains(&user)) else {
        cmd.err(&format!("run-as: unknown package: {name}\n"))?;
        return Ok(1);
    };
    if package.appid < 10_000 {
        cmd.err(&format!("run-as: package not an application: {name}\n"))?;
        return Ok(1);
    }
    if !package.debuggable() {
        cmd.err(&format!("run-as: package not debuggable: {name}\n"))?;
        return Ok(1);
    }
    let uid = package.uid(user);
    let cred = Cred {
        uid,
        gid: uid,
        groups: vec![uid],
        domain: "runas_app",
    };
    cmd.cwd = format!("/data/user/{user}/{name}");
    if args.is_empty() {
        args.push("sh".to_owned());
    }
    become_user(cmd, cred, args)
}
