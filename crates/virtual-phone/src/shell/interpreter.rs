//! A running shell: its state, and the scripts that it runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::Node;
use super::parser;
use crate::io::Fd;
use crate::process::{Pid, Stop};
use crate::program::Cmd;

/// Maximum depth of evaluation: functions, groups and nested shells.
pub(super) const MAX_DEPTH: usize = 300;

#[derive(Debug, Clone, Default)]
pub(super) struct Variable {
    pub(super) value: String,
    pub(super) exported: bool,
}

/// Reason to leave the normal order of evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Exit(u8),
    Break,
    Continue,
    Return(u8),
    /// The shell's process was killed.
    Killed(u8),
}

/// A running shell.
#[derive(Clone)]
pub(crate) struct Shell {
    /// Its own process; the environment is in `variables`.
    pub(super) cmd: Cmd,
    /// Value of `$$`: the PID of the outermost shell, also in subshells.
    pub(super) main_pid: Pid,
    pub(super) variables: BTreeMap<String, Variable>,
    pub(super) functions: BTreeMap<String, Arc<Node>>,
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
    /// Actions by signal.
    pub(super) traps: BTreeMap<u8, String>,
    pub(super) status: u8,
    pub(super) last_background: Option<Pid>,
}

impl Shell {
    /// Creates a shell that replaces `cmd`, with its process, files and environment.
    pub(crate) fn new(cmd: &Cmd, name: String, arguments: Vec<String>) -> Shell {
        let exported = |value: &String| Variable {
            value: value.clone(),
            exported: true,
        };
        let environment = cmd.env.iter().map(|(k, v)| (k.clone(), exported(v)));
        Shell {
            main_pid: cmd.pid,
            variables: environment.collect(),
            functions: BTreeMap::new(),
            name,
            arguments,
            traps: BTreeMap::new(),
            status: 0,
            last_background: None,
            cmd: Cmd {
                depth: cmd.depth + 1,
                ..cmd.clone()
            },
        }
    }

    /// Returns a copy for another process, without the traps.
    pub(super) fn subshell(&self) -> Shell {
        Shell {
            traps: BTreeMap::new(),
            ..self.clone()
        }
    }

    /// Runs a script to its end. Returns the shell's status.
    pub(crate) fn run_script(mut self, script: &str) -> Result<u8, Stop> {
        if self.cmd.depth > MAX_DEPTH {
            self.complain("too many nested shells");
            return Ok(1);
        }
        let tree = match parser::parse(script) {
            Ok(tree) => tree,
            Err(error) => {
                self.complain(&error.0);
                return Ok(1);
            }
        };
        let flow = match self.exec_in_place(&tree) {
            Some(result) => result,
            None => self.eval(&tree),
        };
        self.finish(flow)
    }

    /// Reads commands from stdin to its end and runs them line by line.
    pub(crate) fn run_stdin(mut self) -> Result<u8, Stop> {
        let mut pending = String::new();
        loop {
            let line = match self.read_line() {
                Ok(line) => line,
                Err(Stop::Killed(signal)) => return Err(Stop::Killed(signal)),
                Err(Stop::Signal) => match self.run_traps() {
                    Ok(()) => continue,
                    Err(flow) => return self.finish(Err(flow)),
                },
            };
            let ended = !line.ends_with('\n');
            pending.push_str(&line);
            match parser::parse(&pending) {
                Ok(tree) => {
                    pending.clear();
                    if let Err(flow) = self.eval(&tree) {
                        return self.finish(Err(flow));
                    }
                }
                Err(error) if ended => {
                    self.complain(&error.0);
                    return Ok(1);
                }
                // More lines might complete it.
                Err(_) => {}
            }
            if ended {
                return self.finish(Ok(self.status));
            }
        }
    }

    pub(super) fn finish(&self, flow: Result<u8, Flow>) -> Result<u8, Stop> {
        match flow {
            Ok(status) | Err(Flow::Exit(status) | Flow::Return(status)) => Ok(status),
            Err(Flow::Break | Flow::Continue) => Ok(self.status),
            Err(Flow::Killed(signal)) => Err(Stop::Killed(signal)),
        }
    }

    /// Prints an error message in the shell's format.
    pub(super) fn complain(&self, text: &str) {
        let name = self.name.rsplit('/').next().unwrap_or("sh");
        // The message that stderr is not writable could not be written either.
        let _ = self.cmd.err(&format!("{name}: {text}\n"));
    }

    /// Reads a line including its newline, which the last line of the input might lack.
    pub(super) fn read_line(&mut self) -> Result<String, Stop> {
        let fd = self.cmd.stdin();
        let mut line = Vec::new();
        // Only with a file can reading ahead be undone.
        let ahead = if matches!(fd, Fd::File { .. }) {
            256
        } else {
            1
        };
        loop {
            let bytes = fd.read(&self.cmd.kernel, self.cmd.pid, ahead)?;
            if bytes.is_empty() {
                break;
            }
            if let Some(end) = bytes.iter().position(|b| *b == b'\n') {
                fd.unread((bytes.len() - end - 1) as u64);
                line.extend_from_slice(&bytes[..=end]);
                break;
            }
            line.extend_from_slice(&bytes);
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }
}
