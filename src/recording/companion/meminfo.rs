//! `--with meminfo` at a label: the full output of `dumpsys meminfo -a` of each process, as written
//! by the device. It makes the app collect garbage, which is recorded, so that the collection is
//! attributed to heaptap.

use super::at_label::{At, NotTaken};
use crate::heaps::meminfo::ask;
use android_memory::meminfo::Meminfo;
use heaptap_model::timeline::{Cost, Entry, Observation, Parts, Source};

/// Output for a process that has ended in the meantime.
const NO_PROCESS: &str = "No process found for:";

/// Captures the output of all processes.
pub(super) async fn capture(at: &At) -> Result<(), NotTaken> {
    let mut missed = Vec::new();
    for (pid, name) in &at.processes {
        let command = ask::command(["-a".to_owned(), pid.to_string()]);
        let window = at.windows.open(*pid, 1);
        let output = at.device.run(&command, ask::LIMIT).await?;
        // The clocks tell which collections are heaptap's.
        let (Some(from_ns), text, Some(until_ns)) = ask::between_clocks(&output.stdout) else {
            let said = String::from_utf8_lossy(&output.stdout);
            let said = said.lines().next().unwrap_or("nothing");
            let said: String = said.chars().take(200).collect();
            let why = format!("`dumpsys meminfo` of {name} ({pid}) failed: {said}");
            missed.push((*pid, why));
            continue;
        };
        window.close(from_ns, until_ns);
        at.ours("meminfo", *pid, from_ns, until_ns);
        if String::from_utf8_lossy(text).contains(NO_PROCESS) {
            missed.push((*pid, format!("{name} ({pid}) had ended")));
            continue;
        }
        if text.trim_ascii().is_empty() {
            // A missing or unresponsive service is only reported on stderr.
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().map(str::trim).find(|line| !line.is_empty());
            let said = said.unwrap_or("nothing");
            let why = format!("`dumpsys meminfo` of {name} ({pid}) failed: {said}");
            missed.push((*pid, why));
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
    at.without("meminfo", missed)
}

/// Returns the memory breakdown of `pid` from the output.
fn parts(text: &str, pid: u32) -> Option<Parts> {
    let meminfo = Meminfo::parse(text);
    meminfo.process_of(pid)?.parts(Source::Meminfo)
}
