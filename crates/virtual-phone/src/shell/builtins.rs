//! Commands that the shell runs itself.

use super::format::{format_printf, unescape};
use super::{Flow, Shell, condition};
use crate::fs::normalize;
use crate::process::{Stop, signal_number};

const BUILTINS: [&str; 23] = [
    ":", "[", "break", "cd", "continue", "echo", "exec", "exit", "export", "false", "kill",
    "print", "printf", "pwd", "read", "return", "set", "shift", "test", "trap", "true", "type",
    "unset",
];

impl Shell {
    pub(super) fn is_builtin(name: &str) -> bool {
        BUILTINS.contains(&name)
    }

    /// Runs a builtin; `argv` starts with its name.
    pub(super) fn builtin(&mut self, argv: &[String]) -> Result<u8, Flow> {
        let args = &argv[1..];
        let number = |i: usize, default: usize| {
            args.get(i)
                .map_or(Some(default), |a| a.parse::<usize>().ok())
        };
        match argv[0].as_str() {
            ":" | "true" => Ok(0),
            "false" => Ok(1),
            "break" => Err(Flow::Break(number(0, 1).unwrap_or(1).max(1))),
            "continue" => Err(Flow::Continue(number(0, 1).unwrap_or(1).max(1))),
            "exit" => Err(Flow::Exit(self.exit_status(args))),
            "return" => Err(Flow::Return(self.exit_status(args))),
            "echo" => self.echo(args),
            "print" => {
                let args = args.strip_prefix(&["-r".to_owned()]).unwrap_or(args);
                let args = args.strip_prefix(&["--".to_owned()]).unwrap_or(args);
                self.print(&format!("{}\n", args.join(" ")))
            }
            "printf" => match args.split_first() {
                Some((format, rest)) => {
                    let text = format_printf(format, rest);
                    self.print(&text)
                }
                None => {
                    self.complain("printf: no format");
                    Ok(1)
                }
            },
            "[" | "test" => {
                let args = match (argv[0].as_str(), args.split_last()) {
                    ("[", Some((last, rest))) if last == "]" => rest,
                    ("[", _) => {
                        self.complain("[: missing ]");
                        return Ok(2);
                    }
                    _ => args,
                };
                match condition::evaluate(&self.kernel, &self.cred, &self.cwd, args) {
                    Ok(yes) => Ok(u8::from(!yes)),
                    Err(error) => {
                        self.complain(&format!("{}: {error}", argv[0]));
                        Ok(2)
                    }
                }
            }
            "cd" => self.change_directory(args),
            "pwd" => self.print(&format!("{}\n", self.cwd)),
            "export" => Ok(self.export(args)),
            "unset" => {
                args.iter().for_each(|name| {
                    self.variables.remove(name);
                });
                Ok(0)
            }
            "set" => Ok(self.set(args)),
            "shift" => {
                let n = number(0, 1).unwrap_or(1);
                if n > self.arguments.len() {
                    self.complain("shift: nothing to shift");
                    return Ok(1);
                }
                self.arguments.drain(..n);
                Ok(0)
            }
            "read" => self.read(args),
            "trap" => self.trap(args),
            "kill" => self.kill(args),
            "type" => self.tell_types(args),
            _ => Ok(127),
        }
    }

    fn exit_status(&self, args: &[String]) -> u8 {
        match args.first() {
            Some(text) => text.parse::<i64>().map_or(1, |n| n as u8),
            None => self.status,
        }
    }

    fn echo(&mut self, args: &[String]) -> Result<u8, Flow> {
        let mut args = args;
        // mksh supports -n, -e and -E, combined or separate.
        let (mut newline, mut escapes) = (true, true);
        while let Some((flag, rest)) = args.split_first()
            && flag.len() > 1
            && flag.starts_with('-')
            && flag[1..].chars().all(|c| "neE".contains(c))
        {
            for c in flag[1..].chars() {
                match c {
                    'n' => newline = false,
                    'e' => escapes = true,
                    _ => escapes = false,
                }
            }
            args = rest;
        }
        let mut text = args.join(" ");
        if escapes {
            let (unescaped, ended) = unescape(&text);
            text = unescaped;
            newline &= !ended;
        }
        if newline {
            text.push('\n');
        }
        self.print(&text)
    }

    fn change_directory(&mut self, args: &[String]) -> Result<u8, Flow> {
        let Some(target) = args.first() else {
            self.complain("cd: no directory");
            return Ok(1);
        };
        let listed = self.kernel.entry(&self.cred, &self.cwd, target, true);
        match listed.map(|e| e.stat.mode & crate::fs::DIRECTORY != 0) {
            Ok(true) => {
                self.cwd = format!("/{}", normalize(&self.cwd, target).join("/"));
                Ok(0)
            }
            Ok(false) => {
                self.complain(&format!("cd: {target}: Not a directory"));
                Ok(2)
            }
            Err(errno) => {
                self.complain(&format!("cd: {target}: {}", errno.text()));
                Ok(2)
            }
        }
    }

