//! Programs on text: head, tail, grep, sha256sum.

use regex::Regex;

use super::{Cmd, Done, refuse};

pub(super) fn head(cmd: &mut Cmd) -> Done {
    let args = cmd.options("-n: -c:")?;
    let bytes = args.number("-c");
    if let Some(bytes) = bytes.filter(|_| args.rest.is_empty()) {
        // It ends after this many bytes, even if more could follow.
        cmd.copy(&cmd.stdin(), bytes)?;
        return Ok(0);
    }
    let (inputs, failed) = cmd.inputs(&args.rest)?;
    for input in inputs {
        if let Some(bytes) = bytes {
            cmd.out_bytes(&input[..bytes.min(input.len() as u64) as usize])?;
            continue;
        }
        let lines = input.split_inclusive(|b| *b == b'\n');
        for line in lines.take(args.number("-n").unwrap_or(10) as usize) {
            cmd.out_bytes(line)?;
        }
    }
    Ok(u8::from(failed))
}

pub(super) fn tail(cmd: &mut Cmd) -> Done {
    let args = cmd.options("-n:")?;
    let count = args.value("-n").unwrap_or("10");
    let last = count.parse::<u16>().ok();
    let Some(last) = last.filter(|_| !count.starts_with('+')) else {
        return cmd.only("-n N");
    };
    let (inputs, failed) = cmd.inputs(&args.rest)?;
    for input in inputs {
        let all: Vec<&[u8]> = input.split_inclusive(|b| *b == b'\n').collect();
        cmd.out_bytes(&all[all.len().saturating_sub(last.into())..].concat())?;
    }
    Ok(u8::from(failed))
}

/// Compiles an expression in the syntax of the phone's `grep`: fixed, extended or basic. In a basic
/// one, `+`, `?`, `|`, braces and parentheses are no operators.
fn compile(text: &str, extended: bool, fixed: bool) -> Option<Regex> {
    let expression = match (fixed, extended) {
        (true, _) => regex::escape(text),
        (false, true) => text.to_owned(),
        (false, false) => {
            let escape = |c: char| "+?|{}()".contains(c).then_some('\\');
            let chars = text.chars().flat_map(|c| escape(c).into_iter().chain([c]));
            chars.collect()
        }
    };
    Regex::new(&expression).ok()
}

pub(super) fn grep(cmd: &mut Cmd) -> Done {
    let mut args = cmd.options("-E -F -v -q -h")?;
    if args.rest.is_empty() {
        return refuse(2, "grep: no REGEX");
    }
    let pattern = args.rest.remove(0);
    let Some(regex) = compile(&pattern, args.has("-E"), args.has("-F")) else {
        return refuse(2, format!("grep: bad REGEX '{pattern}'"));
    };
    let (inputs, failed) = cmd.inputs(&args.rest)?;
    let mut found = false;
    for (i, input) in inputs.iter().enumerate() {
        for line in String::from_utf8_lossy(input).lines() {
            if regex.is_match(line) == args.has("-v") {
                continue;
            }
            found = true;
            if args.has("-q") {
                return Ok(0);
            }
            let prefix = match args.rest.len() > 1 && !args.has("-h") {
                true => format!("{}:", args.rest[i]),
                false => String::new(),
            };
            cmd.out(&format!("{prefix}{line}\n"))?;
        }
    }
    Ok(if failed { 2 } else { u8::from(!found) })
}

pub(super) fn sha256sum(cmd: &mut Cmd) -> Done {
    use sha2::Digest as _;
    let paths = cmd.options("")?.rest;
    let (inputs, failed) = cmd.inputs(&paths)?;
    for (i, input) in inputs.iter().enumerate() {
        let hash = sha2::Sha256::digest(input);
        let hex: String = hash.iter().map(|b| format!("{b:02x}")).collect();
        let name = paths.get(i).map_or("-", String::as_str);
        cmd.out(&format!("{hex}  {name}\n"))?;
    }
    Ok(u8::from(failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_expressions_have_no_extended_operators() {
        let hits = |text: &str, line: &str| compile(text, false, false).unwrap().is_match(line);
        assert!(hits("^a.*c$", "abbc") && hits("[0-9][0-9]*", "ab42") && hits("a+", "a+b"));
        assert!(!hits("a+", "aab") && !hits("z", "ab"));
        assert!(hits(&"a*".repeat(40), &"a".repeat(40)));
    }
}
