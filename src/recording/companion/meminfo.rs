//! `--with meminfo` at a label: the whole text of `dumpsys meminfo -a` of each process, kept as
//! the phone wrote it. The app collects garbage for it: that is noted, so that the collection
//! counts as ours.

use std::time::Duration;

use super::at_label::{At, NotTaken};
use crate::device::Command;
use crate::memory::meminfo::Meminfo;
use crate::memory::status;
use crate::timeline::{Cost, Entry, Observation, Parts, Source};

/// The clock before and after it, so that a collection between the two is known for ours.
const MEMINFO: &str = "cat /proc/uptime; dumpsys -t 60 meminfo -a $1; echo; cat /proc/uptime";

/// An app that is frozen or hangs keeps dumpsys for as long as it is told to wait.
const LIMIT: Duration = Duration::from_secs(75);

/// What there is to say where a process has gone by the time it is asked.
const NO_PROCESS: &str = "No process found for:";

/// Takes it.
pub(super) async fn capture(at: &At) -> Result<(), NotTaken> {
    let mut missed = Vec::new();
    for (pid, name) in &at.processes {
        let command = Command::script(MEMINFO)
            .called("reading meminfo")
            .arg(pid.to_string());
        let window = at.windows.open(*pid, 1);
        let output = at.device.run(&command, LIMIT).await?;
        let Some((from_ns, text, until_ns)) = between_clocks(&output.stdout) else {
            let said = String::from_utf8_lossy(&output.stdout);
            let said = said.lines().next().unwrap_or("nothing");
            let said: String = said.chars().take(200).collect();
            return Err(NotTaken::Because(format!(
                "dumpsys meminfo of {name} said: {said}"
            )));
        };
        window.close(from_ns, until_ns);
        at.ours("meminfo", *pid, from_ns, until_ns);
        if String::from_utf8_lossy(text).contains(NO_PROCESS) {
            missed.push(format!("{name} ({pid}) was gone"));
            continue;
        }
        if text.trim_ascii().is_empty() {
            // A service that is not there, or does not answer, is told on stderr alone.
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().map(str::trim).find(|line| !line.is_empty());
            let said = said.unwrap_or("nothing");
            missed.push(format!("dumpsys meminfo of {name} ({pid}) said: {said}"));
            continue;
        }
        at.keep("meminfo", (*pid, "txt"), Some(from_ns), text)?;
        // The app was asked: this one has its heaps' sizes, too.
        if let Some(parts) = parts(&String::from_utf8_lossy(text), *pid) {
            at.timeline.add(&Entry {
                boot_ns: from_ns,
                pid: *pid,
                cost: Some(Cost {
                    device_ns: until_ns.saturating_sub(from_ns),
                    bytes: output.stdout.len() as u64,
                }),
                seen: Observation::Parts(parts),
            });
        }
    }
    match missed.as_slice() {
        [] => Ok(()),
        missed => Err(NotTaken::Because(missed.join(", "))),
    }
}

/// How the memory of `pid` divides, by what it said.
fn parts(text: &str, pid: u32) -> Option<Parts> {
    let meminfo = Meminfo::parse(text);
    let process = meminfo
        .processes()
        .find(|process| process.pid.is_none_or(|of| of == pid))?;
    process.parts(Source::Meminfo)
}

/// What stands between two lines of `/proc/uptime`, and their times.
fn between_clocks(bytes: &[u8]) -> Option<(u64, &[u8], u64)> {
    let clock = |line: &[u8]| status::uptime_ns(&String::from_utf8_lossy(line));
    let first = bytes.iter().position(|byte| *byte == b'\n')?;
    let from = clock(bytes.get(..first)?)?;
    let rest = bytes.get(first + 1..)?;
    let trimmed = rest.trim_ascii_end();
    let last = trimmed.iter().rposition(|byte| *byte == b'\n')?;
    let until = clock(trimmed.get(last + 1..)?)?;
    Some((from, rest.get(..last)?, until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_kept_byte_for_byte_between_its_clocks() {
        let bytes = b"12.50 3.1\nApplications\n \xff\n\n14.00 4.0\n";
        let (from, text, until) = between_clocks(bytes).unwrap();
        assert_eq!((from, until), (12_500_000_000, 14_000_000_000));
        assert_eq!(text, b"Applications\n \xff\n");
        for odd in [
            &b""[..],
            b"12.50 3.1\n",
            b"12.50 3.1\ntext\n",
            b"text\n14.00 4.0\n",
        ] {
            assert_eq!(between_clocks(odd), None);
        }
    }
}
