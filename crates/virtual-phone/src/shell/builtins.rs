//! Commands that the shell runs itself.

use super::interpreter::{Flow, Shell};
use crate::fs::{DIRECTORY, normalize};
use crate::process::signal_number;

const BUILTINS: [&str; 19] = [
    ":", "[", "break", "cd", "continue", "echo", "exec", "exit", "export", "false", "kill",
    "print", "pwd", "read", "return", "set", "shift", "trap", "true",
];

impl Shell {
    pub(super) fn is_builtin(name: &str) -> bool {
        BUILTINS.contains(&name)
    }

    /// Runs a builtin; `argv` starts with its name.
    pub(super) fn builtin(&mut self, argv: &[String]) -> Result<u8, Flow> {
        let args = &argv[1..];
        match argv[0].as_str() {
            ":" | "true" => Ok(0),
            "false" => Ok(1),
            "break" => Err(Flow::Break),
            "continue" => Err(Flow::Continue),
            "exit" => Err(Flow::Exit(self.exit_status(args))),
            "return" => Err(Flow::Return(self.exit_status(args))),
            "echo" => match args.strip_prefix(&["-n".to_owned()]) {
                Some(words) => self.print(&words.join(" ")),
                None => self.print(&format!("{}\n", args.join(" "))),
            },
            "print" => {
                let flags = ["-r", "--"].map(str::to_owned);
                let words = args.strip_prefix(&flags).unwrap_or(args);
                self.print(&format!("{}\n", words.join(" ")))
            }
            "[" => {
                let words: Vec<&str> = args.iter().map(String::as_str).collect();
                let held = match words.split_last() {
                    Some((&"]", words)) => self.holds(words),
                    _ => Err("missing ]".to_owned()),
                };
                match held {
                    Ok(yes) => Ok(u8::from(!yes)),
                    Err(error) => self.failed(2, &format!("[: {error}")),
                }
            }
            "cd" => self.change_directory(args),
            "pwd" => self.print(&format!("{}\n", self.cmd.cwd)),
            name @ ("set" | "read" | "trap" | "export") if is_unknown_option(name, args) => {
                self.failed(1, &format!("{name}: {}: not supported", args[0]))
            }
            "export" => {
                for (name, value) in args.iter().filter_map(|arg| arg.split_once('=')) {
                    self.export(name, value.to_owned());
                }
                Ok(0)
            }
            "set" => {
                let words = args.strip_prefix(&["--".to_owned()]).unwrap_or(args);
                self.arguments = words.to_vec();
                Ok(0)
            }
            "shift" => {
                let n = args.first().map_or(Ok(1), |n| n.parse()).unwrap_or(1);
                if n > self.arguments.len() {
                    return self.failed(1, "shift: nothing to shift");
                }
                self.arguments.drain(..n);
                Ok(0)
            }
            "read" => self.read(args),
            "trap" => self.trap(args),
            "kill" => {
                let missed = self.cmd.kernel.kill(&self.cmd.cred, args);
                for (target, why) in &missed {
                    self.complain(&format!("kill: {target}: {why}"));
                }
                self.alive()?;
                Ok(u8::from(!missed.is_empty()))
            }
            _ => Ok(127),
        }
    }

    /// Reports an error and returns the status.
    pub(super) fn failed(&self, status: u8, text: &str) -> Result<u8, Flow> {
        self.complain(text);
        Ok(status)
    }

    fn exit_status(&self, args: &[String]) -> u8 {
        match args.first() {
            Some(text) => text.parse::<i64>().map_or(1, |n| n as u8),
            None => self.status,
        }
    }

    /// Evaluates the words of a `[ … ]`.
    fn holds(&self, words: &[&str]) -> Result<bool, String> {
        let number = |text: &str| {
            let number = text.trim().parse::<i64>();
            number.map_err(|_| format!("{text}: unexpected '{text}'"))
        };
        let entry = |path| {
            self.cmd
                .kernel
                .entry(&self.cmd.cred, &self.cmd.cwd, path, true)
        };
        // POSIX decides by the number of arguments.
        Ok(match *words {
            [] => false,
            [one] => !one.is_empty(),
            ["!", ref rest @ ..] => !self.holds(rest)?,
            ["-n", text] => !text.is_empty(),
            ["-z", text] => text.is_empty(),
            ["-e", path] => entry(path).is_ok(),
            ["-d", path] => entry(path).is_ok_and(|e| e.stat.mode & DIRECTORY != 0),
            ["-s", path] => entry(path).is_ok_and(|e| e.stat.size > 0),
            [left, "=", right] => left == right,
            [left, "!=", right] => left != right,
            [left, "-lt", right] => number(left)? < number(right)?,
            [left, "-le", right] => number(left)? <= number(right)?,
            [left, "-gt", right] => number(left)? > number(right)?,
            [left, "-ge", right] => number(left)? >= number(right)?,
            [op, _] | [_, op, ..] => return Err(format!("{op}: unexpected operator/operand")),
        })
    }

    fn change_directory(&mut self, args: &[String]) -> Result<u8, Flow> {
        let Some(target) = args.first() else {
            return self.failed(1, "cd: no directory");
        };
        let why = match self
            .cmd
            .kernel
            .entry(&self.cmd.cred, &self.cmd.cwd, target, true)
        {
            Ok(entry) if entry.stat.mode & DIRECTORY != 0 => {
                self.cmd.cwd = format!("/{}", normalize(&self.cmd.cwd, target).join("/"));
                return Ok(0);
            }
            Ok(_) => "Not a directory",
            Err(errno) => errno.text(),
        };
        self.failed(2, &format!("cd: {target}: {why}"))
    }

    /// `read [-r] NAME…`; backslashes are always plain.
    fn read(&mut self, args: &[String]) -> Result<u8, Flow> {
        let names = args.strip_prefix(&["-r".to_owned()]).unwrap_or(args);
        let line = match self.read_line() {
            Ok(line) => line,
            Err(stop) => {
                self.stopped(stop)?;
                return Ok(130);
            }
        };
        let ifs = self.ifs();
        let divides = |c: char| ifs.contains(c);
        let text = line.strip_suffix('\n');
        let mut rest = text.unwrap_or(&line).trim_matches(divides);
        for (i, name) in names.iter().enumerate() {
            let (value, after) = match rest.split_once(divides) {
                Some((value, after)) if i + 1 < names.len() => (value, after),
                _ => (rest, ""),
            };
            self.set_variable(name, value.to_owned());
            rest = after.trim_start_matches(divides);
        }
        Ok(u8::from(text.is_none()))
    }

    /// `trap ACTION SIGNAL…`; an empty action ignores the signals.
    fn trap(&mut self, args: &[String]) -> Result<u8, Flow> {
        let Some((action, signals)) = args.split_first() else {
            return Ok(0);
        };
        for name in signals {
            let Some(signal) = signal_number(name) else {
                return self.failed(1, &format!("trap: bad signal '{name}'"));
            };
            self.traps.insert(signal, action.clone());
            if let Some(p) = self.cmd.kernel.state().processes.get_mut(self.cmd.pid) {
                p.caught.remove(&signal);
                p.ignored.remove(&signal);
                match action.is_empty() {
                    true => p.ignored.insert(signal),
                    false => p.caught.insert(signal),
                };
            }
        }
        Ok(0)
    }
}

/// Returns whether the first argument is an option that would be taken for an operand.
fn is_unknown_option(builtin: &str, args: &[String]) -> bool {
    args.first()
        .is_some_and(|option| match (builtin, &**option) {
            ("set", "--") | ("read", "-r") => false,
            (_, option) => option.starts_with('-'),
        })
}
