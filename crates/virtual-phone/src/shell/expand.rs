//! Expansion of words to fields: parameters, command substitution, arithmetic, splitting.

use super::arith;
use super::ast::{Node, ParamOp, Part, Word};
use super::interpreter::{Flow, Shell, Variable};
use super::pattern::{Pattern, PatternChar};
use crate::io::{Fd, pipe};

/// Maximum output of a command substitution in bytes.
const MAX_SUBSTITUTION: usize = 4 << 20;

/// Characters of an unfinished field: quoted ones are neither split nor matched as patterns.
type Chars = Vec<PatternChar>;

#[derive(Default)]
struct Fields {
    done: Vec<Chars>,
    current: Chars,
    /// Whether `current` is a field even if it is empty.
    open: bool,
}

impl Fields {
    fn push(&mut self, c: char, quoted: bool) {
        self.current.push(PatternChar { c, quoted });
        self.open = true;
    }

    fn cut(&mut self) {
        if self.open {
            self.done.push(std::mem::take(&mut self.current));
            self.open = false;
        }
    }
}

impl Shell {
    pub(super) fn set_variable(&mut self, name: &str, value: String) {
        self.variables.entry(name.to_owned()).or_default().value = value;
    }

    /// Sets a variable that programs inherit.
    pub(super) fn export(&mut self, name: &str, value: String) {
        let exported = true;
        self.variables
            .insert(name.to_owned(), Variable { value, exported });
    }

