//! Expansion of macro and function calls in SQL. Records the origin of each piece of the result.

use std::sync::atomic::{AtomicU32, Ordering};

use super::statement::{Action, Macro, Macros, Prepared, Refusal, WorkedCall};
use super::tokens::{Sort, Token, tokens};
use heaptap_base::units::counted;

/// Maximum nesting of macros.
const MAX_DEPTH: usize = 32;
/// Maximum bytes of a rewritten statement.
const MAX_SIZE: usize = 1 << 20;

/// Statement being rewritten.
pub(super) struct Rewriting<'a> {
    source: &'a str,
    macros: &'a Macros,
    sql: String,
    /// Start of each piece of the result, its offset in the source, and whether it is a copy of
    /// that.
    origin: Vec<(usize, usize, bool)>,
    worked: Vec<WorkedCall>,
    calls: Vec<(String, String)>,
    with: With,
}

/// Progress in the `WITH` clause at the start of a statement.
#[derive(Default)]
struct With {
    /// Part of the result from `WITH` to the end of the last complete common table.
    tables: Option<std::ops::Range<usize>>,
    depth: usize,
    /// The open bracket at depth 1 is the body of a common table, not its columns.
    is_body: bool,
    is_over: bool,
}

impl<'a> Rewriting<'a> {
    /// Makes an empty statement.
    pub(super) fn new(source: &'a str, macros: &'a Macros) -> Rewriting<'a> {
        Rewriting {
            source,
            macros,
            sql: String::new(),
            origin: Vec::new(),
            worked: Vec::new(),
            calls: Vec::new(),
            with: With::default(),
        }
    }

    /// Follows the `WITH` clause with a token that has been added.
    fn follow(&mut self, all: &[Token], at: usize, start: usize) {
        let token = &all[at];
        let is = |word| token.is(self.source, word);
        let with = &mut self.with;
        if with.is_over {
            return;
        }
        if token.is_sign(self.source, '(') {
            let before = at.checked_sub(1).map(|before| &all[before]);
            if with.depth == 0 {
                with.is_body = before.is_some_and(|before| {
                    before.is(self.source, "AS") || before.is(self.source, "MATERIALIZED")
                });
            }
            with.depth += 1;
        } else if token.is_sign(self.source, ')') {
            with.depth = with.depth.saturating_sub(1);
            if let Some(tables) = with
                .tables
                .as_mut()
                .filter(|_| with.depth == 0 && with.is_body)
            {
                tables.end = self.sql.len();
            }
        } else if with.depth == 0 && is("WITH") {
            with.tables = Some(start..start);
        } else if with.depth == 0 && (is("SELECT") || is("VALUES")) {
            with.is_over = true;
        }
    }

    /// Adds text that belongs to an offset in the source.
    pub(super) fn insert(&mut self, text: &str, offset: usize) {
        self.origin.push((self.sql.len(), offset, false));
        self.sql += text;
    }

    /// Adds tokens of the source, with calls expanded.
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
                let known = self.worked.len();
                let text = expand(name, called, &arguments, self.macros, 0, &mut self.worked)
                    .map_err(|message| Refusal::new(offset, message))?;
                // The `WITH` clause with the complete common tables; empty for none.
                let with = self.sql[self.with.tables.clone().unwrap_or_default()].to_owned();
                for call in &mut self.worked[known..] {
                    call.with.clone_from(&with);
                }
                self.insert(&text, offset);
                self.sql.push(' ');
                if called.is_function {
                    let typed = &self.source[offset..all[after - 1].at.end];
                    self.calls.push((text, typed.to_owned()));
                }
                at = after;
                continue;
            }
            if is_unknown_macro(self.source, all, at) {
                let name = heaptap_base::untrusted::sanitize(token.text(self.source)).into_owned();
                return Err(Refusal::new(offset, format!("no such macro: {name}!"))
                    .with_help("run `.tables` to list macros"));
            }
            // Copy up to the next token, so that blanks and comments between them stay.
            let end = all.get(at + 1).map_or(token.at.end, |next| next.at.start);
            let follows = self.origin.last().is_some_and(|&(start, from, copied)| {
                copied && from + (self.sql.len() - start) == offset
            });
            if !follows {
                self.origin.push((self.sql.len(), offset, true));
            }
            let start = self.sql.len();
            self.sql += &self.source[offset..end];
            self.follow(all, at, start);
            at += 1;
            if self.sql.len() > MAX_SIZE {
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
            calls: self.calls,
        }
    }
}

/// Returns the call that begins at a token: the macro or function, the tokens between its brackets,
/// and the token after them.
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

/// Returns whether `name!(` begins at a token: a macro call, because SQL does not have this form.
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

