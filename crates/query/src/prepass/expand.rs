//! Calls of macros and of functions in SQL, replaced by what they stand for. Keeps where each
//! piece of the result comes from.

use std::sync::atomic::{AtomicU32, Ordering};

use super::tokens::{Sort, Token, tokens};
use super::{Action, Macro, Macros, Prepared, Refusal, WorkedCall};

/// Macros within macros, at most.
const DEEPEST: usize = 32;
/// A statement may grow to so many bytes, and no further.
const LARGEST: usize = 1 << 20;

/// A statement being rewritten.
pub(super) struct Rewriting<'a> {
    source: &'a str,
    macros: &'a Macros,
    sql: String,
    /// Where a piece of the result begins, where it comes from, and whether it is a copy of that.
    origin: Vec<(usize, usize, bool)>,
    worked: Vec<WorkedCall>,
}

impl<'a> Rewriting<'a> {
    /// Nothing yet.
    pub(super) fn new(source: &'a str, macros: &'a Macros) -> Rewriting<'a> {
        Rewriting {
            source,
            macros,
            sql: String::new(),
            origin: Vec::new(),
            worked: Vec::new(),
        }
    }

    /// Adds text on behalf of a place in the source.
    pub(super) fn insert(&mut self, text: &str, offset: usize) {
        self.origin.push((self.sql.len(), offset, false));
        self.sql += text;
    }

    /// Adds tokens of the source, calls replaced.
    pub(super) fn tokens(&mut self, all: &[Token]) -> Result<(), Refusal> {
        let mut at = 0;
        while let Some(token) = all.get(at) {
            let offset = token.at.start;
            if token.is_sign(self.source, ';') {
                self.insert(" ", offset);
                at += 1;
                continue;
            }
            if let Some((called, inside, after)) = call(self.source, all, at, self.macros) {
                let (name, arguments) = (token.text(self.source), &all[inside]);
                let arguments = split(self.source, arguments);
                let arguments: Vec<String> = arguments
                    .into_iter()
                    .map(|part| text_of(self.source, part))
                    .collect();
                let text = expand(name, called, &arguments, self.macros, 0, &mut self.worked)
                    .map_err(|message| Refusal::new(offset, message))?;
                self.insert(&text, offset);
                self.sql.push(' ');
                at = after;
                continue;
            }
            if is_unknown_macro(self.source, all, at) {
                let name = heaptap_model::untrusted::sanitize(token.text(self.source)).into_owned();
                return Err(Refusal::new(offset, format!("there is no macro {name}!"))
                    .with_help("`.tables` lists macros; INCLUDE PERFETTO MODULE may bring it"));
            }
            // Up to the next token, so that what stood between them stays.
            let end = all.get(at + 1).map_or(token.at.end, |next| next.at.start);
            let follows = self.origin.last().is_some_and(|&(start, from, copied)| {
                copied && from + (self.sql.len() - start) == offset
            });
            if !follows {
                self.origin.push((self.sql.len(), offset, true));
            }
            self.sql += &self.source[offset..end];
            at += 1;
            if self.sql.len() > LARGEST {
                return Err(Refusal::new(offset, "the statement is too long"));
            }
        }
        Ok(())
    }

    pub(super) fn finish(self, action: Action) -> Prepared {
        Prepared {
            action,
            sql: self.sql,
            origin: self.origin,
            worked: self.worked,
        }
    }
}

/// The call that begins at a token: what is called, the tokens between its brackets, and the
/// token after them.
fn call<'m>(
    sql: &str,
    all: &[Token],
    at: usize,
    macros: &'m Macros,
) -> Option<(&'m Macro, std::ops::Range<usize>, usize)> {
    let token = &all[at];
    if token.sort != Sort::Word {
        return None;
    }
    let called = macros.get(&token.text(sql).to_lowercase())?;
    let mut open = at + 1;
    if !called.is_function {
        if !all.get(open)?.is_sign(sql, '!') {
            return None;
        }
        open += 1;
    }
    if !all.get(open)?.is_sign(sql, '(') {
        return None;
    }
    let mut depth = 0usize;
    for (position, token) in all.iter().enumerate().skip(open) {
        if token.is_sign(sql, '(') {
            depth += 1;
        } else if token.is_sign(sql, ')') {
            depth -= 1;
            if depth == 0 {
                return Some((called, open + 1..position, position + 1));
            }
        }
    }
    None
}

