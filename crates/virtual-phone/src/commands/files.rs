//! Programs that read, list and remove files, with toybox's behavior: cat, ls, rm, dd.

use super::{Cmd, Done};
use crate::fs::Body;
use crate::fs::Errno;
use crate::io::Fd;
use crate::spec::bytes;

pub(super) fn cat(cmd: &mut Cmd) -> Done {
    let Some((_, paths)) = cmd.flags("")? else {
        return Ok(1);
    };
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

/// `ls [-a] [DIRECTORY]` and `ls -d FILE…`.
pub(super) fn ls(cmd: &mut Cmd) -> Done {
    let Some((options, mut paths)) = cmd.flags("ad")? else {
        return Ok(1);
    };
    let has = |c: char| options.iter().any(|o| o.0 == c);
    if paths.is_empty() {
        paths.push(".".to_owned());
    }
    let mut status = 0;
    for path in &paths {
        let listed = match cmd.kernel.entry(&cmd.cred, &cmd.cwd, path, true) {
            Ok(entry) if has('d') || !matches!(entry.body, Body::Directory(_)) => {
                cmd.out(&format!("{path}\n"))?;
                continue;
            }
            Ok(_) => cmd.kernel.list(&cmd.cred, &cmd.cwd, path),
            Err(errno) => Err(errno),
        };
        let mut names = match listed {
            Ok(names) => names,
            Err(errno) => {
                cmd.failed(path, errno)?;
                status = 1;
                continue;
            }
        };
        names.retain(|name| {
            let full = format!("{path}/{name}");
            (has('a') || !name.starts_with('.'))
                && cmd.kernel.entry(&cmd.cred, &cmd.cwd, &full, false).is_ok()
        });
        names.sort();
        for name in names {
            cmd.out(&format!("{name}\n"))?;
        }
    }
    Ok(status)
}

pub(super) fn rm(cmd: &mut Cmd) -> Done {
    let Some((options, paths)) = cmd.flags("frR")? else {
        return Ok(1);
    };
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
    let mut input = None;
    let (mut size, mut count, mut skip) = (512u64, u64::MAX, 0u64);
    for arg in cmd.args() {
        let (key, value) = arg.split_once('=').unwrap_or((&arg, ""));
        match key {
            "if" => input = Some(value.to_owned()),
            "bs" => size = bytes(value).unwrap_or(512),
            "count" => count = value.parse().unwrap_or(0),
            "skip" => skip = value.parse().unwrap_or(0),
            _ => {
                cmd.err(&format!("dd: bad {key}\n"))?;
                return Ok(1);
            }
        }
    }
    let path = input.unwrap_or_default();
    let from = match cmd.kernel.open_read(&cmd.cred, &cmd.cwd, &path) {
        Ok(fd) => fd,
        Err(errno) => {
            cmd.failed(&path, errno)?;
            return Ok(1);
        }
    };
    if let Fd::File { position, .. } = &from {
        *crate::events::lock(position) += size.saturating_mul(skip);
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
        cmd.out_bytes(&block)?;
    }
    let blocks = copied / size.max(1);
    cmd.err(&format!(
        "{blocks}+0 records in\n{blocks}+0 records out\n{copied} bytes copied, 0.01 s, 100 M/s\n"
    ))?;
    Ok(0)
}