/// Returns the tokens between commas outside brackets.
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

/// Returns the expansion of a call, with nested calls expanded.
fn expand(
    name: &str,
    called: &Macro,
    arguments: &[String],
    macros: &Macros,
    depth: usize,
    worked: &mut Vec<WorkedCall>,
) -> Result<String, String> {
    let shown = heaptap_base::untrusted::sanitize(name);
    if depth == MAX_DEPTH {
        return Err(format!("{shown} calls itself or exceeds the nesting limit"));
    }
    let wanted = called.arguments.len();
    if arguments.len() != wanted {
        return Err(format!(
            "{shown} takes {}, not {}",
            counted(wanted as u64, "argument", "arguments"),
            arguments.len()
        ));
    }
    if called.is_worked {
        let arguments = arguments.iter();
        let arguments =
            arguments.map(|text| expand_all(name, text, macros, depth + 1, &mut *worked));
        let arguments = arguments.collect::<Result<_, _>>()?;
        // Names are unique in a database, because views continue to read their tables.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let table = format!("_macro_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let text = format!("(SELECT * FROM temp.{table})");
        worked.push(WorkedCall {
            name: name.to_lowercase(),
            arguments,
            table,
            with: String::new(),
        });
        return Ok(text);
    }
    let of = |variable: &str| {
        let name = variable.strip_prefix('$')?.to_lowercase();
        called.arguments.iter().position(|known| *known == name)
    };
    let body = tokens(&called.body);
    // A table of the body can have a column with the name of one in an argument. Such an argument
    // is evaluated outside of the body, but not if a macro is computed before the statement runs.
    let is_worked = |token: &Token| {
        let name = token.text(&called.body).to_lowercase();
        macros.get(&name).is_some_and(|called| called.is_worked)
    };
    let is_scalar = called.is_function && !called.returns_table;
    let can_bind = is_scalar
        && body.iter().any(|token| token.is(&called.body, "FROM"))
        && !body.iter().any(is_worked);
    let is_bound = |argument: &str| can_bind && names_column(argument);
    let bound: Vec<bool> = arguments
        .iter()
        .map(|argument| is_bound(argument))
        .collect();
    let mut filled = String::new();
    let mut end = 0;
    let mut before: Option<&Token> = None;
    for token in &body {
        filled += &called.body[end..token.at.start];
        let text = token.text(&called.body);
        end = token.at.end;
        let argument = of(text).filter(|_| token.sort == Sort::Variable);
        // A limit cannot be a column.
        let is_limit = ["LIMIT", "OFFSET"]
            .iter()
            .any(|word| before.is_some_and(|before| before.is(&called.body, word)));
        before = Some(token);
        match argument.map(|at| arguments[at].as_str()) {
            Some(_) if argument.is_some_and(|at| bound[at]) && !is_limit => {
                filled += &format!("[{}]", text.to_lowercase());
            }
            // A function's argument is a complete expression, whatever is around it. For a macro
            // this is up to the author, because the argument can be the name of a column or table.
            Some(argument) if called.is_function => {
                filled.push('(');
                filled += argument;
                filled.push(')');
            }
            Some(argument) => filled += argument,
            None => filled += text,
        }
        if filled.len() > MAX_SIZE {
            return Err(format!("{shown} expands to too much text"));
        }
    }
    filled += &called.body[end..];
    // A comment at the end would hide what follows.
    filled.push('\n');
    let values: Vec<String> = (called.arguments.iter().zip(arguments).zip(&bound))
        .filter(|(_, bound)| **bound)
        .map(|((name, argument), _)| format!("({argument}\n) AS [${name}]"))
        .collect();
    if !values.is_empty() {
        filled = format!("SELECT ({filled}) FROM (SELECT {})", values.join(", "));
    }
    let text = expand_all(name, &filled, macros, depth, worked)?;
    Ok(match called.is_function {
        true => format!("({text})"),
        false => text,
    })
}

/// Returns whether an argument might name a column: it has a word that is not a function.
fn names_column(argument: &str) -> bool {
    let all = tokens(argument);
    all.iter().enumerate().any(|(at, token)| {
        let is_call = |next: &Token| next.is_sign(argument, '(');
        match token.sort {
            Sort::Quoted => true,
            Sort::Word => !all.get(at + 1).is_some_and(is_call),
            _ => false,
        }
    })
}

/// Returns a text with all calls in it expanded.
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
        if text.len() > MAX_SIZE {
            let shown = heaptap_base::untrusted::sanitize(name);
            return Err(format!("{shown} expands to too much text"));
        }
    }
    text += &source[end..];
    Ok(text)
}
