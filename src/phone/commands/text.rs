//! Programs on text: grep, head, tail, wc, tr, sed and the like, and printf's formats.

use super::{Cmd, Done, flags};

/// Resolves the backslash escapes of `echo -e` and `printf`; second: whether `\c` ended it.
pub(crate) fn unescape(text: &str) -> (String, bool) {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('a') => out.push('\u{7}'),
            Some('b') => out.push('\u{8}'),
            Some('e') => out.push('\u{1b}'),
            Some('\\') => out.push('\\'),
            Some('c') => return (out, true),
            Some(digit @ '0'..='7') => {
                let mut value = digit.to_digit(8).unwrap_or(0);
                for _ in 0..3 {
                    let Some(d) = chars.peek().and_then(|c| c.to_digit(8)) else {
                        break;
                    };
                    value = value * 8 + d;
                    chars.next();
                }
                out.extend(char::from_u32(value & 0xff));
            }
            Some('x') => {
                let mut value = 0;
                for _ in 0..2 {
                    let Some(d) = chars.peek().and_then(|c| c.to_digit(16)) else {
                        break;
                    };
                    value = value * 16 + d;
                    chars.next();
                }
                out.extend(char::from_u32(value));
            }
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
    (out, false)
}

/// Widest field of a `printf`.
const MAX_WIDTH: usize = 4096;

/// `printf FORMAT ARG…`: the format is used again while arguments are left.
pub(crate) fn format_printf(format: &str, args: &[String]) -> String {
    let mut out = String::new();
    let mut args = args.iter();
    loop {
        let before = args.len();
        let mut chars = format.chars().peekable();
        let mut literal = String::new();
        while let Some(c) = chars.next() {
            if c != '%' {
                literal.push(c);
                if c == '\\' {
                    literal.extend(chars.next());
                }
                continue;
            }
            out.push_str(&unescape(&std::mem::take(&mut literal)).0);
            let mut flags = String::new();
            while let Some(c) = chars.next_if(|c| "-+ 0#".contains(*c)) {
                flags.push(c);
            }
            let number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| {
                let mut digits = String::new();
                while let Some(c) = chars.next_if(char::is_ascii_digit) {
                    digits.push(c);
                }
                digits.parse::<usize>().ok().map(|n| n.min(MAX_WIDTH))
            };
            let width = number(&mut chars).unwrap_or(0);
            let precision = match chars.next_if_eq(&'.') {
                Some(_) => number(&mut chars),
                None => None,
            };
            let mut arg = || args.next().cloned().unwrap_or_default();
            let text = match chars.next() {
                Some('%') => "%".to_owned(),
                Some('s') => {
                    let text = arg();
                    precision.map_or(text.clone(), |p| text.chars().take(p).collect())
                }
                Some('b') => unescape(&arg()).0,
                Some('c') => arg().chars().take(1).collect(),
                Some('d' | 'i' | 'u') => {
                    let n = integer(&arg());
                    if flags.contains('+') && n >= 0 {
                        format!("+{n}")
                    } else {
                        n.to_string()
                    }
                }
                Some('x') => format!("{:x}", integer(&arg())),
                Some('X') => format!("{:X}", integer(&arg())),
                Some('o') => format!("{:o}", integer(&arg())),
                Some('f') => {
                    let value: f64 = arg().trim().parse().unwrap_or(0.0);
                    format!("{value:.p$}", p = precision.unwrap_or(6))
                }
                Some(other) => format!("%{other}"),
                None => "%".to_owned(),
            };
            let pad = width.saturating_sub(text.chars().count());
            if flags.contains('-') {
                out.push_str(&text);
                out.extend(std::iter::repeat_n(' ', pad));
            } else if flags.contains('0') {
                let sign = usize::from(text.starts_with('-'));
                out.push_str(&text[..sign]);
                out.extend(std::iter::repeat_n('0', pad));
                out.push_str(&text[sign..]);
            } else {
                out.extend(std::iter::repeat_n(' ', pad));
                out.push_str(&text);
            }
        }
        out.push_str(&unescape(&literal).0);
        if args.len() == 0 || args.len() == before {
            return out;
        }
    }
}

fn integer(text: &str) -> i64 {
    let text = text.trim();
    if let Some(c) = text.strip_prefix(['\'', '"']) {
        return c.chars().next().map_or(0, |c| i64::from(u32::from(c)));
    }
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).unwrap_or(0),
        None => text.parse().unwrap_or(0),
    }
}

