//! Programs that run other programs: sh, su, run-as.

use super::{Cmd, Done, Halt, refuse};
use crate::access::Cred;
use crate::shell::Shell;

pub(super) fn sh(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    match args.first().map(String::as_str) {
        None | Some("-") => {
            let shell = Shell::new(cmd, "sh".to_owned(), Vec::new());
            Ok(shell.run_stdin()?)
        }
        Some("-c") if args.len() > 1 => {
            let name = args.get(2).map_or("sh", String::as_str).to_owned();
            let rest = args.iter().skip(3).cloned().collect();
            let shell = Shell::new(cmd, name, rest);
            Ok(shell.run_script(&args[1])?)
        }
        Some(_) => cmd.only("-c"),
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

/// `su root COMMAND…`, as on userdebug builds.
pub(super) fn su(cmd: &mut Cmd) -> Done {
    match cmd.args().split_first() {
        Some((user, command)) if user == "root" && !command.is_empty() => {
            become_user(cmd, Cred::root(), command.to_vec())
        }
        _ => cmd.only("`su root COMMAND`"),
    }
}

/// `run-as PACKAGE [--user N] COMMAND…`: only for debuggable apps.
pub(super) fn run_as(cmd: &mut Cmd) -> Done {
    let mut args = cmd.args();
    if args.is_empty() {
        return refuse(1, "run-as: usage: run-as <package-name> <command> [<args>]");
    }
    let name = args.remove(0);
    let mut user = 0;
    if args.len() > 1 && args[0] == "--user" {
        user = args[1].parse().unwrap_or(0);
        args.drain(..2);
    }
    let package = super::packages::installed_as(cmd, Some(user), &name);
    let unknown = || Halt::refused(1, format!("run-as: unknown package: {name}"));
    let package = package.ok_or_else(unknown)?;
    if package.appid < 10_000 {
        return refuse(1, format!("run-as: package not an application: {name}"));
    }
    if !package.debuggable() {
        return refuse(1, format!("run-as: package not debuggable: {name}"));
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
