//! `--with meminfo` at a label: the full output of `dumpsys meminfo -a` of each process, as written
//! by the device. It makes the app collect garbage, which is recorded, so that the collection is
//! attributed to heaptap.

use std::time::Duration;

use super::at_label::{At, NotTaken};
use crate::device::Command;
use crate::memory::meminfo::Meminfo;
use crate::memory::status;
use crate::timeline::{Cost, Entry, Observation, Parts, Source};

/// Reads the clock before and after, to attribute garbage collections in between to heaptap.
const MEMINFO: &str = "cat /proc/uptime; dumpsys -t 60 meminfo -a $1; echo; cat /proc/uptime";

/// dumpsys waits for a frozen or hanging app until its timeout.
const LIMIT: Duration = Duration::from_secs(75);

/// Output for a process that has ended in the meantime.
const NO_PROCESS: &str = "No process found for:";

/// Captures the output of all processes.
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
                "`dumpsys meminfo` of {name} failed: {said}"
            )));
        };
        window.close(from_ns, until_ns);
        at.ours("meminfo", *pid, from_ns, until_ns);
        if String::from_utf8_lossy(text).contains(NO_PROCESS) {
            missed.push(format!("{name} ({pid}) had ended"));
            continue;
        }
        if text.trim_ascii().is_empty() {
            // A missing or unresponsive service is only reported on stderr.
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().map(str::trim).find(|line| !line.is_empty());
            let said = said.unwrap_or("nothing");
            missed.push(format!(
                "`dumpsys meminfo` of {name} ({pid}) failed: {said}"
            ));
            continue;
        }
        at.keep("meminfo", (*pid, "txt"), Some(from_ns), text)?;
        // The app itself answered: this output also has the sizes of its heaps.
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

/// Returns the memory breakdown of `pid` from the output.
fn parts(text: &str, pid: u32) -> Option<Parts> {
    let meminfo = Meminfo::parse(text);
    let process = meminfo
        .processes()
        .find(|process| process.pid.is_none_or(|of| of == pid))?;
    process.parts(Source::Meminfo)
}

/// Returns the text between two lines of `/proc/uptime`, and their times.
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