pub(super) fn printf(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let Some((format, rest)) = args.split_first() else {
        cmd.err("printf: Needs 1 argument\n")?;
        return Ok(1);
    };
    cmd.out(&format_printf(format, rest))?;
    Ok(0)
}

pub(super) fn echo(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let (args, newline) = match args.split_first() {
        Some((flag, rest)) if flag == "-n" => (rest.to_vec(), ""),
        _ => (args, "\n"),
    };
    cmd.out(&format!("{}{newline}", args.join(" ")))?;
    Ok(0)
}

pub(super) fn test(cmd: &mut Cmd) -> Done {
    let mut args = cmd.args();
    if cmd.name() == "[" && args.pop().as_deref() != Some("]") {
        cmd.err("[: missing ]\n")?;
        return Ok(2);
    }
    match crate::phone::shell::test(&cmd.kernel, &cmd.cred, &cmd.cwd, &args) {
        Ok(yes) => Ok(u8::from(!yes)),
        Err(error) => {
            cmd.err(&format!("test: {error}\n"))?;
            Ok(2)
        }
    }
}

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes)
        .lines()
        .map(str::to_owned)
        .collect()
}

/// How much `head` and `tail` take.
fn amount(args: &[String]) -> (Option<String>, Option<String>, Vec<String>) {
    // `-5` is `-n 5`.
    let args: Vec<String> = args
        .iter()
        .flat_map(|a| match a.strip_prefix('-') {
            Some(n) if !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => {
                vec!["-n".to_owned(), n.to_owned()]
            }
            _ => vec![a.clone()],
        })
        .collect();
    let (options, paths) = flags(&args, "nc");
    let value = |c: char| options.iter().find(|o| o.0 == c).and_then(|o| o.1.clone());
    (value('n'), value('c'), paths)
}

pub(super) fn head(cmd: &mut Cmd) -> Done {
    let (count, bytes, paths) = amount(&cmd.args());
    let (inputs, failed) = cmd.inputs(&paths)?;
    for input in inputs {
        if let Some(bytes) = &bytes {
            let n = bytes.parse::<usize>().unwrap_or(0).min(input.len());
            cmd.out_bytes(&input[..n])?;
            continue;
        }
        let n: usize = count.as_deref().and_then(|c| c.parse().ok()).unwrap_or(10);
        for line in input.split_inclusive(|b| *b == b'\n').take(n) {
            cmd.out_bytes(line)?;
        }
    }
    Ok(u8::from(failed))
}

pub(super) fn tail(cmd: &mut Cmd) -> Done {
    let (count, bytes, paths) = amount(&cmd.args());
    let (inputs, failed) = cmd.inputs(&paths)?;
    for input in inputs {
        // `+N` counts from the start.
        let (text, from_start) = match bytes.as_deref().or(count.as_deref()) {
            Some(t) => (t.trim_start_matches(['+', '-']), t.starts_with('+')),
            None => ("10", false),
        };
        let n = text.parse::<usize>().unwrap_or(10);
        if bytes.is_some() {
            let from = if from_start {
                n.saturating_sub(1)
            } else {
                input.len().saturating_sub(n)
            };
            cmd.out_bytes(&input[from.min(input.len())..])?;
            continue;
        }
        let all: Vec<&[u8]> = input.split_inclusive(|b| *b == b'\n').collect();
        let from = if from_start {
            n.saturating_sub(1)
        } else {
            all.len().saturating_sub(n)
        };
        for line in all.into_iter().skip(from) {
            cmd.out_bytes(line)?;
        }
    }
    Ok(u8::from(failed))
}

/// A regular expression of the simple kind: `.`, `*`, `+`, `?`, `^`, `$`, classes,
/// alternatives. Enough for what scripts look for; backtracking is bounded.
struct Regex {
    alternatives: Vec<Vec<Atom>>,
    ignore_case: bool,
}

struct Atom {
    what: What,
    least: u8,
    many: bool,
    optional: bool,
}

enum What {
    Start,
    End,
    Any,
    Char(char),
    Class(bool, Vec<(char, char)>),
}

