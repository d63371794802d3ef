//! Evaluation of the syntax tree: commands, pipes, redirections, subshells, traps.

use std::sync::Arc;

use super::ast::{Node, Redirect, RedirectKind};
use super::pattern::Pattern;
use super::{Flow, MAX_DEPTH, Shell, parser};
use crate::io::{Fd, pipe};
use crate::process::Stop;
use crate::process::{Pid, SIGINT, SIGPIPE, SIGQUIT};
use crate::program::{self, Cmd};

impl Shell {
    /// Replaces the shell by a script's only program, as mksh does.
    pub(super) fn exec_in_place(&mut self, tree: &Node) -> Option<Result<u8, Flow>> {
        let Node::List(list) = tree else { return None };
        let [(command, false)] = list.as_slice() else {
            return None;
        };
        let Node::Simple {
            assigns,
            words,
            redirects,
        } = &**command
        else {
            return None;
        };
        let fields = match self.expand_words(words) {
            Ok(fields) => fields,
            Err(flow) => return Some(Err(flow)),
        };
        let is_program =
            |name: &String| !Self::is_builtin(name) && !self.functions.contains_key(name);
        if !assigns.is_empty() || !fields.first().is_some_and(is_program) {
            // The words are already expanded; expanding them again might repeat side effects.
            return Some(self.run_simple(assigns, fields, redirects));
        }
        if let Err(status) = self.redirect(redirects) {
            return Some(status.map_or_else(Err, Ok));
        }
        Some(self.exec(fields))
    }

    /// Replaces the shell by a program.
    pub(super) fn exec(&mut self, argv: Vec<String>) -> Result<u8, Flow> {
        if let Some(p) = self.kernel.state().processes.get_mut(self.pid) {
            p.argv.clone_from(&argv);
        }
        let mut cmd = self.command(argv, self.pid);
        let result = program::run(&mut cmd);
        match result {
            Ok(status) => Err(Flow::Exit(status)),
            Err(Stop::Killed(signal)) => Err(Flow::Killed(signal)),
            Err(Stop::Signal) => Err(Flow::Exit(1)),
        }
    }

    /// Creates a command that inherits the shell's environment.
    fn command(&self, argv: Vec<String>, pid: Pid) -> Cmd {
        let exported = self.variables.iter().filter(|(_, v)| v.exported);
        Cmd {
            kernel: self.kernel.clone(),
            programs: self.programs.clone(),
            pid,
            cred: self.cred.clone(),
            argv,
            env: exported
                .map(|(k, v)| (k.clone(), v.value.clone()))
                .collect(),
            cwd: self.cwd.clone(),
            fds: self.fds.clone(),
            depth: self.depth,
        }
    }

    /// Checks that the shell's own process can continue, and runs pending traps.
    pub(super) fn alive(&mut self) -> Result<(), Flow> {
        let checked = self.kernel.check(self.pid);
        checked.or_else(|stop| self.stopped(stop))
    }

    /// Ends the shell, or runs pending traps: each at once, although one normally runs after the
    /// foreground command ends.
    pub(super) fn stopped(&mut self, stop: Stop) -> Result<(), Flow> {
        match stop {
            Stop::Killed(signal) => Err(Flow::Killed(signal)),
            Stop::Signal => self.run_traps(),
        }
    }

    /// Runs the actions of pending signals.
    pub(super) fn run_traps(&mut self) -> Result<(), Flow> {
        for signal in self.kernel.take_signals(self.pid) {
            let Some(action) = self.traps.get(&signal).cloned() else {
                continue;
            };
            let status = self.status;
            match parser::parse(&action) {
                Ok(tree) => {
                    self.eval(&tree)?;
                }
                Err(error) => self.complain(&error.0),
            }
            self.status = status;
        }
        Ok(())
    }

