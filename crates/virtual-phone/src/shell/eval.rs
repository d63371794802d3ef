//! Evaluation of the syntax tree: commands, pipes, redirections, subshells, traps.

use std::sync::Arc;

use super::ast::{Node, Redirect, RedirectKind};
use super::interpreter::{Flow, MAX_DEPTH, Shell};
use super::parser;
use super::pattern::Pattern;
use crate::io::{Fd, pipe};
use crate::process::{Pid, SIGINT, SIGQUIT, Stop};
use crate::program::{self, Cmd, Halt};

const NO_FORK: &str = "can't fork: Resource temporarily unavailable";

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
        let mut cmd = self.command(Vec::new(), self.cmd.pid);
        match cmd.exec(argv) {
            Ok(status) => Err(Flow::Exit(status)),
            Err(Halt::Stop(Stop::Killed(signal))) => Err(Flow::Killed(signal)),
            Err(_) => Err(Flow::Exit(1)),
        }
    }

    /// Creates a command that inherits the shell's environment.
    fn command(&self, argv: Vec<String>, pid: Pid) -> Cmd {
        let exported = self.variables.iter().filter(|(_, v)| v.exported);
        let env = exported.map(|(k, v)| (k.clone(), v.value.clone()));
        Cmd {
            pid,
            argv,
            env: env.collect(),
            ..self.cmd.clone()
        }
    }

    /// Checks that the shell's own process can continue, and runs pending traps.
    pub(super) fn alive(&mut self) -> Result<(), Flow> {
        let checked = self.cmd.kernel.check(self.cmd.pid);
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
        for signal in self.cmd.kernel.take_signals(self.cmd.pid) {
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
        self.cmd.depth += 1;
        if self.cmd.depth > MAX_DEPTH {
            self.cmd.depth -= 1;
            self.complain("recursion too deep");
            return Err(Flow::Exit(1));
        }
        let result = self.eval_node(node);
        self.cmd.depth -= 1;
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
                let pid = self.fork(self.subshell(), body)?;
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
                    if self.in_loop(|s| s.eval(condition))? != Some(0) {
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
        let saved = self.cmd.fds.clone();
        let result = match self.redirect(redirects) {
            Ok(()) => run(self),
            Err(failed) => failed.map_or_else(Err, Ok),
        };
        self.cmd.fds = saved;
        result
    }

    /// Applies redirections; returns `Err(Ok(status))` if one could not be opened.
    pub(super) fn redirect(&mut self, redirects: &[Redirect]) -> Result<(), Result<u8, Flow>> {
        for redirect in redirects {
            let target = self.expand_string(&redirect.target).map_err(Err)?;
            let (cred, cwd) = (&self.cmd.cred, &self.cmd.cwd);
            let opened = match redirect.kind {
                RedirectKind::Read => self.cmd.kernel.open_read(cred, cwd, &target),
                RedirectKind::Write => self.cmd.kernel.open_write(cred, cwd, &target, 0o666, false),
                RedirectKind::Append => self.cmd.kernel.open_write(cred, cwd, &target, 0o666, true),
                RedirectKind::Duplicate => {
                    let from = target
                        .parse()
                        .ok()
                        .and_then(|n| self.cmd.fds.get(n).cloned());
                    match from {
                        Some(fd) => Ok(fd),
                        None => {
                            return Err(self.failed(1, &format!("{target}: bad file descriptor")));
                        }
                    }
                }
            };
            match opened {
                Ok(fd) => self.cmd.fds.set(redirect.fd, fd),
                Err(errno) => {
                    let reads = redirect.kind == RedirectKind::Read;
                    let what = if reads { "open" } else { "create" };
                    let text = format!("can't {what} {target}: {}", errno.text());
                    return Err(self.failed(1, &text));
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
        let Some(pid) = self
            .cmd
            .kernel
            .spawn_process(self.cmd.pid, &self.cmd.cred, &argv)
        else {
            return self.failed(1, NO_FORK);
        };
        let mut cmd = self.command(argv, pid);
        let status = program::run(&mut cmd).unwrap_or_else(Stop::status);
        let status = self.cmd.kernel.end_process(pid, status);
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
        let mut shell = self.subshell();
        shell.cmd.fds.set(0, Fd::Null);
        // A single program replaces the subshell, so that `$!` is its PID.
        let list = Node::List(vec![(node.clone(), false)]);
        let pid = self.fork_with(shell, move |s| {
            if let Some(p) = s.cmd.kernel.state().processes.get_mut(s.cmd.pid) {
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
            let state = self.cmd.kernel.state();
            let own = state.processes.get(self.cmd.pid);
            own.map_or_else(|| vec!["sh".to_owned()], |p| p.argv.clone())
        };
        let Some(pid) = self
            .cmd
            .kernel
            .spawn_process(self.cmd.pid, &self.cmd.cred, &argv)
        else {
            self.complain(NO_FORK);
            return Err(Flow::Exit(1));
        };
        shell.cmd.pid = pid;
        let started = program::run_as(&self.cmd.kernel, pid, move || {
            let flow = run(&mut shell);
            shell.finish(flow).unwrap_or_else(Stop::status)
        });
        if !started {
            self.complain(NO_FORK);
            return Err(Flow::Exit(1));
        }
        Ok(pid)
    }

    fn pipeline(&mut self, parts: &[Arc<Node>]) -> Result<u8, Flow> {
        let mut input: Option<Fd> = None;
        let mut pids = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            let mut shell = self.subshell();
            if let Some(fd) = input.take() {
                shell.cmd.fds.set(0, fd);
            }
            if i + 1 < parts.len() {
                let (reader, writer) = pipe(&self.cmd.kernel.events);
                shell.cmd.fds.set(1, Fd::Write(writer));
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
            let kernel = self.cmd.kernel.clone();
            let ended = || {
                let state = kernel.state();
                match state.processes.get(pid) {
                    Some(_) => None,
                    None => Some(state.processes.status(pid).unwrap_or(127)),
                }
            };
            match self.cmd.kernel.block(self.cmd.pid, None, ended) {
                Ok(status) => return Ok(status.unwrap_or(127)),
                Err(stop) => self.stopped(stop)?,
            }
        }
    }

    /// Prints to stdout.
    pub(super) fn print(&self, text: &str) -> Result<u8, Flow> {
        match self.cmd.out(text) {
            Ok(()) => Ok(0),
            Err(Halt::Stop(Stop::Killed(signal))) => Err(Flow::Killed(signal)),
            Err(_) => self.failed(1, "write: No space left on device"),
        }
    }
}