impl Regex {
    fn new(text: &str, extended: bool, fixed: bool, ignore_case: bool) -> Regex {
        let parts: Vec<&str> = match (fixed, extended) {
            (true, _) => text.split('\n').collect(),
            (_, true) => text.split('|').collect(),
            _ => text.split("\\|").collect(),
        };
        let alternatives = parts
            .into_iter()
            .map(|p| Self::atoms(p, extended, fixed))
            .collect();
        Regex {
            alternatives,
            ignore_case,
        }
    }

    fn atoms(text: &str, extended: bool, fixed: bool) -> Vec<Atom> {
        let mut atoms: Vec<Atom> = Vec::new();
        let chars: Vec<char> = text.chars().collect();
        let mut i = 0;
        while i < chars.len() {
            let c = chars[i];
            i += 1;
            let what = match c {
                c if fixed => What::Char(c),
                '^' if atoms.is_empty() => What::Start,
                '$' if i == chars.len() => What::End,
                '.' => What::Any,
                '\\' if i < chars.len() => {
                    i += 1;
                    match chars[i - 1] {
                        'd' => What::Class(false, vec![('0', '9')]),
                        's' => What::Class(false, vec![(' ', ' '), ('\t', '\t')]),
                        '+' if !extended => {
                            Self::repeat(&mut atoms, 1, true, false);
                            continue;
                        }
                        '?' if !extended => {
                            Self::repeat(&mut atoms, 0, false, true);
                            continue;
                        }
                        c => What::Char(c),
                    }
                }
                '[' => {
                    let (what, next) = Self::class(&chars, i);
                    i = next;
                    what
                }
                '*' if !atoms.is_empty() => {
                    Self::repeat(&mut atoms, 0, true, false);
                    continue;
                }
                '+' if extended && !atoms.is_empty() => {
                    Self::repeat(&mut atoms, 1, true, false);
                    continue;
                }
                '?' if extended && !atoms.is_empty() => {
                    Self::repeat(&mut atoms, 0, false, true);
                    continue;
                }
                '(' | ')' if extended => continue,
                c => What::Char(c),
            };
            atoms.push(Atom {
                what,
                least: 1,
                many: false,
                optional: false,
            });
        }
        atoms
    }

    fn repeat(atoms: &mut [Atom], least: u8, many: bool, optional: bool) {
        if let Some(last) = atoms.last_mut() {
            (last.least, last.many, last.optional) = (least, many, optional);
        }
    }

    fn class(chars: &[char], mut i: usize) -> (What, usize) {
        let negated = chars.get(i) == Some(&'^');
        i += usize::from(negated);
        let first = i;
        let mut ranges = Vec::new();
        while let Some(c) = chars.get(i) {
            if *c == ']' && i > first {
                return (What::Class(negated, ranges), i + 1);
            }
            let rest: String = chars[i..].iter().take(10).collect();
            if let Some(set) = [
                ("[:digit:]", vec![('0', '9')]),
                ("[:space:]", vec![(' ', ' '), ('\t', '\r')]),
                ("[:alpha:]", vec![('a', 'z'), ('A', 'Z')]),
                ("[:alnum:]", vec![('a', 'z'), ('A', 'Z'), ('0', '9')]),
            ]
            .into_iter()
            .find(|(name, _)| rest.starts_with(name))
            {
                ranges.extend(set.1);
                i += set.0.len();
                continue;
            }
            match (chars.get(i + 1), chars.get(i + 2)) {
                (Some('-'), Some(end)) if *end != ']' => {
                    ranges.push((*c, *end));
                    i += 3;
                }
                _ => {
                    ranges.push((*c, *c));
                    i += 1;
                }
            }
        }
        (What::Char('['), first)
    }

    fn atom_hits(&self, atom: &Atom, c: char) -> bool {
        let same = |a: char, b: char| a == b || (self.ignore_case && a.eq_ignore_ascii_case(&b));
        match &atom.what {
            What::Any => true,
            What::Char(wanted) => same(*wanted, c),
            What::Class(negated, ranges) => {
                ranges.iter().any(|(a, b)| (*a..=*b).contains(&c)) != *negated
            }
            What::Start | What::End => false,
        }
    }

