//! Properties, SELinux, identity, time, the log.

use super::{Cmd, Done};
use crate::access::may_set_property;
use crate::clock::SECOND;
use crate::fs::Errno;
use crate::process::user_name;

pub(super) fn getprop(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let mut all = cmd.kernel.state().properties.clone();
    if !cmd.kernel.is_up() {
        for name in ["dev.bootcomplete", "sys.boot_completed"] {
            all.remove(name);
        }
    }
    match args.first() {
        Some(name) => {
            let default = args.get(1).cloned().unwrap_or_default();
            let value = all.get(name).cloned().filter(|v| !v.is_empty());
            cmd.out(&format!("{}\n", value.unwrap_or(default)))?;
        }
        None => {
            let lines: String = all.iter().map(|(k, v)| format!("[{k}]: [{v}]\n")).collect();
            cmd.out(&lines)?;
        }
    }
    Ok(0)
}

pub(super) fn setprop(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let [name, value] = args.as_slice() else {
        cmd.err("setprop: Needs 2 arguments\n")?;
        return Ok(1);
    };
    if !may_set_property(&cmd.kernel.spec, &cmd.cred, name) {
        cmd.err(&format!(
            "Failed to set property '{name}' to '{value}'.\nSee dmesg for error reason.\n"
        ))?;
        return Ok(1);
    }
    {
        let mut state = cmd.kernel.state();
        state.properties.insert(name.clone(), value.clone());
        if name == "persist.traced.enable" {
            if value == "1" {
                crate::init::start_traced(&mut state);
            } else {
                crate::init::stop_traced(&mut state);
            }
        }
    }
    cmd.kernel.events.notify();
    Ok(0)
}

pub(super) fn getenforce(cmd: &mut Cmd) -> Done {
    let enforcing = cmd.kernel.state().enforcing;
    cmd.out(if enforcing {
        "Enforcing\n"
    } else {
        "Permissive\n"
    })?;
    Ok(0)
}

pub(super) fn setenforce(cmd: &mut Cmd) -> Done {
    let on = match cmd.args().first().map(String::as_str) {
        Some("1" | "Enforcing" | "enforcing") => true,
        Some("0" | "Permissive" | "permissive") => false,
        _ => {
            cmd.err("usage: setenforce [enforcing|permissive|1|0]\n")?;
            return Ok(1);
        }
    };
    if !cmd.cred.is_root() {
        cmd.err("setenforce: Couldn't set enforcing status to '")?;
        cmd.err(&format!("{}': {}\n", u8::from(on), Errno::Access.text()))?;
        return Ok(1);
    }
    cmd.kernel.state().enforcing = on;
    cmd.kernel.events.notify();
    Ok(0)
}

pub(super) fn id(cmd: &mut Cmd) -> Done {
    let Some((options, _)) = cmd.flags("u")? else {
        return Ok(1);
    };
    let uid = cmd.cred.uid;
    let text = if options.iter().any(|o| o.0 == 'u') {
        uid.to_string()
    } else {
        let groups: Vec<String> = cmd
            .cred
            .groups
            .iter()
            .map(|g| format!("{g}({})", user_name(*g)))
            .collect();
        format!(
            "uid={uid}({}) gid={}({}) groups={} context=u:r:{}:s0",
            user_name(uid),
            cmd.cred.gid,
            user_name(cmd.cred.gid),
            groups.join(","),
            cmd.cred.domain
        )
    };
    cmd.out(&format!("{text}\n"))?;
    Ok(0)
}

/// Parses `1`, `0.5` or `2s` to seconds.
fn seconds(text: &str) -> Option<f64> {
    let number = text.strip_suffix('s').unwrap_or(text);
    let value = number.parse::<f64>().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value)
}

pub(super) fn sleep(cmd: &mut Cmd) -> Done {
    let Some(seconds) = cmd.args().iter().map(|a| seconds(a)).sum::<Option<f64>>() else {
        cmd.err("sleep: bad number\n")?;
        return Ok(1);
    };
    if cmd.args().is_empty() {
        cmd.err("sleep: Needs 1 argument\n")?;
        return Ok(1);
    }
    let deadline = cmd.kernel.clock.boot() + (seconds * SECOND as f64) as u64;
    cmd.kernel.sleep(cmd.pid, deadline)?;
    Ok(0)
}

fn time_of(real: u64) -> Option<time::OffsetDateTime> {
    time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(real)).ok()
}

/// `date +FORMAT`; the shell cannot set the clock.
pub(super) fn date(cmd: &mut Cmd) -> Done {
    let real = cmd.kernel.clock.real();
    let Some(t) = time_of(real) else { return Ok(1) };
    let args = cmd.args();
    if args.iter().any(|a| a == "-s") {
        cmd.err("date: cannot set date: Operation not permitted\n")?;
        return Ok(1);
    }
    let Some(format) = args.iter().find_map(|a| a.strip_prefix('+')) else {
        cmd.err("date: only +FORMAT is there on this virtual phone\n")?;
        return Ok(1);
    };
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        out.push_str(&match chars.next() {
            Some('s') => (real / SECOND).to_string(),
            Some('N') => format!("{:09}", real % SECOND),
            Some('Y') => t.year().to_string(),
            Some('m') => format!("{:02}", u8::from(t.month())),
            Some('d') => format!("{:02}", t.day()),
            Some('H') => format!("{:02}", t.hour()),
            Some('M') => format!("{:02}", t.minute()),
            Some('S') => format!("{:02}", t.second()),
            Some('z') => "+0000".to_owned(),
            other => format!("%{}", other.map_or(String::new(), String::from)),
        });
    }
    cmd.out(&format!("{out}\n"))?;
    Ok(0)
}

pub(super) fn log(cmd: &mut Cmd) -> Done {
    let Some((options, rest)) = cmd.flags("p:t:")? else {
        return Ok(1);
    };
    let value = |c: char| options.iter().find(|o| o.0 == c).and_then(|o| o.1.clone());
    let level = value('p')
        .and_then(|p| p.chars().next())
        .unwrap_or('i')
        .to_ascii_uppercase();
    let tag = value('t').unwrap_or_else(|| "log".to_owned());
    cmd.kernel.log(cmd.pid, level, &tag, &rest.join(" "));
    Ok(0)
}
