//! Programs on text: echo, head, tail, sha256sum.

use super::{Cmd, Done};
use crate::io::Fd;

pub(super) fn echo(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let (args, newline) = match args.split_first() {
        Some((flag, rest)) if flag == "-n" => (rest.to_vec(), ""),
        _ => (args, "\n"),
    };
    cmd.out(&format!("{}{newline}", args.join(" ")))?;
    Ok(0)
}

pub(super) fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes)
        .lines()
        .map(str::to_owned)
        .collect()
}

pub(super) fn head(cmd: &mut Cmd) -> Done {
    let Some((options, paths)) = cmd.flags("n:c:")? else {
        return Ok(1);
    };
    let value = |c: char| options.iter().find(|o| o.0 == c).and_then(|o| o.1.clone());
    let bytes = value('c');
    if let (Some(bytes), true) = (&bytes, paths.is_empty()) {
        // It ends after this many bytes, even if more could follow.
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
        let n: usize = value('n').and_then(|n| n.parse().ok()).unwrap_or(10);
        for line in input.split_inclusive(|b| *b == b'\n').take(n) {
            cmd.out_bytes(line)?;
        }
    }
    Ok(u8::from(failed))
}

pub(super) fn tail(cmd: &mut Cmd) -> Done {
    let Some((options, paths)) = cmd.flags("n:")? else {
        return Ok(1);
    };
    let count = options.iter().find_map(|o| o.1.as_deref()).unwrap_or("10");
    let last = count
        .parse::<u16>()
        .ok()
        .filter(|_| !count.starts_with('+'));
    let Some(last) = last else {
        cmd.err("tail: only -n N is there on this virtual phone\n")?;
        return Ok(1);
    };
    let (inputs, failed) = cmd.inputs(&paths)?;
    for input in inputs {
        let all: Vec<&[u8]> = input.split_inclusive(|b| *b == b'\n').collect();
        for line in &all[all.len().saturating_sub(last.into())..] {
            cmd.out_bytes(line)?;
        }
    }
    Ok(u8::from(failed))
}

pub(super) fn sha256sum(cmd: &mut Cmd) -> Done {
    use sha2::Digest as _;
    let Some((_, paths)) = cmd.flags("")? else {
        return Ok(1);
    };
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
