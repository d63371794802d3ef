//! Commands that the shell runs itself.

use super::format::{format_printf, unescape};
use super::{Flow, Shell, Variable, condition, parser};
use crate::fs::normalize;
use crate::process::Stop;
use crate::process::{Delivered, SIGNALS, signal_number};

const BUILTINS: [&str; 35] = [
    ".", ":", "[", "alias", "break", "builtin", "cd", "command", "continue", "echo", "eval",
    "exec", "exit", "export", "false", "getopts", "jobs", "kill", "let", "local", "print",
    "printf", "pwd", "read", "readonly", "return", "set", "shift", "source", "test", "trap",
    "true", "type", "typeset", "umask",
];
const MORE_BUILTINS: [&str; 5] = ["unset", "wait", "whence", "ulimit", "hash"];

impl Shell {
    pub(super) fn is_builtin(name: &str) -> bool {
        BUILTINS.contains(&name) || MORE_BUILTINS.contains(&name)
    }

    /// Runs a builtin, its name first.
    pub(super) fn builtin(&mut self, argv: &[String]) -> Result<u8, Flow> {
        let args = &argv[1..];
        let number = |i: usize, default: usize| {
            args.get(i)
                .map_or(Some(default), |a| a.parse::<usize>().ok())
        };
        match argv[0].as_str() {
            ":" | "true" | "alias" | "hash" => Ok(0),
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
            "eval" => match parser::parse(&args.join(" ")) {
                Ok(tree) => self.eval(&tree),
                Err(error) => {
                    self.complain(&error.0);
                    Ok(1)
                }
            },
            "." | "source" => {
                let Some(path) = args.first() else {
                    return Ok(2);
                };
                let Ok(bytes) = self.kernel.read_all(&self.cred, &self.cwd, path) else {
                    self.complain(&format!(".: {path}: No such file or directory"));
                    return Err(Flow::Exit(1));
                };
                match parser::parse(&String::from_utf8_lossy(&bytes)) {
                    Ok(tree) => self.eval(&tree),
                    Err(error) => {
                        self.complain(&error.0);
                        Ok(1)
                    }
                }
            }
            "export" | "readonly" | "local" | "typeset" => Ok(self.declare(&argv[0], args)),
            "unset" => {
                for name in args.iter().filter(|a| !a.starts_with('-')) {
                    if args.first().is_some_and(|a| a == "-f") {
                        self.functions.remove(name);
                    } else {
                        self.variables.remove(name);
                    }
                }
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
            "wait" => self.wait(args),
            "kill" => self.kill(args),
            "jobs" => Ok(0),
            "let" => {
                let mut last = 0;
                for expression in args {
                    let word = super::ast::Word(vec![super::ast::Part::Text {
                        text: expression.clone(),
                        quoted: true,
                    }]);
                    last = self.arithmetic(&word)?;
                }
                Ok(u8::from(last == 0))
            }
            "umask" => match args.first() {
                Some(_) => Ok(0),
                None => self.print("0000\n"),
            },
            "ulimit" => self.print("unlimited\n"),
            "getopts" => {
                self.complain("getopts: not supported");
                Ok(1)
            }
            "command" | "builtin" | "type" | "whence" => self.command_builtin(argv),
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
        // mksh takes -n, -e and -E, together or apart.
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
        let target = match args.first().map(String::as_str) {
            None => self.parameter("HOME").unwrap_or_else(|| "/".to_owned()),
            Some("-") => self.parameter("OLDPWD").unwrap_or_else(|| "/".to_owned()),
            Some(path) => path.to_owned(),
        };
        let listed = self.kernel.entry(&self.cred, &self.cwd, &target, true);
        match listed.map(|e| e.stat.mode & crate::fs::DIRECTORY != 0) {
            Ok(true) => {
                let old = self.cwd.clone();
                self.cwd = format!("/{}", normalize(&self.cwd, &target).join("/"));
                self.set_variable("OLDPWD", old);
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

    fn declare(&mut self, how: &str, args: &[String]) -> u8 {
        for arg in args.iter().filter(|a| !a.starts_with('-')) {
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg.as_str(), None),
            };
            if matches!(how, "local" | "typeset") {
                let old = self.variables.get(name).cloned();
                if let Some(frame) = self.hidden.last_mut() {
                    frame.push((name.to_owned(), old));
                    self.variables.insert(name.to_owned(), Variable::default());
                }
            }
            if let Some(value) = value {
                self.set_variable(name, value.to_owned());
            }
            if how == "export"
                && let Some(v) = self.variables.get_mut(name)
            {
                v.exported = true;
            }
        }
        0
    }

    fn set(&mut self, args: &[String]) -> u8 {
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let on = arg.starts_with('-');
            if arg == "--" {
                self.arguments = rest.cloned().collect();
                return 0;
            }
            let Some(flags) = arg.strip_prefix(['-', '+']) else {
                self.arguments = std::iter::once(arg).chain(rest).cloned().collect();
                return 0;
            };
            for c in flags.chars() {
                match c {
                    'e' => self.options.exit_on_error = on,
                    'u' => self.options.unset_is_error = on,
                    'x' => self.options.trace = on,
                    'f' => self.options.no_glob = on,
                    // `-o name`: none of the names changes what is done here but these.
                    'o' => match rest.next().map(String::as_str) {
                        Some("errexit") => self.options.exit_on_error = on,
                        Some("nounset") => self.options.unset_is_error = on,
                        Some("xtrace") => self.options.trace = on,
                        _ => {}
                    },
                    'a' | 'b' | 'h' | 'm' | 'v' => {}
                    other => {
                        self.complain(&format!("set: -{other}: unknown option"));
                        return 1;
                    }
                }
            }
        }
        0
    }

    fn read(&mut self, args: &[String]) -> Result<u8, Flow> {
        let mut raw = false;
        let mut fd = 0;
        let mut names = Vec::new();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "-r" => raw = true,
                "-t" | "-n" | "-N" | "-d" => {
                    self.complain(&format!("read: {arg}: not supported"));
                    return Ok(2);
                }
                a if a.starts_with("-u") => {
                    let n = if a.len() > 2 {
                        a[2..].to_owned()
                    } else {
                        args.next().cloned().unwrap_or_default()
                    };
                    fd = n.parse().unwrap_or(0);
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
            match self.read_line(fd) {
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
        let ifs = match self.variables.get("IFS") {
            Some(v) => v.value.clone(),
            None => " \t\n".to_owned(),
        };
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
            let mut text = String::new();
            for (signal, action) in &self.traps {
                let name = SIGNALS
                    .iter()
                    .find(|(n, _)| n == signal)
                    .map_or("EXIT", |s| s.1);
                text.push_str(&format!("trap -- '{action}' {name}\n"));
            }
            return self.print(&text);
        };
        // `trap 2` and `trap - 2` reset.
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

    fn wait(&mut self, args: &[String]) -> Result<u8, Flow> {
        let pids = if args.is_empty() {
            std::mem::take(&mut self.jobs)
        } else {
            args.iter().filter_map(|a| a.parse().ok()).collect()
        };
        let mut status = 0;
        for pid in pids {
            let kernel = self.kernel.clone();
            let ended = || {
                let state = kernel.state();
                match state.processes.get(pid) {
                    Some(_) => None,
                    None => Some(state.processes.status(pid).unwrap_or(127)),
                }
            };
            match self.kernel.block(self.pid, None, ended) {
                Ok(ended) => status = ended.unwrap_or(127),
                Err(Stop::Killed(signal)) => return Err(Flow::Killed(signal)),
                Err(Stop::Signal) => {
                    let signal = {
                        let state = self.kernel.state();
                        let pending = state.processes.get(self.pid).map(|p| p.pending.clone());
                        pending.and_then(|p| p.first().copied()).unwrap_or(0)
                    };
                    self.run_traps()?;
                    return Ok(128 + signal);
                }
            }
        }
        Ok(if args.is_empty() { 0 } else { status })
    }

    fn kill(&mut self, args: &[String]) -> Result<u8, Flow> {
        let mut signal = 15;
        let mut rest = args;
        if let Some((first, after)) = args.split_first() {
            match first.as_str() {
                "-l" => {
                    let names: Vec<&str> = SIGNALS.iter().map(|s| s.1).collect();
                    return self.print(&format!("{}\n", names.join(" ")));
                }
                "-s" | "-n" => {
                    let Some((name, after)) = after.split_first() else {
                        return Ok(1);
                    };
                    signal = match signal_number(name) {
                        Some(n) => n,
                        None => return self.bad_signal(name),
                    };
                    rest = after;
                }
                "--" => rest = after,
                f if f.starts_with('-') && f.len() > 1 => {
                    signal = match signal_number(&f[1..]) {
                        Some(n) => n,
                        None => return self.bad_signal(&f[1..]),
                    };
                    rest = after;
                }
                _ => {}
            }
        }
        let mut status = 0;
        for target in rest.iter().filter(|t| *t != "--") {
            let Ok(pid) = target.parse::<i64>() else {
                self.complain(&format!(
                    "kill: {target}: arguments must be jobs or process IDs"
                ));
                status = 1;
                continue;
            };
            let targets: Vec<u32> = if pid < 0 {
                let group = pid.unsigned_abs() as u32;
                let state = self.kernel.state();
                let members = state.processes.iter().filter(|p| p.group == group);
                members.map(|p| p.pid).collect()
            } else {
                vec![pid as u32]
            };
            let mut delivered = Delivered::NoProcess;
            for pid in targets {
                delivered = self.kernel.signal(&self.cred, pid, signal);
            }
            let why = match delivered {
                Delivered::NoProcess => "No such process",
                Delivered::Denied => "Operation not permitted",
                Delivered::Alive | Delivered::Ended => continue,
            };
            self.complain(&format!("kill: {target}: {why}"));
            status = 1;
        }
        self.alive()?;
        Ok(status)
    }

    fn bad_signal(&mut self, name: &str) -> Result<u8, Flow> {
        self.complain(&format!("kill: bad signal '{name}'"));
        Ok(1)
    }

    fn command_builtin(&mut self, argv: &[String]) -> Result<u8, Flow> {
        let args = &argv[1..];
        let find = |shell: &Shell, name: &str| {
            if shell.functions.contains_key(name) || Self::is_builtin(name) {
                return Some(name.to_owned());
            }
            shell.programs.find(name)
        };
        match (argv[0].as_str(), args.split_first()) {
            (_, None) => Ok(0),
            ("command", Some((flag, names))) if flag == "-v" || flag == "-V" => {
                let mut status = 0;
                for name in names {
                    match find(self, name) {
                        Some(path) => status = self.print(&format!("{path}\n"))?,
                        None => status = 1,
                    }
                }
                Ok(status)
            }
            ("type" | "whence", Some(_)) => {
                let mut status = 0;
                for name in args.iter().filter(|a| !a.starts_with('-')) {
                    let text = match find(self, name) {
                        Some(_) if self.functions.contains_key(name) => {
                            format!("{name} is a function\n")
                        }
                        Some(_) if Self::is_builtin(name) => format!("{name} is a shell builtin\n"),
                        Some(path) => format!("{name} is a tracked alias for {path}\n"),
                        None => {
                            status = 1;
                            format!("{name} not found\n")
                        }
                    };
                    self.print(&text)?;
                }
                Ok(status)
            }
            (_, Some((name, _))) => {
                if Self::is_builtin(name) && name != "exec" {
                    self.builtin(args)
                } else {
                    self.run_program(args.to_vec())
                }
            }
        }
    }
}
