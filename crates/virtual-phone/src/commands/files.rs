//! Programs that read, list, copy and remove files, as toybox has them.

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

pub(super) fn type_letter(mode: u32) -> char {
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
    let directories = cmd.name() == "rmdir";
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
            Ok(_) if is_directory && !tree && !directories => Err(Errno::IsDirectory),
            Ok(_) if !is_directory && directories => Err(Errno::NotDirectory),
            Ok(_) => cmd
                .kernel
                .remove(&cmd.cred, &cmd.cwd, path, tree && !directories),
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

pub(super) fn mkdir(cmd: &mut Cmd) -> Done {
    let (options, paths) = flags(&cmd.args(), "m");
    let parents = options.iter().any(|o| o.0 == 'p');
    let mut status = 0;
    for path in &paths {
        let parts: Vec<&str> = path.split('/').collect();
        let first = if parents { 1 } else { parts.len() };
        for end in first..=parts.len() {
            let part = parts[..end].join("/");
            if part.is_empty() {
                continue;
            }
            match cmd.kernel.make_directory(&cmd.cred, &cmd.cwd, &part) {
                Ok(()) => {}
                Err(Errno::Exists) if parents => {}
                Err(_) if parents && end < parts.len() => {}
                Err(errno) => {
                    cmd.err(&format!("mkdir: '{path}': {}\n", errno.text()))?;
                    status = 1;
                }
            }
        }
    }
    Ok(status)
}

pub(super) fn touch(cmd: &mut Cmd) -> Done {
    let (_, paths) = flags(&cmd.args(), "dtr");
    let mut status = 0;
    for path in &paths {
        if let Err(errno) = cmd
            .kernel
            .open_write(&cmd.cred, &cmd.cwd, path, 0o666, true)
        {
            cmd.err(&format!("touch: '{path}': {}\n", errno.text()))?;
            status = 1;
        }
    }
    Ok(status)
}

pub(super) fn chmod(cmd: &mut Cmd) -> Done {
    let (_, rest) = flags(&cmd.args(), "");
    let Some((mode, paths)) = rest.split_first() else {
        cmd.err("chmod: Needs 2 arguments\n")?;
        return Ok(1);
    };
    let mut status = 0;
    for path in paths {
        let old = cmd.kernel.entry(&cmd.cred, &cmd.cwd, path, true);
        let old = old.map_or(0o644, |e| e.stat.mode & 0o7777);
        let mode = match (u32::from_str_radix(mode, 8), mode.rsplit_once('+')) {
            (Ok(mode), _) => mode,
            (_, Some((_, "x"))) => old | 0o111,
            (_, Some((_, "r"))) => old | 0o444,
            (_, Some((_, "w"))) => old | 0o222,
            _ => {
                cmd.err(&format!("chmod: bad mode '{mode}'\n"))?;
                return Ok(1);
            }
        };
        if let Err(errno) = cmd.kernel.change_mode(&cmd.cred, &cmd.cwd, path, mode) {
            cmd.err(&format!(
                "chmod: '{path}' to {mode:04o}: {}\n",
                errno.text()
            ))?;
            status = 1;
        }
    }
    Ok(status)
}

pub(super) fn mv(cmd: &mut Cmd) -> Done {
    let (_, paths) = flags(&cmd.args(), "");
    let [from, to] = paths.as_slice() else {
        cmd.err("mv: Needs 2 arguments\n")?;
        return Ok(1);
    };
    match cmd.kernel.rename(&cmd.cred, &cmd.cwd, from, to) {
        Ok(()) => Ok(0),
        Err(errno) => {
            cmd.err(&format!("mv: bad '{from}': {}\n", errno.text()))?;
            Ok(1)
        }
    }
}

fn copy(cmd: &Cmd, from: &Fd, to: &str, mode: u32) -> Done {
    let fd = match cmd.kernel.open_write(&cmd.cred, &cmd.cwd, to, mode, false) {
        Ok(fd) => fd,
        Err(errno) => {
            cmd.failed(to, errno)?;
            return Ok(1);
        }
    };
    let mut full = false;
    cmd.each_block(from, |b| {
        full |= fd.write(&cmd.kernel, cmd.pid, b).is_err();
        Ok(())
    })?;
    if full {
        cmd.failed(to, Errno::NoSpace)?;
        return Ok(1);
    }
    Ok(0)
}

pub(super) fn cp(cmd: &mut Cmd) -> Done {
    let (_, paths) = flags(&cmd.args(), "");
    let [from, to] = paths.as_slice() else {
        cmd.err("cp: Needs 2 arguments\n")?;
        return Ok(1);
    };
    let input = match cmd.kernel.open_read(&cmd.cred, &cmd.cwd, from) {
        Ok(fd) => fd,
        Err(errno) => {
            cmd.err(&format!("cp: bad '{from}': {}\n", errno.text()))?;
            return Ok(1);
        }
    };
    let into = cmd.kernel.entry(&cmd.cred, &cmd.cwd, to, true);
    let to = match into.map(|e| e.body) {
        Ok(Body::Directory(_)) => {
            format!("{to}/{}", from.rsplit('/').next().unwrap_or(from))
        }
        _ => to.clone(),
    };
    copy(cmd, &input, &to, 0o644)
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

pub(super) fn ln(cmd: &mut Cmd) -> Done {
    cmd.err("ln: cannot create symbolic link: Permission denied\n")?;
    Ok(1)
}

pub(super) fn readlink(cmd: &mut Cmd) -> Done {
    let (options, paths) = flags(&cmd.args(), "");
    let whole = cmd.name() == "realpath" || options.iter().any(|o| o.0 == 'f');
    let mut status = 0;
    for path in &paths {
        let entry = cmd.kernel.entry(&cmd.cred, &cmd.cwd, path, whole);
        match entry {
            Ok(_) if whole => {
                let parts = crate::fs::normalize(&cmd.cwd, path);
                let resolved = cmd.kernel.state().tree.resolve(&parts, true);
                let resolved = resolved.map_or(parts, |r| r).join("/");
                cmd.out(&format!("/{resolved}\n"))?;
            }
            Ok(entry) => match entry.body {
                Body::Link(to) => cmd.out(&format!("{to}\n"))?,
                _ => status = 1,
            },
            Err(errno) => {
                if whole {
                    cmd.failed(path, errno)?;
                }
                status = 1;
            }
        }
    }
    Ok(status)
}