    pub(super) fn eval(&mut self, node: &Node) -> Result<u8, Flow> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.depth -= 1;
            self.complain("recursion too deep");
            return Err(Flow::Exit(1));
        }
        let result = self.eval_node(node);
        self.depth -= 1;
        if let Ok(status) = result {
            self.status = status;
        }
        result
    }

    fn eval_node(&mut self, node: &Node) -> Result<u8, Flow> {
        match node {
            Node::List(list) => {
                let mut status = 0;
                for (command, background) in list {
                    self.alive()?;
                    status = if *background {
                        self.background(command)?
                    } else {
                        self.eval(command)?
                    };
                }
                self.alive()?;
                Ok(status)
            }
            Node::Simple {
                assigns,
                words,
                redirects,
            } => {
                let fields = self.expand_words(words)?;
                self.run_simple(assigns, fields, redirects)
            }
            Node::Pipeline { negated, parts } => {
                let status = match parts.as_slice() {
                    [only] => self.eval(only)?,
                    parts => self.pipeline(parts)?,
                };
                Ok(if *negated {
                    u8::from(status == 0)
                } else {
                    status
                })
            }
            Node::AndOr { left, and, right } => {
                let status = self.eval(left)?;
                self.alive()?;
                if (status == 0) == *and {
                    self.eval(right)
                } else {
                    Ok(status)
                }
            }
            Node::Redirected { body, redirects } => {
                self.redirected(redirects, |s| s.eval_node(body))
            }
            Node::Subshell(body) => {
                let mut shell = self.clone();
                shell.traps.clear();
                let pid = self.fork(shell, body)?;
                self.wait_for(pid)
            }
            Node::If {
                branches,
                otherwise,
            } => {
                for (condition, body) in branches {
                    if self.eval(condition)? == 0 {
                        return self.eval(body);
                    }
                }
                otherwise.as_ref().map_or(Ok(0), |body| self.eval(body))
            }
            Node::Loop { condition, body } => {
                let mut status = 0;
                loop {
                    self.alive()?;
                    let condition = match self.in_loop(|s| s.eval(condition))? {
                        Some(status) => status,
                        None => break,
                    };
                    if condition != 0 {
                        break;
                    }
                    match self.in_loop(|s| s.eval(body))? {
                        Some(new) => status = new,
                        None => break,
                    }
                }
                Ok(status)
            }
            Node::For { name, words, body } => {
                let fields = match words {
                    Some(words) => self.expand_words(words)?,
                    None => self.arguments.clone(),
                };
                let mut status = 0;
                for field in fields {
                    self.alive()?;
                    self.set_variable(name, field);
                    match self.in_loop(|s| s.eval(body))? {
                        Some(new) => status = new,
                        None => break,
                    }
                }
                Ok(status)
            }
            Node::Case { subject, arms } => {
                let subject = self.expand_string(subject)?;
                for (patterns, body) in arms {
                    for word in patterns {
                        let pattern = self.expand_pattern(word)?;
                        if Pattern::new(&pattern).matches(&subject) {
                            return self.eval(body);
                        }
                    }
                }
                Ok(0)
            }
            Node::Function { name, body } => {
                self.functions.insert(name.clone(), body.clone());
                Ok(0)
            }
        }
    }

    /// Runs a part of a loop; `None` if the loop ends.
    fn in_loop(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<u8, Flow>,
    ) -> Result<Option<u8>, Flow> {
        match run(self) {
            Ok(status) => Ok(Some(status)),
            Err(Flow::Break) => Ok(None),
            Err(Flow::Continue) => Ok(Some(0)),
            Err(other) => Err(other),
        }
    }

    /// Runs a command with its own redirections.
    fn redirected(
        &mut self,
        redirects: &[Redirect],
        run: impl FnOnce(&mut Self) -> Result<u8, Flow>,
    ) -> Result<u8, Flow> {
        if redirects.is_empty() {
            return run(self);
        }
        let saved = self.fds.clone();
        let result = match self.redirect(redirects) {
            Ok(()) => run(self),
            Err(failed) => failed.map_or_else(Err, Ok),
        };
        self.fds = saved;
        result
    }

    /// Applies redirections; returns `Err(Ok(status))` if one could not be opened.
    pub(super) fn redirect(&mut self, redirects: &[Redirect]) -> Result<(), Result<u8, Flow>> {
        for redirect in redirects {
            let target = self.expand_string(&redirect.target).map_err(Err)?;
            let (cred, cwd) = (&self.cred, &self.cwd);
            let opened = match redirect.kind {
                RedirectKind::Read => self.kernel.open_read(cred, cwd, &target),
                RedirectKind::Write => self.kernel.open_write(cred, cwd, &target, 0o666, false),
                RedirectKind::Append => self.kernel.open_write(cred, cwd, &target, 0o666, true),
                RedirectKind::Duplicate => {
                    let from = target.parse().ok().and_then(|n| self.fds.get(n).cloned());
                    let Some(fd) = from else {
                        self.complain(&format!("{target}: bad file descriptor"));
                        return Err(Ok(1));
                    };
                    Ok(fd)
                }
            };
            match opened {
                Ok(fd) => self.fds.set(redirect.fd, fd),
                Err(errno) => {
                    let reads = redirect.kind == RedirectKind::Read;
                    let what = if reads { "open" } else { "create" };
                    self.complain(&format!("can't {what} {target}: {}", errno.text()));
                    return Err(Ok(1));
                }
            }
        }
        Ok(())
    }

    fn run_simple(
        &mut self,
        assigns: &[(String, super::ast::Word)],
        fields: Vec<String>,
        redirects: &[Redirect],
    ) -> Result<u8, Flow> {
        self.alive()?;
        let Some(name) = fields.first().cloned() else {
            // The status of `x=$(false)` is that of the substitution.
            self.status = 0;
            for (name, word) in assigns {
                let value = self.expand_string(word)?;
                self.set_variable(name, value);
            }
            let status = self.status;
            return self.redirected(redirects, |_| Ok(status));
        };
        let mut hidden = Vec::new();
        for (name, word) in assigns {
            let value = self.expand_string(word)?;
            hidden.push((name.clone(), self.variables.get(name).cloned()));
            self.export(name, value);
        }
        let result = if name == "exec" {
            match self.redirect(redirects) {
                Ok(()) if fields.len() > 1 => self.exec(fields[1..].to_vec()),
                Ok(()) => Ok(0),
                Err(failed) => failed.map_or_else(Err, Ok),
            }
        } else if let Some(body) = self.functions.get(&name).cloned() {
            self.redirected(redirects, |s| s.call(&body, fields[1..].to_vec()))
        } else if Self::is_builtin(&name) {
            self.redirected(redirects, |s| s.builtin(&fields))
        } else {
            self.redirected(redirects, |s| s.run_program(fields))
        };
        for (name, value) in hidden.into_iter().rev() {
            match value {
                Some(value) => self.variables.insert(name, value),
                None => self.variables.remove(&name),
            };
        }
        result
    }

    fn call(&mut self, body: &Node, arguments: Vec<String>) -> Result<u8, Flow> {
        let saved = std::mem::replace(&mut self.arguments, arguments);
        let result = match self.eval(body) {
            Err(Flow::Return(status)) => Ok(status),
            other => other,
        };
        self.arguments = saved;
        result
    }

    /// Runs a program in a new process and waits for it.
    pub(super) fn run_program(&mut self, argv: Vec<String>) -> Result<u8, Flow> {
        let Some(pid) = self.kernel.spawn_process(self.pid, &self.cred, &argv) else {
            self.complain("can't fork: Resource temporarily unavailable");
            return Ok(1);
        };
        let mut cmd = self.command(argv, pid);
        let status = program::run(&mut cmd).unwrap_or_else(Stop::status);
        let status = self.kernel.end_process(pid, status);
        drop(cmd);
        self.alive()?;
        Ok(status)
    }

    /// Runs `node` in `shell`, a copy of this shell, in a new process and thread.
    pub(super) fn fork(&mut self, shell: Shell, node: &Node) -> Result<Pid, Flow> {
        let node = node.clone();
        self.fork_with(shell, move |s| s.eval(&node))
    }

    fn background(&mut self, node: &Arc<Node>) -> Result<u8, Flow> {
        let mut shell = self.clone();
        shell.traps.clear();
        shell.fds.set(0, Fd::Null);
        // A single program replaces the subshell, so that `$!` is its PID.
        let list = Node::List(vec![(node.clone(), false)]);
        let pid = self.fork_with(shell, move |s| {
            if let Some(p) = s.kernel.state().processes.get_mut(s.pid) {
                p.ignored.extend([SIGINT, SIGQUIT]);
            }
            s.exec_in_place(&list).unwrap_or_else(|| s.eval(&list))
        })?;
        self.last_background = Some(pid);
        Ok(0)
    }

    fn fork_with(
        &mut self,
        mut shell: Shell,
        run: impl FnOnce(&mut Shell) -> Result<u8, Flow> + Send + 'static,
    ) -> Result<Pid, Flow> {
        let argv = {
            let state = self.kernel.state();
            let own = state.processes.get(self.pid);
            own.map_or_else(|| vec!["sh".to_owned()], |p| p.argv.clone())
        };
        let Some(pid) = self.kernel.spawn_process(self.pid, &self.cred, &argv) else {
            self.complain("can't fork: Resource temporarily unavailable");
            return Err(Flow::Exit(1));
        };
        shell.pid = pid;
        let started = program::run_as(&self.kernel, pid, move || {
            let flow = run(&mut shell);
            shell.finish(flow).unwrap_or_else(Stop::status)
        });
        if !started {
            self.complain("can't fork: Resource temporarily unavailable");
            return Err(Flow::Exit(1));
        }
        Ok(pid)
    }

    fn pipeline(&mut self, parts: &[Arc<Node>]) -> Result<u8, Flow> {
        let mut input: Option<Fd> = None;
        let mut pids = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            let mut shell = self.clone();
            shell.traps.clear();
            if let Some(fd) = input.take() {
                shell.fds.set(0, fd);
            }
            if i + 1 < parts.len() {
                let (reader, writer) = pipe(&self.kernel.events);
                shell.fds.set(1, Fd::Write(writer));
                input = Some(Fd::Read(reader));
            }
            pids.push(self.fork(shell, part)?);
        }
        let mut status = 0;
        for pid in pids {
            status = self.wait_for(pid)?;
        }
        Ok(status)
    }

    /// Waits until a child has ended.
    pub(super) fn wait_for(&mut self, pid: Pid) -> Result<u8, Flow> {
        loop {
            let kernel = self.kernel.clone();
            let ended = || {
                let state = kernel.state();
                match state.processes.get(pid) {
                    Some(_) => None,
                    None => Some(state.processes.status(pid).unwrap_or(127)),
                }
            };
            match self.kernel.block(self.pid, None, ended) {
                Ok(status) => return Ok(status.unwrap_or(127)),
                Err(stop) => self.stopped(stop)?,
            }
        }
    }

    /// Prints to stdout.
    pub(super) fn print(&self, text: &str) -> Result<u8, Flow> {
        match self
            .fds
            .get(1)
            .map(|fd| fd.write(&self.kernel, self.pid, text.as_bytes()))
        {
            Some(Ok(())) => Ok(0),
            Some(Err(crate::io::WriteError::Stopped(Stop::Killed(signal)))) => {
                Err(Flow::Killed(signal))
            }
            Some(Err(crate::io::WriteError::Broken)) => Err(Flow::Killed(SIGPIPE)),
            Some(Err(_)) => {
                self.complain("write: No space left on device");
                Ok(1)
            }
            None => Ok(1),
        }
    }
}
