//! ps, pidof, kill and related programs.

use super::{Cmd, Done, flags};
use crate::logcat::timestamp;
use crate::memory::Ledger;
use crate::process::user_name;
use crate::process::{Delivered, Pid, Process, Role, SIGNALS, signal_number};

/// Returns the value of a process in a column of `ps -o`; `None` if the column is unknown.
fn column(
    p: &Process,
    name: &str,
    now: u64,
    memory: &dyn Fn() -> Option<Ledger>,
) -> Option<String> {
    Some(match name {
        "PID" | "TID" | "TGID" => p.pid.to_string(),
        "PPID" => p.ppid.to_string(),
        "PGID" | "SID" | "PGRP" => p.group.to_string(),
        "UID" => p.uid.to_string(),
        "GID" => p.uid.to_string(),
        "USER" | "RUSER" => user_name(p.uid),
        "VSZ" | "VIRT" => memory().map_or(0, |l| l.size_kb()).to_string(),
        "RSS" | "RES" => memory().map_or(0, |l| l.pages().rss()).to_string(),
        "WCHAN" => match p.role {
            Role::Kernel => "0".to_owned(),
            _ if p.frozen => "do_freezer_trap".to_owned(),
            Role::App { .. } | Role::SystemServer => "do_epoll_wait".to_owned(),
            _ => "do_sys_poll".to_owned(),
        },
        "ADDR" | "PC" => "0".to_owned(),
        "S" => p.state().to_string(),
        "STAT" => p.state().to_string(),
        "NAME" | "CMDLINE" | "ARGS" | "CMD" | "COMM" => match (&p.role, name) {
            (Role::Kernel, _) => format!("[{}]", p.name()),
            (_, "ARGS" | "CMDLINE") => p.argv.join(" "),
            (_, "CMD" | "COMM") => p.comm(),
            (Role::App { .. }, _) => p.name().to_owned(),
            _ => p.name().rsplit('/').next().unwrap_or("").to_owned(),
        },
        "LABEL" => format!("u:r:{}:s0", p.domain),
        "TTY" => "?".to_owned(),
        "TIME" => "00:00:01".to_owned(),
        "STIME" => timestamp(now)[6..14].to_owned(),
        _ => return None,
    })
}

