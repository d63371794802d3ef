//! `test`, `[` and `[[`.

use super::ast::{Part, Word};
use super::pattern;
use super::{Flow, Shell};
use crate::access::Cred;
use crate::access::{Want, mode_allows};
use crate::fs::Body;
use crate::fs::{DEVICE, DIRECTORY, LINK, REGULAR};
use crate::kernel::Kernel;

/// S_IFMT.
const TYPE_BITS: u32 = 0o170_000;

/// Value of a `test` expression.
pub(crate) fn evaluate(
    kernel: &Kernel,
    cred: &Cred,
    cwd: &str,
    args: &[String],
) -> Result<bool, String> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let unary = |op: &str, operand: &str| unary(kernel, cred, cwd, op, operand);
    // POSIX decides by the number of arguments.
    match args[..] {
        [] => Ok(false),
        [one] => Ok(!one.is_empty()),
        ["!", one] => Ok(one.is_empty()),
        [op, operand] => {
            unary(op, operand).ok_or_else(|| format!("{op}: unexpected operator/operand"))
        }
        [left, op, right] if is_binary(op) => binary(kernel, cred, cwd, left, op, right),
        _ => {
            let mut parser = Expression {
                args: &args,
                at: 0,
                kernel,
                cred,
                cwd,
                depth: 0,
            };
            let value = parser.or()?;
            match args.get(parser.at) {
                None => Ok(value),
                Some(extra) => Err(format!("{extra}: unexpected operator/operand")),
            }
        }
    }
}

fn is_binary(op: &str) -> bool {
    matches!(
        op,
        "=" | "=="
            | "!="
            | "<"
            | ">"
            | "-eq"
            | "-ne"
            | "-lt"
            | "-le"
            | "-gt"
            | "-ge"
            | "-nt"
            | "-ot"
            | "-ef"
    )
}

struct Expression<'a> {
    args: &'a [&'a str],
    at: usize,
    kernel: &'a Kernel,
    cred: &'a Cred,
    cwd: &'a str,
    depth: usize,
}

impl Expression<'_> {
    fn accept(&mut self, what: &str) -> bool {
        let found = self.args.get(self.at) == Some(&what);
        self.at += usize::from(found);
        found
    }

    fn or(&mut self) -> Result<bool, String> {
        self.depth += 1;
        if self.depth > 50 {
            return Err("expression nested too deeply".to_owned());
        }
        let mut value = self.and()?;
        while self.accept("-o") || self.accept("||") {
            value |= self.and()?;
        }
        self.depth -= 1;
        Ok(value)
    }

    fn and(&mut self) -> Result<bool, String> {
        let mut value = self.not()?;
        while self.accept("-a") || self.accept("&&") {
            value &= self.not()?;
        }
        Ok(value)
    }

    fn not(&mut self) -> Result<bool, String> {
        let mut negated = false;
        while self.accept("!") {
            negated = !negated;
        }
        Ok(self.primary()? != negated)
    }

    fn primary(&mut self) -> Result<bool, String> {
        if self.accept("(") {
            let value = self.or()?;
            return if self.accept(")") {
                Ok(value)
            } else {
                Err("missing )".to_owned())
            };
        }
        let rest = &self.args[self.at..];
        if let [left, op, right, ..] = rest
            && is_binary(op)
        {
            self.at += 3;
            return binary(self.kernel, self.cred, self.cwd, left, op, right);
        }
        match rest {
            [op, operand, ..] if op.len() == 2 && op.starts_with('-') => {
                self.at += 2;
                unary(self.kernel, self.cred, self.cwd, op, operand)
                    .ok_or_else(|| format!("{op}: unexpected operator/operand"))
            }
            [one, ..] => {
                self.at += 1;
                Ok(!one.is_empty())
            }
            [] => Err("argument expected".to_owned()),
        }
    }
}

fn unary(kernel: &Kernel, cred: &Cred, cwd: &str, op: &str, operand: &str) -> Option<bool> {
    let entry = |follow| kernel.entry(cred, cwd, operand, follow).ok();
    let is = |bits| entry(true).is_some_and(|e| e.stat.mode & TYPE_BITS == bits);
    let may = |want| entry(true).is_some_and(|e| mode_allows(cred, &e.stat, want));
    Some(match op {
        "-n" => !operand.is_empty(),
        "-z" => operand.is_empty(),
        "-e" | "-a" => entry(true).is_some(),
        "-d" => is(DIRECTORY),
        "-f" => is(REGULAR),
        "-c" => is(DEVICE),
        "-b" | "-p" | "-S" | "-t" => false,
        "-h" | "-L" => entry(false).is_some_and(|e| e.stat.mode & TYPE_BITS == LINK),
        "-r" => may(Want::Read),
        "-w" => may(Want::Write),
        "-x" => may(Want::Search),
        "-s" => entry(true).is_some_and(|e| match e.body {
            Body::File(data) => data.len() > 0 && e.stat.size > 0,
            _ => true,
        }),
        "-O" => entry(true).is_some_and(|e| e.stat.uid == cred.uid),
        _ => return None,
    })
}

fn binary(
    kernel: &Kernel,
    cred: &Cred,
    cwd: &str,
    left: &str,
    op: &str,
    right: &str,
) -> Result<bool, String> {
    let numbers = || -> Result<(i64, i64), String> {
        let parse = |t: &str| {
            t.trim()
                .parse::<i64>()
                .map_err(|_| format!("{t}: unexpected '{t}'"))
        };
        Ok((parse(left)?, parse(right)?))
    };
    let mtime = |path| {
        kernel
            .entry(cred, cwd, path, true)
            .ok()
            .map(|e| e.stat.mtime)
    };
    Ok(match op {
        "=" | "==" => left == right,
        "!=" => left != right,
        "<" => left < right,
        ">" => left > right,
        "-nt" => mtime(left) > mtime(right),
        "-ot" => mtime(left) < mtime(right),
        "-ef" => left == right,
        _ => {
            let (l, r) = numbers()?;
            match op {
                "-eq" => l == r,
                "-ne" => l != r,
                "-lt" => l < r,
                "-le" => l <= r,
                "-gt" => l > r,
                _ => l >= r,
            }
        }
    })
}

impl Shell {
    /// `[[ … ]]`: the right of `=` and `!=` is a pattern, nothing is split.
    pub(super) fn extended_test(&mut self, words: &[Word]) -> Result<u8, Flow> {
        let plain = |w: &Word| match w.0.as_slice() {
            [
                Part::Text {
                    text,
                    quoted: false,
                },
            ] => Some(text.clone()),
            _ => None,
        };
        let mut args: Vec<String> = Vec::new();
        let mut i = 0;
        while i < words.len() {
            let op = words.get(i + 1).and_then(plain);
            if let (Some(op), Some(right)) = (op.as_deref(), words.get(i + 2))
                && matches!(op, "=" | "==" | "!=")
            {
                let left: Vec<char> = self.expand_string(&words[i])?.chars().collect();
                let pattern = self.expand_pattern(right)?;
                let yes = pattern::matches(&pattern, &left) != (op == "!=");
                args.push(if yes { "1" } else { "" }.to_owned());
                i += 3;
                continue;
            }
            args.push(self.expand_string(&words[i])?);
            i += 1;
        }
        match evaluate(&self.kernel, &self.cred, &self.cwd, &args) {
            Ok(yes) => Ok(u8::from(!yes)),
            Err(error) => {
                self.complain(&format!("[[: {error}"));
                Ok(2)
            }
        }
    }
}
