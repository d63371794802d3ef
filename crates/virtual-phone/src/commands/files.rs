//! Programs that read, list and remove files, with toybox's behavior: cat, ls, rm, dd.

use super::{Cmd, Done, flags};
use crate::fs::Body;
use crate::fs::{DEVICE, DIRECTORY, Errno, LINK, Stat};
use crate::io::Fd;
use crate::logcat::timestamp;
use crate::process::user_name;
use crate::spec::bytes;

pub(super) fn cat(cmd: &mut Cmd) -> Done {
    let (_, paths) = flags(&cmd.args(), "");
    let stdin = cmd.fds.get(0).cloned().unwrap_or(Fd::Null);
    if paths.is_empty() {
        cmd.each_block(&stdin, |b| cmd.out_bytes(b))?;
        return Ok(0);
    }
    let mut status = 0;
    for path in &paths {
        if path == "-" {
            cmd.each_block(&stdin, |b| cmd.out_bytes(b))?;
            continue;
        }
        match cmd.kernel.open_read(&cmd.cred, &cmd.cwd, path) {
            Ok(fd) => cmd.each_block(&fd, |b| cmd.out_bytes(b))?,
            Err(errno) => {
                cmd.failed(path, errno)?;
                status = 1;
            }
        }
    }
    Ok(status)
}

fn type_letter(mode: u32) -> char {
    match mode & 0o170_000 {
        DIRECTORY => 'd',
        LINK => 'l',
        DEVICE => 'c',
        _ => '-',
    }
}

pub(super) fn mode_text(mode: u32) -> String {
    let mut text = String::from(type_letter(mode));
    for shift in [6, 3, 0] {
        for (bit, c) in [(4, 'r'), (2, 'w'), (1, 'x')] {
            text.push(if mode >> shift & bit != 0 { c } else { '-' });
        }
    }
    text
}

fn long_line(name: &str, stat: &Stat, link: Option<&str>) -> String {
    let year = 2024;
    let time = timestamp(stat.mtime.max(0) as u64 * 1_000_000_000);
    let to = link.map(|l| format!(" -> {l}")).unwrap_or_default();
    format!(
        "{} 1 {:<6} {:<6} {:>10} {year}-{} {name}{to}\n",
        mode_text(stat.mode),
        user_name(stat.uid),
        user_name(stat.gid),
        stat.size,
        &time[..11],
    )
}

pub(super) fn ls(cmd: &mut Cmd) -> Done {
    let (options, mut paths) = flags(&cmd.args(), "");
    let has = |c: char| options.iter().any(|o| o.0 == c);
    if paths.is_empty() {
        paths.push(".".to_owned());
    }
    let mut status = 0;
    let many = paths.len() > 1;
    for path in &paths {
        let follow = !has('l') || path.ends_with('/');
        let entry = match cmd.kernel.entry(&cmd.cred, &cmd.cwd, path, follow) {
            Ok(entry) => entry,
            Err(errno) => {
                cmd.failed(path, errno)?;
                status = 1;
                continue;
            }
        };
        if !matches!(entry.body, Body::Directory(_)) || has('d') {
            let link = match &entry.body {
                Body::Link(to) => Some(to.as_str()),
                _ => None,
            };
            if has('l') {
                cmd.out(&long_line(path, &entry.stat, link))?;
            } else {
                cmd.out(&format!("{path}\n"))?;
            }
            continue;
        }
        let mut names = match cmd.kernel.list(&cmd.cred, &cmd.cwd, path) {
            Ok(names) => names,
            Err(errno) => {
                cmd.failed(path, errno)?;
                status = 1;
                continue;
            }
        };
        names.retain(|n| has('a') || has('A') || !n.starts_with('.'));
        names.sort();
        if many {
            cmd.out(&format!("{path}:\n"))?;
        }
        if has('l') {
            cmd.out(&format!("total {}\n", names.len() * 4))?;
        }
        for name in names {
            let full = format!("{path}/{name}");
            let Ok(entry) = cmd.kernel.entry(&cmd.cred, &cmd.cwd, &full, false) else {
                continue;
            };
            if has('l') {
                let link = match &entry.body {
                    Body::Link(to) => Some(to.as_str()),
                    _ => None,
                };
                cmd.out(&long_line(&name, &entry.stat, link))?;
            } else {
                cmd.out(&format!("{name}\n"))?;
            }
        }
    }
    Ok(status)
}