    /// The end of a match that starts at `at`.
    fn match_at(
        &self,
        atoms: &[Atom],
        text: &[char],
        at: usize,
        budget: &mut u32,
    ) -> Option<usize> {
        *budget = budget.checked_sub(1)?;
        let Some((atom, rest)) = atoms.split_first() else {
            return Some(at);
        };
        match atom.what {
            What::Start => return (at == 0).then(|| self.match_at(rest, text, at, budget))?,
            What::End => {
                return (at == text.len()).then(|| self.match_at(rest, text, at, budget))?;
            }
            _ => {}
        }
        let most = if atom.many { text.len() - at } else { 1 };
        let mut n = 0;
        while n < most && text.get(at + n).is_some_and(|c| self.atom_hits(atom, *c)) {
            n += 1;
        }
        let least = if atom.optional {
            0
        } else {
            usize::from(atom.least)
        };
        loop {
            if n < least {
                return None;
            }
            if let Some(end) = self.match_at(rest, text, at + n, budget) {
                return Some(end);
            }
            n = n.checked_sub(1)?;
        }
    }

    fn find(&self, text: &[char]) -> Option<(usize, usize)> {
        let mut budget = 2_000_000;
        (0..=text.len()).find_map(|at| {
            self.alternatives
                .iter()
                .find_map(|a| self.match_at(a, text, at, &mut budget).map(|end| (at, end)))
        })
    }
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
    let regex = Regex::new(&pattern, has('E'), has('F'), has('i'));
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
            let chars: Vec<char> = line.chars().collect();
            let hit = regex.find(&chars).filter(|(from, to)| {
                let whole = !has('x') || (*from == 0 && *to == chars.len());
                let edge = |c: Option<&char>| c.is_none_or(|c| !c.is_alphanumeric() && *c != '_');
                let word = !has('w')
                    || (edge(from.checked_sub(1).and_then(|f| chars.get(f)))
                        && edge(chars.get(*to)));
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
                Some((from, to)) if has('o') => chars[from..to].iter().collect(),
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

/// `s/a/b/[g]`, `/re/d`, `/re/p`, `Np` with `-n`: what scripts on phones use.
pub(super) fn sed(cmd: &mut Cmd) -> Done {
    let (options, mut rest) = flags(&cmd.args(), "e");
    let quiet = options.iter().any(|o| o.0 == 'n');
    let extended = options.iter().any(|o| o.0 == 'E' || o.0 == 'r');
    let script = match options
        .iter()
        .find(|o| o.0 == 'e')
        .and_then(|o| o.1.clone())
    {
        Some(script) => script,
        None if rest.is_empty() => {
            cmd.err("sed: Needs 1 argument\n")?;
            return Ok(1);
        }
        None => rest.remove(0),
    };
    let (inputs, failed) = cmd.inputs(&rest)?;
    for input in inputs {
        for (number, line) in lines(&input).into_iter().enumerate() {
            let chars: Vec<char> = line.chars().collect();
            let mut parts = script.chars();
            let output = match parts.next() {
                Some('s') => {
                    let separator = parts.next().unwrap_or('/');
                    let body: String = parts.collect();
                    let fields: Vec<&str> = body.split(separator).collect();
                    let [from, to, options, ..] = fields[..] else {
                        cmd.err("sed: unfinished s\n")?;
                        return Ok(1);
                    };
                    let regex = Regex::new(from, extended, false, options.contains('i'));
                    let (text, hit) = substitute(&regex, &chars, to, options.contains('g'));
                    (!quiet || (hit && options.contains('p'))).then_some(text)
                }
                Some('/') => {
                    let Some((pattern, action)) = script[1..].rsplit_once('/') else {
                        cmd.err("sed: no closing /\n")?;
                        return Ok(1);
                    };
                    let hit = Regex::new(pattern, extended, false, false)
                        .find(&chars)
                        .is_some();
                    match action {
                        "d" => (!hit && !quiet).then_some(line),
                        "p" => (hit || !quiet).then_some(line),
                        _ => {
                            cmd.err(&format!("sed: bad command '{action}'\n"))?;
                            return Ok(1);
                        }
                    }
                }
                _ => match script
                    .strip_suffix('p')
                    .and_then(|n| n.parse::<usize>().ok())
                {
                    Some(n) => (n == number + 1 || !quiet).then_some(line),
                    None => {
                        cmd.err(&format!("sed: bad pattern '{script}'\n"))?;
                        return Ok(1);
                    }
                },
            };
            if let Some(text) = output {
                cmd.out(&format!("{text}\n"))?;
            }
        }
    }
    Ok(u8::from(failed))
}

fn substitute(regex: &Regex, text: &[char], to: &str, all: bool) -> (String, bool) {
    let mut out = String::new();
    let mut at = 0;
    let mut hit = false;
    while at <= text.len() {
        let found = if hit && !all {
            None
        } else {
            regex.find(&text[at..])
        };
        let Some((from, end)) = found else { break };
        hit = true;
        out.extend(&text[at..at + from]);
        let matched: String = text[at + from..at + end].iter().collect();
        out.push_str(&to.replace('&', &matched));
        if end == from {
            out.extend(text.get(at + end));
            at += 1;
        }
        at += end;
        // An anchored pattern can't match again further on.
        if regex.alternatives.iter().any(|a| {
            matches!(
                a.first(),
                Some(Atom {
                    what: What::Start,
                    ..
                })
            )
        }) {
            break;
        }
    }
    out.extend(text.get(at..).unwrap_or_default());
    (out, hit)
}

pub(super) fn wc(cmd: &mut Cmd) -> Done {
    let (options, paths) = flags(&cmd.args(), "");
    let (inputs, failed) = cmd.inputs(&paths)?;
    for (i, input) in inputs.iter().enumerate() {
        let counts = [
            ('l', input.iter().filter(|b| **b == b'\n').count()),
            (
                'w',
                String::from_utf8_lossy(input).split_whitespace().count(),
            ),
            ('c', input.len()),
        ];
        let wanted = |c: char| options.is_empty() || options.iter().any(|o| o.0 == c);
        let mut fields: Vec<String> = counts
            .iter()
            .filter(|(c, _)| wanted(*c))
            .map(|(_, n)| n.to_string())
            .collect();
        fields.extend(paths.get(i).cloned());
        cmd.out(&format!("{}\n", fields.join(" ")))?;
    }
    Ok(u8::from(failed))
}

pub(super) fn sort(cmd: &mut Cmd) -> Done {
    let (options, paths) = flags(&cmd.args(), "kt");
    let has = |c: char| options.iter().any(|o| o.0 == c);
    let (inputs, failed) = cmd.inputs(&paths)?;
    let mut all: Vec<String> = inputs.iter().flat_map(|i| lines(i)).collect();
    if has('n') {
        let number = |l: &String| {
            let digits: String = l
                .trim_start()
                .chars()
                .take_while(|c| c.is_ascii_digit() || *c == '-')
                .collect();
            digits.parse::<i64>().unwrap_or(0)
        };
        all.sort_by_key(number);
    } else {
        all.sort();
    }
    if has('r') {
        all.reverse();
    }
    if has('u') {
        all.dedup();
    }
    for line in all {
        cmd.out(&format!("{line}\n"))?;
    }
    Ok(u8::from(failed))
}

pub(super) fn uniq(cmd: &mut Cmd) -> Done {
    let (_, paths) = flags(&cmd.args(), "");
    let (inputs, failed) = cmd.inputs(&paths)?;
    let mut all: Vec<String> = inputs.iter().flat_map(|i| lines(i)).collect();
    all.dedup();
    for line in all {
        cmd.out(&format!("{line}\n"))?;
    }
    Ok(u8::from(failed))
}

/// The characters of a `tr` set, ranges and escapes resolved.
fn tr_set(text: &str) -> Vec<char> {
    let chars: Vec<char> = unescape(text).0.chars().collect();
    let mut set = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        match (chars.get(i + 1), chars.get(i + 2)) {
            (Some('-'), Some(end)) => {
                set.extend(chars[i]..=*end);
                i += 3;
            }
            _ => {
                set.push(chars[i]);
                i += 1;
            }
        }
    }
    set
}

pub(super) fn tr(cmd: &mut Cmd) -> Done {
    let (options, sets) = flags(&cmd.args(), "");
    let has = |c: char| options.iter().any(|o| o.0 == c);
    let Some(from) = sets.first().map(|s| tr_set(s)) else {
        cmd.err("tr: Needs 1 argument\n")?;
        return Ok(1);
    };
    let to = sets.get(1).map(|s| tr_set(s)).unwrap_or_default();
    let input = cmd.stdin()?;
    let mut out = Vec::with_capacity(input.len());
    for byte in input {
        let c = char::from(byte);
        let at = from.iter().position(|f| *f == c);
        let hit = at.is_some() != has('c');
        if has('d') {
            if !hit {
                out.push(byte);
            }
        } else if hit && !to.is_empty() {
            let at = at.unwrap_or(usize::MAX).min(to.len() - 1);
            let new = to[at] as u8;
            if !(has('s') && out.last() == Some(&new)) {
                out.push(new);
            }
        } else if !(hit && has('s') && out.last() == Some(&byte)) {
            out.push(byte);
        }
    }
    cmd.out_bytes(&out)?;
    Ok(0)
}

pub(super) fn cut(cmd: &mut Cmd) -> Done {
    let (options, paths) = flags(&cmd.args(), "dfc");
    let value = |c: char| options.iter().find(|o| o.0 == c).and_then(|o| o.1.clone());
    let delimiter = value('d').and_then(|d| d.chars().next()).unwrap_or('\t');
    let by_char = value('c');
    let list = by_char
        .clone()
        .or_else(|| value('f'))
        .unwrap_or_else(|| "1".to_owned());
    let ranges: Vec<(usize, usize)> = list
        .split(',')
        .map(|r| match r.split_once('-') {
            Some((a, b)) => (a.parse().unwrap_or(1), b.parse().unwrap_or(usize::MAX)),
            None => (r.parse().unwrap_or(1), r.parse().unwrap_or(1)),
        })
        .collect();
    let chosen = |i: usize| ranges.iter().any(|(a, b)| (*a..=*b).contains(&(i + 1)));
    let (inputs, failed) = cmd.inputs(&paths)?;
    for line in inputs.iter().flat_map(|i| lines(i)) {
        let text = if by_char.is_some() {
            line.chars()
                .enumerate()
                .filter(|(i, _)| chosen(*i))
                .map(|(_, c)| c)
                .collect()
        } else if line.contains(delimiter) {
            let fields = line
                .split(delimiter)
                .enumerate()
                .filter(|(i, _)| chosen(*i));
            fields
                .map(|(_, f)| f)
                .collect::<Vec<_>>()
                .join(&delimiter.to_string())
        } else {
            line
        };
        cmd.out(&format!("{text}\n"))?;
    }
    Ok(u8::from(failed))
}

pub(super) fn tee(cmd: &mut Cmd) -> Done {
    let (options, paths) = flags(&cmd.args(), "");
    let append = options.iter().any(|o| o.0 == 'a');
    let mut files = Vec::new();
    let mut status = 0;
    for path in &paths {
        match cmd
            .kernel
            .open_write(&cmd.cred, &cmd.cwd, path, 0o666, append)
        {
            Ok(fd) => files.push(fd),
            Err(errno) => {
                cmd.failed(path, errno)?;
                status = 1;
            }
        }
    }
    let stdin = cmd
        .fds
        .get(0)
        .cloned()
        .unwrap_or(crate::phone::io::Fd::Null);
    cmd.each_block(&stdin, |block| {
        for file in &files {
            if file.write(&cmd.kernel, cmd.pid, block).is_err() {
                status = 1;
            }
        }
        cmd.out_bytes(block)
    })?;
    Ok(status)
}

pub(super) fn basename(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let path = args
        .first()
        .map_or("", String::as_str)
        .trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = args
        .get(1)
        .and_then(|s| name.strip_suffix(s.as_str()))
        .unwrap_or(name);
    cmd.out(&format!("{name}\n"))?;
    Ok(0)
}

pub(super) fn dirname(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let path = args
        .first()
        .map_or("", String::as_str)
        .trim_end_matches('/');
    let dir = match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((dir, _)) => dir,
        None => ".",
    };
    cmd.out(&format!("{dir}\n"))?;
    Ok(0)
}

pub(super) fn seq(cmd: &mut Cmd) -> Done {
    let numbers: Vec<i64> = cmd.args().iter().filter_map(|a| a.parse().ok()).collect();
    let (first, step, last) = match numbers[..] {
        [last] => (1, 1, last),
        [first, last] => (first, 1, last),
        [first, step, last] if step != 0 => (first, step, last),
        _ => {
            cmd.err("seq: Needs 1 argument\n")?;
            return Ok(1);
        }
    };
    let mut n = first;
    while (step > 0 && n <= last) || (step < 0 && n >= last) {
        cmd.out(&format!("{n}\n"))?;
        n += step;
    }
    Ok(0)
}

pub(super) fn expr(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let number = |s: &str| s.parse::<i64>().ok();
    let value = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [one] => one.to_owned(),
        [a, op, b] => match (op, number(a), number(b)) {
            ("+", Some(a), Some(b)) => a.wrapping_add(b).to_string(),
            ("-", Some(a), Some(b)) => a.wrapping_sub(b).to_string(),
            ("*", Some(a), Some(b)) => a.wrapping_mul(b).to_string(),
            ("/", Some(a), Some(b)) if b != 0 => (a / b).to_string(),
            ("%", Some(a), Some(b)) if b != 0 => (a % b).to_string(),
            ("<", Some(a), Some(b)) => u8::from(a < b).to_string(),
            (">", Some(a), Some(b)) => u8::from(a > b).to_string(),
            ("=", _, _) => u8::from(a == b).to_string(),
            ("!=", _, _) => u8::from(a != b).to_string(),
            _ => {
                cmd.err("expr: syntax error\n")?;
                return Ok(2);
            }
        },
        _ => {
            cmd.err("expr: syntax error\n")?;
            return Ok(2);
        }
    };
    cmd.out(&format!("{value}\n"))?;
    Ok(u8::from(value == "0" || value.is_empty()))
}

