//! stat and df: properties and sizes of files.

use super::{Cmd, Done};
use crate::faults::FaultKind;
use crate::fs::Body;
use crate::fs::Stat;

/// `stat -c FORMAT`.
pub(super) fn stat(cmd: &mut Cmd) -> Done {
    let Some((options, paths)) = cmd.flags("c:")? else {
        return Ok(1);
    };
    let format = options
        .iter()
        .find(|o| o.0 == 'c')
        .and_then(|o| o.1.clone());
    let Some(format) = format else {
        cmd.err("stat: only -c FORMAT is there on this virtual phone\n")?;
        return Ok(1);
    };
    let mut status = 0;
    for path in &paths {
        let stat = match cmd.kernel.entry(&cmd.cred, &cmd.cwd, path, false) {
            Ok(entry) => entry.stat,
            Err(errno) => {
                cmd.err(&format!("stat: '{path}': {}\n", errno.text()))?;
                status = 1;
                continue;
            }
        };
        let stat = match cmd.kernel.faults.strikes(FaultKind::StatLies) {
            Some(more) => Stat {
                size: stat.size.saturating_add_signed(more.unwrap_or(0)),
                ..stat
            },
            None => stat,
        };
        cmd.out(&format!("{}\n", stat_format(&format, &stat)))?;
    }
    Ok(status)
}

fn stat_format(format: &str, stat: &Stat) -> String {
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        out.push_str(&match chars.next() {
            Some('s') => stat.size.to_string(),
            Some('u') => stat.uid.to_string(),
            other => format!("%{}", other.map_or(String::new(), String::from)),
        });
    }
    out
}

/// Returns the size in bytes of all files below a path.
fn usage(cmd: &Cmd, path: &str, depth: usize) -> u64 {
    match cmd.kernel.entry(&cmd.cred, &cmd.cwd, path, false) {
        Ok(entry) => match entry.body {
            Body::File(data) => data.len(),
            Body::Directory(names) if depth < 32 => names
                .iter()
                .map(|n| usage(cmd, &format!("{path}/{n}"), depth + 1))
                .sum(),
            _ => 0,
        },
        Err(_) => 0,
    }
}

/// Runs `df`. Free space below /data is that of the specification minus the bytes written since.
pub(super) fn df(cmd: &mut Cmd) -> Done {
    let Some((_, paths)) = cmd.flags("k")? else {
        return Ok(1);
    };
    let written = usage(cmd, "/data/local/tmp", 0) + usage(cmd, "/data/misc/perfetto-traces", 0);
    let free = cmd.kernel.spec.space.saturating_sub(written);
    let free = match cmd.kernel.faults.value(FaultKind::DiskFull, 0) {
        Some(limit) => free.min(limit),
        None => free,
    };
    let total: u64 = 112 << 30;
    let rows = [
        ("/dev/block/dm-5", 911_356 << 10, 0, "/"),
        ("tmpfs", 3_915_540 << 10, 3_914_100 << 10, "/dev"),
        ("/dev/block/dm-47", total, free, "/data"),
        ("/dev/fuse", total, free, "/storage/emulated"),
    ];
    let mut out = "Filesystem       1K-blocks     Used Available Use% Mounted on\n".to_owned();
    let mut status = 0;
    for path in &paths {
        if let Err(errno) = cmd.kernel.entry(&cmd.cred, &cmd.cwd, path, true) {
            cmd.err(&format!("df: '{path}': {}\n", errno.text()))?;
            status = 1;
            continue;
        }
        let parts = crate::fs::normalize(&cmd.cwd, path);
        let parts = cmd
            .kernel
            .state()
            .tree
            .resolve(&parts, true)
            .unwrap_or(parts);
        let absolute = format!("/{}", parts.join("/"));
        let best = rows
            .iter()
            .filter(|r| absolute.starts_with(r.3))
            .max_by_key(|r| r.3.len());
        let (name, size, avail, mount) = best.unwrap_or(&rows[0]);
        let used = size.saturating_sub(*avail);
        let percent = used * 100 / size.max(&1);
        out.push_str(&format!(
            "{name:<16} {:>9} {:>8} {:>9} {percent:>3}% {mount}\n",
            size / 1024,
            used / 1024,
            avail / 1024
        ));
    }
    cmd.out(&out)?;
    Ok(status)
}
