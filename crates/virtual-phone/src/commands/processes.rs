//! ps, pidof, kill and related programs.

use super::{Cmd, Done, refuse};
use crate::memory::Ledger;
use crate::process::{Delivered, Pid, Process, Role, SIGTERM, signal_number, user_name};

/// Columns of `ps` by default.
const COLUMNS: &str = "USER,PID,PPID,VSZ,RSS,WCHAN,ADDR,S,NAME";

/// Returns the value of a process in a column of `ps -o`; `None` if the column is unknown.
fn column(p: &Process, name: &str, memory: &dyn Fn() -> Option<Ledger>) -> Option<String> {
    Some(match name {
        "PID" => p.pid.to_string(),
        "PPID" => p.ppid.to_string(),
        "UID" => p.uid.to_string(),
        "USER" => user_name(p.uid),
        "VSZ" => memory().map_or(0, |l| l.size_kb()).to_string(),
        "RSS" => memory().map_or(0, |l| l.pages().rss()).to_string(),
        "WCHAN" => match p.role {
            Role::Kernel => "0".to_owned(),
            _ if p.frozen => "do_freezer_trap".to_owned(),
            Role::App { .. } | Role::SystemServer => "do_epoll_wait".to_owned(),
            _ => "do_sys_poll".to_owned(),
        },
        "ADDR" => "0".to_owned(),
        "S" => p.state().to_string(),
        "NAME" | "ARGS" => match &p.role {
            Role::Kernel => format!("[{}]", p.name()),
            _ if name == "ARGS" => p.argv.join(" "),
            Role::App { .. } => p.name().to_owned(),
            _ => p.base_name().to_owned(),
        },
        _ => return None,
    })
}

pub(super) fn ps(cmd: &mut Cmd) -> Done {
    let args = cmd.options("-A -o:")?;
    let columns = args.value("-o").unwrap_or(COLUMNS).split(',');
    let columns: Vec<String> = columns.map(str::to_owned).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    {
        let (state, kernel) = (cmd.kernel.state(), &cmd.kernel);
        let all = state.processes.iter();
        for p in all.filter(|p| args.has("-A") || p.uid == cmd.cred.uid) {
            let memory = || kernel.memory.ledger(&state, p, kernel.clock.boot());
            let row = columns
                .iter()
                .map(|name| column(p, name, &memory).ok_or(name));
            match row.collect::<Result<_, _>>() {
                Ok(row) => rows.push(row),
                Err(bad) => return refuse(1, format!("ps: bad -o {bad}")),
            }
        }
    }
    let width = |i: usize| {
        let cells = rows.iter().map(|r| r[i].len());
        cells.chain([columns[i].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut out = String::new();
    for row in std::iter::once(&columns).chain(&rows) {
        let cells = row.iter().zip(&columns).zip(&widths).enumerate();
        let cells = cells.map(|(i, ((cell, column), w))| match column.as_str() {
            _ if i + 1 == row.len() => cell.clone(),
            "USER" | "WCHAN" | "S" => format!("{cell:<w$}"),
            _ => format!("{cell:>w$}"),
        });
        let line = cells.collect::<Vec<String>>().join(" ");
        out.push_str(&format!("{}\n", line.trim_end()));
    }
    cmd.answer(&out)
}

/// Returns the PIDs whose argv0, or its last part, is `name`.
fn named(cmd: &Cmd, name: &str) -> Vec<Pid> {
    let state = cmd.kernel.state();
    let hit = |p: &&Process| p.role != Role::Kernel && (p.name() == name || p.base_name() == name);
    state.processes.iter().filter(hit).map(|p| p.pid).collect()
}

pub(super) fn pidof(cmd: &mut Cmd) -> Done {
    let args = cmd.options("-s")?;
    let mut pids: Vec<Pid> = args.rest.iter().flat_map(|n| named(cmd, n)).collect();
    pids.retain(|p| *p != cmd.pid);
    pids.reverse();
    if args.has("-s") {
        pids.truncate(1);
    }
    if pids.is_empty() {
        return Ok(1);
    }
    let text: Vec<String> = pids.iter().map(Pid::to_string).collect();
    cmd.answer(&format!("{}\n", text.join(" ")))
}

/// `pgrep -f` and `pkill -f`: match a part of the whole command line.
pub(super) fn pgrep(cmd: &mut Cmd) -> Done {
    let args = cmd.options("-f")?;
    let Some(wanted) = args.rest.first() else {
        return refuse(1, format!("{}: No PATTERN", cmd.name()));
    };
    let found: Vec<Pid> = {
        let state = cmd.kernel.state();
        let others = state.processes.iter().filter(|p| p.pid != cmd.pid);
        let found = others.filter(|p| p.argv.join(" ").contains(wanted.as_str()));
        found.map(|p| p.pid).collect()
    };
    let mut status = u8::from(found.is_empty());
    for pid in found {
        if cmd.name() == "pgrep" {
            cmd.out(&format!("{pid}\n"))?;
        } else if cmd.kernel.signal(&cmd.cred, pid, SIGTERM) == Delivered::Denied {
            cmd.err(&format!("pkill: {pid}: Operation not permitted\n"))?;
            status = 1;
        }
    }
    Ok(status)
}

/// `kill` as a program, for callers without a shell.
pub(super) fn kill(cmd: &mut Cmd) -> Done {
    let missed = cmd.kernel.kill(&cmd.cred, &cmd.args());
    for (target, why) in &missed {
        cmd.err(&format!("kill: bad pid '{target}': {why}\n"))?;
    }
    Ok(u8::from(!missed.is_empty()))
}

pub(super) fn killall(cmd: &mut Cmd) -> Done {
    let (mut signal, mut names) = (SIGTERM, cmd.args());
    if let Some(flag) = names.first().and_then(|a| a.strip_prefix('-')) {
        let Some(number) = signal_number(flag) else {
            return refuse(1, format!("killall: bad signal '-{flag}'"));
        };
        signal = number;
        names.remove(0);
    }
    let mut status = 0;
    for name in names {
        let pids = named(cmd, &name);
        if pids.is_empty() {
            cmd.err(&format!("killall: {name}: No such process\n"))?;
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
