//! Programs on text: head, tail, wc, sort, tr, cut and the like.

use super::{Cmd, Done, flags};
use crate::io::Fd;
use crate::shell::format::{format_printf, unescape};

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
    match crate::shell::test(&cmd.kernel, &cmd.cred, &cmd.cwd, &args) {
        Ok(yes) => Ok(u8::from(!yes)),
        Err(error) => {
            cmd.err(&format!("test: {error}\n"))?;
            Ok(2)
        }
    }
}

pub(super) fn lines(bytes: &[u8]) -> Vec<String> {
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
    if let (Some(bytes), true) = (&bytes, paths.is_empty()) {
        // It ends after so many bytes, whether more could come or not.
        let stdin = cmd.fds.get(0).cloned().unwrap_or(Fd::Null);
        let mut left = bytes.parse::<usize>().unwrap_or(0);
        while left > 0 {
            let block = stdin.read(&cmd.kernel, cmd.pid, left.min(64 << 10))?;
            if block.is_empty() {
                break;
            }
            cmd.out_bytes(&block)?;
            left -= block.len();
        }
        return Ok(0);
    }
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
    let stdin = cmd.fds.get(0).cloned().unwrap_or(crate::io::Fd::Null);
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
