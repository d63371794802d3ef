//! grep.

use regex::Regex;

use super::text::lines;
use super::{Cmd, Done};

/// Converts an expression from the syntax of the phone's `grep`: fixed, extended or basic. In a
/// basic one, `+`, `?`, `|`, braces and parentheses are operators only after a backslash.
fn expression(text: &str, extended: bool, fixed: bool) -> String {
    if fixed {
        return regex::escape(text);
    }
    if extended {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '+' | '?' | '|' | '{' | '}' | '(' | ')' => out.extend(['\\', c]),
            '\\' => match chars.next() {
                Some(c @ ('+' | '?' | '|' | '{' | '}' | '(' | ')')) => out.push(c),
                next => out.extend(['\\'].into_iter().chain(next)),
            },
            c => out.push(c),
        }
    }
    out
}

fn compile(text: &str, extended: bool, fixed: bool) -> Option<Regex> {
    Regex::new(&expression(text, extended, fixed)).ok()
}

pub(super) fn grep(cmd: &mut Cmd) -> Done {
    let Some((options, mut rest)) = cmd.flags("EFvqhs")? else {
        return Ok(2);
    };
    let has = |c: char| options.iter().any(|o| o.0 == c);
    if rest.is_empty() {
        cmd.err("grep: no REGEX\n")?;
        return Ok(2);
    }
    let pattern = rest.remove(0);
    let Some(regex) = compile(&pattern, has('E'), has('F')) else {
        cmd.err(&format!("grep: bad REGEX '{pattern}'\n"))?;
        return Ok(2);
    };
    let names = rest.clone();
    let (inputs, failed) = cmd.inputs(&rest)?;
    let mut found = false;
    for (i, input) in inputs.iter().enumerate() {
        for line in lines(input) {
            if regex.is_match(&line) == has('v') {
                continue;
            }
            found = true;
            if has('q') {
                return Ok(0);
            }
            let prefix = if names.len() > 1 && !has('h') {
                format!("{}:", names[i])
            } else {
                String::new()
            };
            cmd.out(&format!("{prefix}{line}\n"))?;
        }
    }
    Ok(if failed { 2 } else { u8::from(!found) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_expressions_find() {
        let find = |text: &str, line: &str| {
            let found = compile(text, false, false)?.find(line)?.range();
            Some((found.start, found.end))
        };
        assert_eq!(find("^a.*c$", "abbc"), Some((0, 4)));
        assert_eq!(find("[0-9][0-9]*", "ab42"), Some((2, 4)));
        assert_eq!(find("x\\|b", "ab"), Some((1, 2)));
        assert_eq!(find("a+", "a+b"), Some((0, 2)));
        assert_eq!(find("z", "ab"), None);
        assert_eq!(find(&"a*".repeat(40), &"a".repeat(40)), Some((0, 40)));
    }
}