/// sha256sum; md5sum is not had here and says so.
pub(super) fn digest(cmd: &mut Cmd) -> Done {
    use sha2::Digest as _;
    if cmd.name() != "sha256sum" {
        cmd.err(&format!(
            "{}: not supported on this virtual phone\n",
            cmd.name()
        ))?;
        return Ok(1);
    }
    let (_, paths) = flags(&cmd.args(), "");
    let (inputs, failed) = cmd.inputs(&paths)?;
    for (i, input) in inputs.iter().enumerate() {
        let hash = sha2::Sha256::digest(input);
        let hex: String = hash.iter().map(|b| format!("{b:02x}")).collect();
        cmd.out(&format!(
            "{hex}  {}\n",
            paths.get(i).map_or("-", String::as_str)
        ))?;
    }
    Ok(u8::from(failed))
}

pub(super) fn xxd(cmd: &mut Cmd) -> Done {
    let (options, paths) = flags(&cmd.args(), "lc");
    let plain = options.iter().any(|o| o.0 == 'p');
    let (inputs, failed) = cmd.inputs(&paths)?;
    for input in inputs {
        for (i, chunk) in input.chunks(if plain { 30 } else { 16 }).enumerate() {
            let hex: String = chunk.iter().map(|b| format!("{b:02x}")).collect();
            if plain {
                cmd.out(&format!("{hex}\n"))?;
                continue;
            }
            let pairs: Vec<&str> = (0..hex.len())
                .step_by(4)
                .map(|j| &hex[j..(j + 4).min(hex.len())])
                .collect();
            let text: String = chunk
                .iter()
                .map(|b| {
                    if b.is_ascii_graphic() || *b == b' ' {
                        char::from(*b)
                    } else {
                        '.'
                    }
                })
                .collect();
            cmd.out(&format!(
                "{:08x}: {:<39}  {text}\n",
                i * 16,
                pairs.join(" ")
            ))?;
        }
    }
    Ok(u8::from(failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printf_formats() {
        let args = |a: &[&str]| a.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            format_printf("%s=%d\\n", &args(&["a", "7", "b", "8"])),
            "a=7\nb=8\n"
        );
        assert_eq!(
            format_printf("%05d|%-4s|%4s|%%|%x", &args(&["-42", "ab", "cd", "255"])),
            "-0042|ab  |  cd|%|ff"
        );
        assert_eq!(format_printf("plain", &[]), "plain");
        assert_eq!(format_printf("\\055", &[]), "-");
    }

    #[test]
    fn regular_expressions_find() {
        let find = |re: &str, text: &str| {
            let chars: Vec<char> = text.chars().collect();
            Regex::new(re, false, false, false).find(&chars)
        };
        assert_eq!(find("^a.*c$", "abbc"), Some((0, 4)));
        assert_eq!(find("[0-9][0-9]*", "ab42"), Some((2, 4)));
        assert_eq!(find("x\\|b", "ab"), Some((1, 2)));
        assert_eq!(find("z", "ab"), None);
        assert_eq!(find(&"a*".repeat(40), &"a".repeat(40)), Some((0, 40)));
    }
}