/// `name!(`, which is no SQL.
fn is_unknown_macro(sql: &str, all: &[Token], at: usize) -> bool {
    let next = |n: usize, sign| {
        all.get(at + n)
            .is_some_and(|token| token.is_sign(sql, sign))
    };
    all[at].sort == Sort::Word
        && next(1, '!')
        && next(2, '(')
        && all[at].at.end == all[at + 1].at.start
}

/// Tokens between commas that no bracket holds.
fn split<'t>(sql: &str, all: &'t [Token]) -> Vec<&'t [Token]> {
    if all.is_empty() {
        return Vec::new();
    }
    let mut depth = 0;
    let is_comma = |token: &Token| {
        depth += i32::from(token.is_sign(sql, '('));
        depth -= i32::from(token.is_sign(sql, ')'));
        depth == 0 && token.is_sign(sql, ',')
    };
    all.split(is_comma).collect()
}

fn text_of(sql: &str, tokens: &[Token]) -> String {
    match (tokens.first(), tokens.last()) {
        (Some(first), Some(last)) => sql[first.at.start..last.at.end].to_owned(),
        _ => String::new(),
    }
}

/// What a call stands for, calls in it replaced too.
fn expand(
    name: &str,
    called: &Macro,
    arguments: &[String],
    macros: &Macros,
    depth: usize,
    worked: &mut Vec<WorkedCall>,
) -> Result<String, String> {
    let shown = heaptap_model::untrusted::sanitize(name);
    if depth == DEEPEST {
        return Err(format!(
            "{shown} calls itself, or too many others in one another"
        ));
    }
    let wanted = called.arguments.len();
    // One argument more may be there for macros that take a variable number.
    if arguments.len() != wanted {
        return Err(format!(
            "{shown} takes {wanted} argument{}, not {}",
            if wanted == 1 { "" } else { "s" },
            arguments.len()
        ));
    }
    if called.is_worked {
        let arguments = arguments.iter();
        let arguments =
            arguments.map(|text| expand_all(name, text, macros, depth + 1, &mut *worked));
        let arguments = arguments.collect::<Result<_, _>>()?;
        // No two of a database may share a name, for views go on reading theirs.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let table = format!("_macro_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let text = format!("(SELECT * FROM temp.{table})");
        worked.push(WorkedCall {
            name: name.to_lowercase(),
            arguments,
            table,
        });
        return Ok(text);
    }
    let of = |variable: &str| {
        let name = variable.strip_prefix('$')?.to_lowercase();
        let at = called.arguments.iter().position(|known| *known == name)?;
        Some(arguments[at].as_str())
    };
    let mut filled = String::new();
    let mut end = 0;
    for token in tokens(&called.body) {
        filled += &called.body[end..token.at.start];
        let text = token.text(&called.body);
        end = token.at.end;
        match of(text).filter(|_| token.sort == Sort::Variable) {
            // The whole of an expression, whatever stands around it; of a macro's argument the
            // author sees to that: it may be the name of a column or table.
            Some(argument) if called.is_function => {
                filled.push('(');
                filled += argument;
                filled.push(')');
            }
            Some(argument) => filled += argument,
            None => filled += text,
        }
        if filled.len() > LARGEST {
            return Err(format!("{shown} stands for too much text"));
        }
    }
    filled += &called.body[end..];
    // A comment at the end would swallow what follows.
    filled.push('\n');
    let text = expand_all(name, &filled, macros, depth, worked)?;
    Ok(match called.is_function {
        true => format!("({text})"),
        false => text,
    })
}

/// A text with all calls in it replaced.
fn expand_all(
    name: &str,
    source: &str,
    macros: &Macros,
    depth: usize,
    worked: &mut Vec<WorkedCall>,
) -> Result<String, String> {
    let all = tokens(source);
    let mut text = String::new();
    let mut end = 0;
    let mut at = 0;
    while let Some(token) = all.get(at) {
        if let Some((inner, inside, after)) = call(source, &all, at, macros) {
            text += &source[end..token.at.start];
            let arguments: Vec<String> = split(source, &all[inside])
                .into_iter()
                .map(|part| text_of(source, part))
                .collect();
            let called = token.text(source);
            text += &expand(called, inner, &arguments, macros, depth + 1, worked)?;
            end = all[after - 1].at.end;
            at = after;
        } else {
            at += 1;
        }
        if text.len() > LARGEST {
            let shown = heaptap_model::untrusted::sanitize(name);
            return Err(format!("{shown} stands for too much text"));
        }
    }
    text += &source[end..];
    Ok(text)
}