pub(super) fn ps(cmd: &mut Cmd) -> Done {
    let (options, _) = flags(&cmd.args(), "opuUgGst");
    let has = |c: char| options.iter().any(|o| o.0 == c);
    let mut columns: Vec<String> = vec![];
    for value in options
        .iter()
        .filter(|o| o.0 == 'o')
        .filter_map(|o| o.1.clone())
    {
        columns.extend(value.split(',').map(|c| {
            c.split_once('=')
                .map_or(c, |(name, _)| name)
                .trim()
                .to_ascii_uppercase()
        }));
    }
    if columns.is_empty() {
        let all: &[&str] = if has('f') {
            &["USER", "PID", "PPID", "VSZ", "STIME", "TTY", "TIME", "ARGS"]
        } else {
            &[
                "USER", "PID", "PPID", "VSZ", "RSS", "WCHAN", "ADDR", "S", "NAME",
            ]
        };
        columns = all.iter().map(|c| (*c).to_owned()).collect();
    }
    if has('Z') {
        columns.insert(0, "LABEL".to_owned());
    }
    let pids: Option<Vec<Pid>> = options.iter().find(|o| o.0 == 'p').map(|o| {
        let list = o.1.as_deref().unwrap_or("");
        list.split(',').filter_map(|p| p.parse().ok()).collect()
    });
    let user = options
        .iter()
        .find(|o| o.0 == 'u' || o.0 == 'U')
        .and_then(|o| o.1.clone());
    let everyone = has('A') || has('e') || pids.is_some() || user.is_some();
    let now = cmd.kernel.clock.real();
    let (rows, bad) = {
        let state = cmd.kernel.state();
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut bad = None;
        for p in state.processes.iter() {
            let wanted = pids.as_ref().is_none_or(|l| l.contains(&p.pid))
                && user
                    .as_ref()
                    .is_none_or(|u| *u == user_name(p.uid) || *u == p.uid.to_string())
                && (everyone || p.uid == cmd.cred.uid);
            if !wanted {
                continue;
            }
            let mut row = Vec::new();
            let ledger = std::cell::OnceCell::new();
            let kernel = &cmd.kernel;
            let boot = kernel.clock.boot();
            let memory = || {
                let ledger = ledger.get_or_init(|| kernel.memory.ledger(&state, p, boot));
                ledger.clone()
            };
            for c in &columns {
                match column(p, c, now, &memory) {
                    Some(text) => row.push(text),
                    None => bad = Some(c.clone()),
                }
            }
            rows.push(row);
        }
        (rows, bad)
    };
    if let Some(bad) = bad {
        cmd.err(&format!("ps: bad -o {bad}\n"))?;
        return Ok(1);
    }
    let found = !rows.is_empty();
    let left = |c: &str| {
        matches!(
            c,
            "USER" | "RUSER" | "LABEL" | "WCHAN" | "S" | "STAT" | "STIME" | "TTY"
        )
    };
    let width = |i: usize| {
        let cells = rows.iter().map(|r| r[i].len());
        cells.chain([columns[i].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut out = String::new();
    for row in std::iter::once(&columns).chain(&rows) {
        let mut line = String::new();
        for (i, cell) in row.iter().enumerate() {
            if i > 0 {
                line.push(' ');
            }
            let last = i + 1 == row.len();
            if last {
                line.push_str(cell);
            } else if left(&columns[i]) {
                line.push_str(&format!("{cell:<w$}", w = widths[i]));
            } else {
                line.push_str(&format!("{cell:>w$}", w = widths[i]));
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    cmd.out(&out)?;
    Ok(u8::from(!found && pids.is_some()))
}

/// Returns the PIDs whose argv0, or its last part, is `name`.
fn named(cmd: &Cmd, name: &str) -> Vec<Pid> {
    let state = cmd.kernel.state();
    let hit = |p: &&Process| {
        let argv0 = p.name();
        p.role != Role::Kernel && (argv0 == name || argv0.rsplit('/').next() == Some(name))
    };
    state.processes.iter().filter(hit).map(|p| p.pid).collect()
}

pub(super) fn pidof(cmd: &mut Cmd) -> Done {
    let (options, names) = flags(&cmd.args(), "o");
    let mut pids: Vec<Pid> = names.iter().flat_map(|n| named(cmd, n)).collect();
    pids.retain(|p| *p != cmd.pid);
    pids.reverse();
    if options.iter().any(|o| o.0 == 's') {
        pids.truncate(1);
    }
    if pids.is_empty() {
        return Ok(1);
    }
    let text: Vec<String> = pids.iter().map(Pid::to_string).collect();
    cmd.out(&format!("{}\n", text.join(" ")))?;
    Ok(0)
}

/// `pgrep` and `pkill`: match a part of the name; `-f` matches the whole command line.
pub(super) fn pgrep(cmd: &mut Cmd) -> Done {
    let kills = cmd.name() == "pkill";
    let mut signal = 15;
    let mut args = cmd.args();
    if kills
        && let Some(n) = args
            .first()
            .and_then(|a| a.strip_prefix('-'))
            .and_then(signal_number)
    {
        signal = n;
        args.remove(0);
    }
    let (options, patterns) = flags(&args, "uUPs");
    let has = |c: char| options.iter().any(|o| o.0 == c);
    let Some(wanted) = patterns.first() else {
        cmd.err(&format!("{}: No PATTERN\n", cmd.name()))?;
        return Ok(1);
    };
    let found: Vec<(Pid, String)> = {
        let state = cmd.kernel.state();
        state
            .processes
            .iter()
            .filter(|p| p.pid != cmd.pid)
            .filter_map(|p| {
                let text = if has('f') { p.argv.join(" ") } else { p.comm() };
                let hit = if has('x') {
                    text == *wanted
                } else {
                    text.contains(wanted.as_str())
                };
                hit.then_some((p.pid, text))
            })
            .collect()
    };
    let mut status = u8::from(found.is_empty());
    for (pid, text) in found {
        if kills {
            if cmd.kernel.signal(&cmd.cred, pid, signal) == Delivered::Denied {
                cmd.err(&format!("pkill: {pid}: Operation not permitted\n"))?;
                status = 1;
            }
        } else if has('l') {
            cmd.out(&format!("{pid} {text}\n"))?;
        } else {
            cmd.out(&format!("{pid}\n"))?;
        }
    }
    Ok(status)
}

/// `kill` as a program, for callers without a shell.
pub(super) fn kill(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let (signal, targets) = match args.split_first() {
        Some((flag, rest)) if flag == "-s" && rest.len() > 1 => {
            (signal_number(&rest[0]), &rest[1..])
        }
        Some((flag, rest)) if flag.starts_with('-') && flag.len() > 1 => {
            (signal_number(&flag[1..]), rest)
        }
        _ => (Some(15), &args[..]),
    };
    let Some(signal) = signal else {
        cmd.err("kill: unknown signal\n")?;
        return Ok(1);
    };
    let mut status = 0;
    for target in targets {
        let delivered = match target.parse::<Pid>() {
            Ok(pid) => cmd.kernel.signal(&cmd.cred, pid, signal),
            Err(_) => Delivered::NoProcess,
        };
        let why = match delivered {
            Delivered::NoProcess => "No such process",
            Delivered::Denied => "Operation not permitted",
            Delivered::Alive | Delivered::Ended => continue,
        };
        cmd.err(&format!("kill: bad pid '{target}': {why}\n"))?;
        status = 1;
    }
    Ok(status)
}

pub(super) fn killall(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let mut signal = 15;
    let mut quiet = false;
    let mut names = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-q" => quiet = true,
            "-l" => {
                let all: Vec<&str> = SIGNALS.iter().map(|s| s.1).collect();
                cmd.out(&format!("{}\n", all.join(" ")))?;
                return Ok(0);
            }
            "-s" => signal = args.next().and_then(|s| signal_number(s)).unwrap_or(15),
            a if a.starts_with('-') && a.len() > 1 => match signal_number(&a[1..]) {
                Some(n) => signal = n,
                None => {
                    cmd.err(&format!("killall: bad signal '{a}'\n"))?;
                    return Ok(1);
                }
            },
            name => names.push(name.to_owned()),
        }
    }
    let mut status = 0;
    for name in names {
        let pids = named(cmd, &name);
        if pids.is_empty() {
            if !quiet {
                cmd.err(&format!("killall: {name}: No such process\n"))?;
            }
            status = 1;
        }
        for pid in pids {
            if cmd.kernel.signal(&cmd.cred, pid, signal) == Delivered::Denied {
                cmd.err(&format!("killall: {pid}: Operation not permitted\n"))?;
                status = 1;
            }
        }
    }
    Ok(status)
}
