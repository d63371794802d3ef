//! Properties, SELinux, identity, time, the log.

use super::{Cmd, Done, refuse};
use crate::access::may_set_property;
use crate::clock::SECOND;
use crate::fs::Errno;
use crate::init;
use crate::process::user_name;

pub(super) fn getprop(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let mut all = cmd.kernel.state().properties.clone();
    let up = cmd.kernel.is_up();
    all.retain(|name, _| up || !["dev.bootcomplete", "sys.boot_completed"].contains(&&**name));
    let Some(name) = args.first() else {
        let lines: String = all.iter().map(|(k, v)| format!("[{k}]: [{v}]\n")).collect();
        return cmd.answer(&lines);
    };
    let default = args.get(1).cloned().unwrap_or_default();
    let value = all.remove(name).filter(|v| !v.is_empty());
    cmd.answer(&format!("{}\n", value.unwrap_or(default)))
}

pub(super) fn setprop(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let [name, value] = args.as_slice() else {
        return refuse(1, "setprop: Needs 2 arguments");
    };
    if !may_set_property(&cmd.kernel.spec, &cmd.cred, name) {
        let text = format!("Failed to set property '{name}' to '{value}'.");
        return refuse(1, format!("{text}\nSee dmesg for error reason."));
    }
    cmd.kernel.change(|state, _| {
        state.properties.insert(name.clone(), value.clone());
        match (name.as_str(), value.as_str()) {
            ("persist.traced.enable", "1") => init::start_traced(state),
            ("persist.traced.enable", _) => init::stop_traced(state),
            _ => {}
        }
    });
    Ok(0)
}

pub(super) fn getenforce(cmd: &mut Cmd) -> Done {
    let enforcing = cmd.kernel.state().enforcing;
    cmd.answer(if enforcing {
        "Enforcing\n"
    } else {
        "Permissive\n"
    })
}

pub(super) fn setenforce(cmd: &mut Cmd) -> Done {
    let on = match cmd.args().first().map(String::as_str) {
        Some("1" | "Enforcing" | "enforcing") => true,
        Some("0" | "Permissive" | "permissive") => false,
        _ => return refuse(1, "usage: setenforce [enforcing|permissive|1|0]"),
    };
    if !cmd.cred.is_root() {
        let (on, why) = (u8::from(on), Errno::Access.text());
        let text = format!("setenforce: Couldn't set enforcing status to '{on}': {why}");
        return refuse(1, text);
    }
    cmd.kernel.change(|state, _| state.enforcing = on);
    Ok(0)
}

pub(super) fn id(cmd: &mut Cmd) -> Done {
    let cred = &cmd.cred;
    if cmd.options("-u")?.has("-u") {
        return cmd.answer(&format!("{}\n", cred.uid));
    }
    let named = |id: &u32| format!("{id}({})", user_name(*id));
    let groups: Vec<String> = cred.groups.iter().map(named).collect();
    cmd.answer(&format!(
        "uid={} gid={} groups={} context=u:r:{}:s0\n",
        named(&cred.uid),
        named(&cred.gid),
        groups.join(","),
        cred.domain
    ))
}

pub(super) fn sleep(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let seconds = args.first().and_then(|text| text.parse::<f64>().ok());
    let Some(seconds) = seconds.filter(|s| s.is_finite() && *s >= 0.0) else {
        return refuse(1, "sleep: bad number");
    };
    cmd.wait((seconds * 1_000.0) as u64)?;
    Ok(0)
}

/// `date +FORMAT`, with `%s` and `%N`; the shell cannot set the clock.
pub(super) fn date(cmd: &mut Cmd) -> Done {
    let real = cmd.kernel.clock.real();
    let args = cmd.args();
    let Some(format) = args.first().and_then(|arg| arg.strip_prefix('+')) else {
        return refuse(1, "date: cannot set date: Operation not permitted");
    };
    let text = format.replace("%s", &(real / SECOND).to_string());
    let text = text.replace("%N", &format!("{:09}", real % SECOND));
    cmd.answer(&format!("{text}\n"))
}

pub(super) fn log(cmd: &mut Cmd) -> Done {
    let args = cmd.options("-p: -t:")?;
    let level = args.value("-p").and_then(|p| p.chars().next());
    let level = level.unwrap_or('i').to_ascii_uppercase();
    let tag = args.value("-t").unwrap_or("log");
    cmd.kernel.log(cmd.pid, level, tag, &args.rest.join(" "));
    Ok(0)
}