pub(super) fn rm(cmd: &mut Cmd) -> Done {
    let (options, paths) = flags(&cmd.args(), "");
    let has = |c: char| options.iter().any(|o| o.0 == c);
    if paths.is_empty() && !has('f') {
        cmd.err(&format!("{}: Needs 1 argument\n", cmd.name()))?;
        return Ok(1);
    }
    let mut status = 0;
    for path in &paths {
        let tree = has('r') || has('R');
        let entry = cmd.kernel.entry(&cmd.cred, &cmd.cwd, path, false);
        let is_directory = matches!(entry.as_ref().map(|e| &e.body), Ok(Body::Directory(_)));
        let result = match entry {
            Err(errno) => Err(errno),
            Ok(_) if is_directory && !tree => Err(Errno::IsDirectory),
            Ok(_) => cmd.kernel.remove(&cmd.cred, &cmd.cwd, path, tree),
        };
        match result {
            Err(Errno::NoEntry) if has('f') => {}
            Err(errno) => {
                cmd.failed(path, errno)?;
                status = 1;
            }
            Ok(()) => {}
        }
    }
    Ok(status)
}

pub(super) fn dd(cmd: &mut Cmd) -> Done {
    let (mut input, mut output) = (None, None);
    let (mut size, mut count, mut skip) = (512u64, u64::MAX, 0u64);
    for arg in cmd.args() {
        let (key, value) = arg.split_once('=').unwrap_or((&arg, ""));
        match key {
            "if" => input = Some(value.to_owned()),
            "of" => output = Some(value.to_owned()),
            "bs" => size = bytes(value).unwrap_or(512),
            "count" => count = value.parse().unwrap_or(0),
            "skip" => skip = value.parse().unwrap_or(0),
            "status" | "conv" => {}
            _ => {
                cmd.err(&format!("dd: bad {key}\n"))?;
                return Ok(1);
            }
        }
    }
    let from = match &input {
        None => cmd.fds.get(0).cloned().unwrap_or(Fd::Null),
        Some(path) => match cmd.kernel.open_read(&cmd.cred, &cmd.cwd, path) {
            Ok(fd) => fd,
            Err(errno) => {
                cmd.failed(path, errno)?;
                return Ok(1);
            }
        },
    };
    let to = match &output {
        None => cmd.fds.get(1).cloned().unwrap_or(Fd::Null),
        Some(path) => match cmd
            .kernel
            .open_write(&cmd.cred, &cmd.cwd, path, 0o666, false)
        {
            Ok(fd) => fd,
            Err(errno) => {
                cmd.failed(path, errno)?;
                return Ok(1);
            }
        },
    };
    let mut ahead = size.saturating_mul(skip);
    if let Fd::File { position, .. } = &from {
        *crate::events::lock(position) += ahead;
        ahead = 0;
    }
    while ahead > 0 {
        let block = from.read(&cmd.kernel, cmd.pid, ahead.min(64 << 10) as usize)?;
        if block.is_empty() {
            break;
        }
        ahead -= block.len() as u64;
    }
    let mut left = size.saturating_mul(count);
    let mut copied = 0u64;
    while left > 0 {
        let block = from.read(&cmd.kernel, cmd.pid, left.min(64 << 10) as usize)?;
        if block.is_empty() {
            break;
        }
        left -= block.len() as u64;
        copied += block.len() as u64;
        if to.write(&cmd.kernel, cmd.pid, &block).is_err() {
            cmd.err("dd: write error: No space left on device\n")?;
            return Ok(1);
        }
    }
    let blocks = copied / size.max(1);
    cmd.err(&format!(
        "{blocks}+0 records in\n{blocks}+0 records out\n{copied} bytes copied, 0.01 s, 100 M/s\n"
    ))?;
    Ok(0)
}