    fn export(&mut self, args: &[String]) -> u8 {
        for arg in args {
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg.as_str(), None),
            };
            if let Some(value) = value {
                self.set_variable(name, value.to_owned());
            }
            if let Some(v) = self.variables.get_mut(name) {
                v.exported = true;
            }
        }
        0
    }

    /// Runs `set -- ARGUMENT…`; options are not supported.
    fn set(&mut self, args: &[String]) -> u8 {
        match args.split_first() {
            None => {}
            Some((first, rest)) if first == "--" => self.arguments = rest.to_vec(),
            Some((first, _)) if first.starts_with(['-', '+']) => {
                self.complain(&format!("set: {first}: not supported"));
                return 1;
            }
            _ => self.arguments = args.to_vec(),
        }
        0
    }

    fn read(&mut self, args: &[String]) -> Result<u8, Flow> {
        let mut raw = false;
        let mut names = Vec::new();
        for arg in args {
            match arg.as_str() {
                "-r" => raw = true,
                flag if flag.starts_with('-') => {
                    self.complain(&format!("read: {flag}: not supported"));
                    return Ok(2);
                }
                _ => names.push(arg.clone()),
            }
        }
        if names.is_empty() {
            names.push("REPLY".to_owned());
        }
        let mut line = String::new();
        let mut ended;
        loop {
            match self.read_line() {
                Ok(part) => {
                    ended = !part.ends_with('\n');
                    line.push_str(part.strip_suffix('\n').unwrap_or(&part));
                }
                Err(Stop::Killed(signal)) => return Err(Flow::Killed(signal)),
                Err(Stop::Signal) => {
                    self.run_traps()?;
                    return Ok(130);
                }
            }
            if raw || ended || !line.ends_with('\\') {
                break;
            }
            line.pop();
        }
        let ifs = self.ifs();
        let blank = |c: char| c.is_whitespace() && ifs.contains(c);
        let mut rest = line.trim_matches(blank);
        for (i, name) in names.iter().enumerate() {
            let value = if i + 1 == names.len() {
                std::mem::take(&mut rest)
            } else {
                let end = rest.find(|c| ifs.contains(c)).unwrap_or(rest.len());
                let value = &rest[..end];
                let after = &rest[end..];
                let after = after.trim_start_matches(blank);
                rest = after
                    .strip_prefix(|c| ifs.contains(c))
                    .unwrap_or(after)
                    .trim_start_matches(blank);
                value
            };
            let value = value.to_owned();
            self.set_variable(name, value);
        }
        Ok(u8::from(ended))
    }

    fn trap(&mut self, args: &[String]) -> Result<u8, Flow> {
        let args = args.strip_prefix(&["--".to_owned()]).unwrap_or(args);
        let Some((action, signals)) = args.split_first() else {
            return Ok(0);
        };
        // `trap 2` and `trap - 2` reset the action.
        let (action, signals) = if signals.is_empty() || action == "-" {
            let list = if signals.is_empty() { args } else { signals };
            (None, list)
        } else {
            (Some(action.clone()), signals)
        };
        for name in signals {
            let signal = match name.as_str() {
                "EXIT" | "0" => 0,
                name => match signal_number(name) {
                    Some(signal) => signal,
                    None => {
                        self.complain(&format!("trap: bad signal '{name}'"));
                        return Ok(1);
                    }
                },
            };
            match &action {
                Some(action) => self.traps.insert(signal, action.clone()),
                None => self.traps.remove(&signal),
            };
            if let Some(p) = self.kernel.state().processes.get_mut(self.pid) {
                p.caught.remove(&signal);
                p.ignored.remove(&signal);
                match action.as_deref() {
                    Some("") => p.ignored.insert(signal),
                    Some(_) if signal != 0 => p.caught.insert(signal),
                    _ => false,
                };
            }
        }
        Ok(0)
    }

    fn kill(&mut self, args: &[String]) -> Result<u8, Flow> {
        let missed = self.kernel.kill(&self.cred, args);
        for (target, why) in &missed {
            self.complain(&format!("kill: {target}: {why}"));
        }
        self.alive()?;
        Ok(u8::from(!missed.is_empty()))
    }

    fn tell_types(&mut self, names: &[String]) -> Result<u8, Flow> {
        let mut status = 0;
        for name in names {
            let text = if self.functions.contains_key(name) {
                format!("{name} is a function\n")
            } else if Self::is_builtin(name) {
                format!("{name} is a shell builtin\n")
            } else if let Some(path) = self.programs.find(name) {
                format!("{name} is a tracked alias for {path}\n")
            } else {
                status = 1;
                format!("{name} not found\n")
            };
            self.print(&text)?;
        }
        Ok(status)
    }
}