    /// Returns a parameter's value; `None` if it is unset.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        match name {
            "?" => Some(self.status.to_string()),
            "$" => Some(self.main_pid.to_string()),
            "!" => self.last_background.map(|p| p.to_string()),
            "#" => Some(self.arguments.len().to_string()),
            "@" | "*" => (!self.arguments.is_empty()).then(|| self.arguments.join(" ")),
            "0" => Some(self.name.clone()),
            "PWD" => Some(self.cmd.cwd.clone()),
            "EPOCHREALTIME" => {
                let micros = self.cmd.kernel.clock.real() / 1_000;
                Some(format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000))
            }
            _ => match name.parse::<usize>() {
                Ok(n) => self.arguments.get(n.wrapping_sub(1)).cloned(),
                Err(_) => self.variables.get(name).map(|v| v.value.clone()),
            },
        }
    }

    /// Expands words to fields.
    pub(super) fn expand_words(&mut self, words: &[Word]) -> Result<Vec<String>, Flow> {
        let mut all = Vec::new();
        for word in words {
            let mut fields = Fields::default();
            self.expand_into(word, &mut fields, true)?;
            fields.cut();
            let texts = fields.done.into_iter();
            all.extend(texts.map(|field| field.iter().map(|p| p.c).collect::<String>()));
        }
        Ok(all)
    }

    /// Expands to one string, without splitting: for assignments, redirections, `case`.
    pub(super) fn expand_string(&mut self, word: &Word) -> Result<String, Flow> {
        Ok(self
            .expand_pattern(word)?
            .into_iter()
            .map(|p| p.c)
            .collect())
    }

    /// Expands like [`Shell::expand_string`] and marks quoted characters.
    pub(super) fn expand_pattern(&mut self, word: &Word) -> Result<Chars, Flow> {
        let mut fields = Fields::default();
        self.expand_into(word, &mut fields, false)?;
        Ok(fields.current)
    }

    fn expand_into(&mut self, word: &Word, fields: &mut Fields, split: bool) -> Result<(), Flow> {
        for part in &word.0 {
            match part {
                Part::Text { text, quoted } => {
                    fields.open = true;
                    text.chars().for_each(|c| fields.push(c, *quoted));
                }
                Part::Empty => {
                    // `"$@"` without arguments expands to no field.
                    let at_only = word.0.len() == 2
                        && matches!(&word.0[1], Part::Parameter { name, .. } if name == "@");
                    fields.open |= !at_only || !self.arguments.is_empty();
                }
                Part::Parameter {
                    name,
                    op: ParamOp::Plain,
                    quoted,
                } if name == "@" || (name == "*" && !quoted) => {
                    for (i, argument) in self.arguments.clone().iter().enumerate() {
                        if i > 0 {
                            if split {
                                fields.open |= *quoted;
                                fields.cut();
                            } else {
                                fields.push(' ', true);
                            }
                        }
                        fields.open |= *quoted;
                        self.add_value(argument, *quoted, fields, split);
                    }
                }
                Part::Parameter { name, op, quoted } => {
                    if let Some(value) = self.operate(name, op, *quoted, fields, split)? {
                        self.add_value(&value, *quoted, fields, split);
                    }
                }
                Part::Command { script, quoted } => {
                    let value = self.substitute(script)?;
                    self.add_value(&value, *quoted, fields, split);
                }
                Part::Arithmetic { expr, quoted } => {
                    let value = self.arithmetic(expr)?.to_string();
                    self.add_value(&value, *quoted, fields, split);
                }
            }
        }
        Ok(())
    }

    /// Adds an expansion's value, split at IFS unless quoted.
    fn add_value(&mut self, value: &str, quoted: bool, fields: &mut Fields, split: bool) {
        if quoted || !split {
            value.chars().for_each(|c| fields.push(c, quoted));
            return;
        }
        let ifs = self.ifs();
        for c in value.chars() {
            if ifs.contains(c) {
                fields.open |= !c.is_whitespace();
                fields.cut();
            } else {
                fields.push(c, false);
            }
        }
    }

    /// Returns the characters that separate fields.
    pub(super) fn ifs(&self) -> String {
        self.parameter("IFS").unwrap_or_else(|| " \t\n".to_owned())
    }

    /// Evaluates an arithmetic expression.
    pub(super) fn arithmetic(&mut self, expr: &Word) -> Result<i64, Flow> {
        let text = self.expand_string(expr)?;
        let variable = |name: &str| self.parameter(name).unwrap_or_default();
        arith::evaluate(&text, &variable).map_err(|error| {
            self.complain(&error);
            Flow::Exit(1)
        })
    }

    /// Evaluates a `${…}`; `None` if its word was added to `fields` already.
    fn operate(
        &mut self,
        name: &str,
        op: &ParamOp,
        quoted: bool,
        fields: &mut Fields,
        split: bool,
    ) -> Result<Option<String>, Flow> {
        let value = self.parameter(name);
        Ok(Some(match op {
            ParamOp::Plain => value.unwrap_or_default(),
            ParamOp::Default(word) => match value.filter(|value| !value.is_empty()) {
                Some(value) => value,
                None => {
                    fields.open |= quoted;
                    self.expand_into(word, fields, split)?;
                    return Ok(None);
                }
            },
            ParamOp::Trim {
                suffix,
                longest,
                pattern,
            } => {
                let pattern = self.expand_pattern(pattern)?;
                trim(&value.unwrap_or_default(), &pattern, *suffix, *longest)
            }
        }))
    }

    /// Returns the output of a command substitution without trailing newlines.
    fn substitute(&mut self, script: &Node) -> Result<String, Flow> {
        let (reader, writer) = pipe(&self.cmd.kernel.events);
        let mut shell = self.subshell();
        shell.cmd.fds.set(1, Fd::Write(writer));
        let pid = self.fork(shell, script)?;
        let input = Fd::Read(reader);
        let mut bytes = Vec::new();
        loop {
            match input.read(&self.cmd.kernel, self.cmd.pid, 64 << 10) {
                Ok(part) if part.is_empty() => break,
                Ok(part) if bytes.len() < MAX_SUBSTITUTION => bytes.extend_from_slice(&part),
                Ok(_) => {}
                Err(stop) => self.stopped(stop)?,
            }
        }
        self.status = self.wait_for(pid)?;
        while bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        bytes.retain(|b| *b != 0);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Cuts the part of a value that matches a pattern from its start or its end.
fn trim(value: &str, pattern: &[PatternChar], suffix: bool, longest: bool) -> String {
    let pattern = Pattern::new(pattern);
    let mut ends: Vec<usize> = value.char_indices().map(|(at, _)| at).collect();
    ends.push(value.len());
    if longest != suffix {
        ends.reverse();
    }
    let mut parts = ends.into_iter().map(|at| value.split_at(at));
    let found = parts.find(|(front, back)| pattern.matches(if suffix { back } else { front }));
    let kept = found.map(|(front, back)| if suffix { front } else { back });
    kept.unwrap_or(value).to_owned()
}
