//! Programs that read, list and remove files, with toybox's behavior: cat, ls, rm, dd, stat, df.

use super::{Cmd, Done, refuse};
use crate::faults::FaultKind;
use crate::fs::{Body, Errno, normalize};
use crate::io::Fd;
use crate::spec::bytes;

pub(super) fn cat(cmd: &mut Cmd) -> Done {
    let mut paths = cmd.options("")?.rest;
    if paths.is_empty() {
        paths.push("-".to_owned());
    }
    cmd.each_path(&paths, |path| {
        let input = match path {
            "-" => cmd.stdin(),
            path => cmd.kernel.open_read(&cmd.cred, &cmd.cwd, path)?,
        };
        cmd.each_block(&input, |block| cmd.out_bytes(block))
    })
}

/// `ls [-a] [DIRECTORY]` and `ls -d FILE…`.
pub(super) fn ls(cmd: &mut Cmd) -> Done {
    let mut args = cmd.options("-a -d")?;
    if args.rest.is_empty() {
        args.rest.push(".".to_owned());
    }
    let entry = |path: &str, follow| cmd.kernel.entry(&cmd.cred, &cmd.cwd, path, follow);
    cmd.each_path(&args.rest, |path| {
        let is_directory = matches!(entry(path, true)?.body, Body::Directory(_));
        if args.has("-d") || !is_directory {
            return cmd.out(&format!("{path}\n"));
        }
        let mut names = cmd.kernel.list(&cmd.cred, &cmd.cwd, path)?;
        names.retain(|name| {
            (args.has("-a") || !name.starts_with('.'))
                && entry(&format!("{path}/{name}"), false).is_ok()
        });
        names.sort();
        let mut lines = names.iter().map(|name| format!("{name}\n"));
        lines.try_for_each(|line| cmd.out(&line))
    })
}

pub(super) fn rm(cmd: &mut Cmd) -> Done {
    let args = cmd.options("-f")?;
    if args.rest.is_empty() && !args.has("-f") {
        return refuse(1, "rm: Needs 1 argument");
    }
    cmd.each_path(&args.rest, |path| {
        match cmd.kernel.remove(&cmd.cred, &cmd.cwd, path) {
            Err(Errno::NoEntry) if args.has("-f") => Ok(()),
            removed => Ok(removed?),
        }
    })
}

pub(super) fn dd(cmd: &mut Cmd) -> Done {
    let mut path = String::new();
    let (mut size, mut count, mut skip) = (512u64, u64::MAX, 0u64);
    for arg in cmd.args() {
        let (key, value) = arg.split_once('=').unwrap_or((&arg, ""));
        match key {
            "if" => path = value.to_owned(),
            "bs" => size = bytes(value).unwrap_or(512),
            "count" => count = value.parse().unwrap_or(0),
            "skip" => skip = value.parse().unwrap_or(0),
            _ => return refuse(1, format!("dd: bad {key}")),
        }
    }
    let mut copied = 0;
    let status = cmd.each_path(&[path], |path| {
        let from = cmd.kernel.open_read(&cmd.cred, &cmd.cwd, path)?;
        if let Fd::File { position, .. } = &from {
            *crate::events::lock(position) += size.saturating_mul(skip);
        }
        copied = cmd.copy(&from, size.saturating_mul(count))?;
        Ok(())
    })?;
    if status == 0 {
        let blocks = copied / size.max(1);
        cmd.err(&format!(
            "{blocks}+0 records in\n{blocks}+0 records out\n{copied} bytes copied, 0.01 s, 100 M/s\n"
        ))?;
    }
    Ok(status)
}

/// `stat -c FORMAT`, with `%s` and `%u`.
pub(super) fn stat(cmd: &mut Cmd) -> Done {
    let args = cmd.options("-c:")?;
    let Some(format) = args.value("-c") else {
        return cmd.only("-c FORMAT");
    };
    cmd.each_path(&args.rest, |path| {
        let entry = cmd.kernel.entry(&cmd.cred, &cmd.cwd, path, false)?;
        let stat = cmd.kernel.told_stat(entry.stat);
        let line = format.replace("%s", &stat.size.to_string());
        cmd.out(&format!("{}\n", line.replace("%u", &stat.uid.to_string())))
    })
}

/// Returns the size in bytes of all files below a path.
fn usage(cmd: &Cmd, path: &str) -> u64 {
    let entry = cmd.kernel.entry(&cmd.cred, &cmd.cwd, path, false);
    match entry.map(|entry| entry.body) {
        Ok(Body::File(data)) => data.len(),
        Ok(Body::Directory(names)) => {
            let below = names
                .iter()
                .map(|name| usage(cmd, &format!("{path}/{name}")));
            below.sum()
        }
        _ => 0,
    }
}

/// Runs `df`. Free space below /data is that of the specification minus the bytes written since.
pub(super) fn df(cmd: &mut Cmd) -> Done {
    let paths = cmd.options("-k")?.rest;
    let written = usage(cmd, "/data/local/tmp") + usage(cmd, "/data/misc/perfetto-traces");
    let free = cmd.kernel.spec.space.saturating_sub(written);
    let limit = cmd.kernel.faults.value(FaultKind::DiskFull, 0);
    let free = free.min(limit.unwrap_or(u64::MAX));
    let total: u64 = 112 << 30;
    let rows = [
        ("/dev/fuse", total, free, "/storage/emulated"),
        ("/dev/block/dm-47", total, free, "/data"),
        ("tmpfs", 3_915_540 << 10, 3_914_100 << 10, "/dev"),
        ("/dev/block/dm-5", 911_356 << 10, 0, "/"),
    ];
    let mut out = "Filesystem       1K-blocks     Used Available Use% Mounted on\n".to_owned();
    let status = cmd.each_path(&paths, |path| {
        cmd.kernel.entry(&cmd.cred, &cmd.cwd, path, true)?;
        let parts = normalize(&cmd.cwd, path);
        let parts = cmd.kernel.state().tree.resolve(&parts, true)?;
        let absolute = format!("/{}", parts.join("/"));
        let row = rows.iter().find(|row| absolute.starts_with(row.3));
        let (name, size, avail, mount) = row.unwrap_or(&rows[3]);
        let used = size.saturating_sub(*avail);
        out.push_str(&format!(
            "{name:<16} {:>9} {:>8} {:>9} {:>3}% {mount}\n",
            size / 1024,
            used / 1024,
            avail / 1024,
            used * 100 / size,
        ));
        Ok(())
    })?;
    cmd.end(status, &out)
}
