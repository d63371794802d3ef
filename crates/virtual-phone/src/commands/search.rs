//! grep and sed, with regular expressions of their own.

use super::text::lines;
use super::{Cmd, Done, flags};

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

#[cfg(test)]
mod tests {
    use super::*;

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
