//! grep.

use regex::{Regex, RegexBuilder};

use super::text::lines;
use super::{Cmd, Done, flags};

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

fn compile(text: &str, extended: bool, fixed: bool, ignore_case: bool) -> Option<Regex> {
    RegexBuilder::new(&expression(text, extended, fixed))
        .case_insensitive(ignore_case)
        .build()
        .ok()
}

pub(super) fn grep(cmd: &mut Cmd) -> Done {
    let (options, mut rest) = flags(&cmd.args(), "emABC");
    let has = |c: char| options.iter().any(|o| o.0 == c);
    let pattern = match options.iter().find(|o| o.0 == 'e') {
        Some((_, Some(pattern))) => pattern.clone(),
        _ if rest.is_empty() => {
            cmd.err("grep: no REGEX\n")?;
            return Ok(2);
        }
        _ => rest.remove(0),
    };
    let Some(regex) = compile(&pattern, has('E'), has('F'), has('i')) else {
        cmd.err(&format!("grep: bad REGEX '{pattern}'\n"))?;
        return Ok(2);
    };
    let most = options
        .iter()
        .find(|o| o.0 == 'm')
        .and_then(|o| o.1.as_ref()?.parse::<usize>().ok());
    let names = rest.clone();
    let (inputs, failed) = cmd.inputs(&rest)?;
    let mut found = false;
    for (i, input) in inputs.iter().enumerate() {
        let mut count = 0;
        for line in lines(input) {
            if most.is_some_and(|m| count >= m) {
                break;
            }
            let hit = regex.find(&line).map(|hit| hit.range()).filter(|hit| {
                let whole = !has('x') || *hit == (0..line.len());
                let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
                let word = !has('w')
                    || (edge(line[..hit.start].chars().next_back())
                        && edge(line[hit.end..].chars().next()));
                whole && word
            });
            if hit.is_some() == has('v') {
                continue;
            }
            found = true;
            count += 1;
            if has('q') {
                return Ok(0);
            }
            if has('c') || has('l') {
                continue;
            }
            let prefix = if names.len() > 1 && !has('h') {
                format!("{}:", names[i])
            } else {
                String::new()
            };
            let text = match hit {
                Some(hit) if has('o') => line[hit].to_owned(),
                _ => line,
            };
            cmd.out(&format!("{prefix}{text}\n"))?;
        }
        if has('c') {
            cmd.out(&format!("{count}\n"))?;
        }
        if has('l') && count > 0 {
            cmd.out(&format!(
                "{}\n",
                names.get(i).map_or("(standard input)", String::as_str)
            ))?;
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
            let found = compile(text, false, false, false)?.find(line)?.range();
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
