//! Conditions of a device that change what is measured: heat, battery, free space, and processes
//! killed for memory. Reads them in one shell call; reads only.

use android_memory::conditions::{
    Battery, KillRecord, low_memory_exits, low_memory_log, thermal_status,
};
use heaptap_adb::{Command, Device, DeviceError};
use heaptap_model::conditions::{Conditions, LowMemoryKill};
use std::time::Duration;

use crate::eligibility::free_bytes;
use crate::eligibility::sections::Sections;

/// Timeout; some services answer slowly on a busy device.
const LIMIT: Duration = Duration::from_secs(60);

/// What apps can write comes last: the first of two equal sections counts. `$1` is a package.
/// `logcat -t` would count lines of all tags.
const SCRIPT: &str = include_str!("scripts/conditions.sh").trim_ascii_end();

/// Conditions at one time, with all kills that the device remembers.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    pub conditions: Conditions,
    kills: Vec<KillRecord>,
}

impl Reading {
    /// Returns the kills since an earlier reading, of each process once. The log and `exit-info`
    /// record the same kill; one of them can be late.
    pub fn kills_since(&self, earlier: &Reading) -> Vec<LowMemoryKill> {
        let mut new: Vec<LowMemoryKill> = Vec::new();
        for record in &self.kills {
            let is_same = |known: &KillRecord| {
                let (kill, other) = (&known.kill, &record.kill);
                known.id == record.id || (kill.pid == other.pid && kill.process == other.process)
            };
            let is_known = earlier.kills.iter().any(is_same)
                || new.iter().any(|kill| kill.pid == record.kill.pid);
            if !is_known {
                new.push(record.kill.clone());
            }
        }
        new
    }

    /// Returns the kill of a process, if the device remembers that it was killed for memory.
    pub fn kill_of(&self, pid: u64, process: &str) -> Option<&LowMemoryKill> {
        let mut kills = self.kills.iter().map(|record| &record.kill);
        kills.find(|kill| u64::from(kill.pid) == pid && kill.process == process)
    }

    fn parse(output: &[u8]) -> Reading {
        let sections = Sections::read(output);
        let text = |name: &str| String::from_utf8_lossy(sections.bytes(name)).into_owned();
        let battery = Battery::parse(&text("battery"));
        let screen = crate::provoke::read::screen(&text("screen")).0;
        // The log has the reason, so it goes first.
        let mut kills = low_memory_log(&text("log"));
        kills.extend(low_memory_exits(&text("exits")));
        Reading {
            conditions: Conditions {
                thermal_status: thermal_status(&text("thermal")),
                battery_celsius: battery.celsius,
                battery_percent: battery.percent,
                is_charging: battery.is_charging,
                is_power_saving: match sections.line("saver").as_deref() {
                    Some("1") => Some(true),
                    Some("0" | "null") => Some(false),
                    _ => None,
                },
                is_screen_on: screen.map(|is_off| !is_off),
                free_bytes: free_bytes(&sections.lines("df")),
            },
            kills,
        }
    }
}

/// Reads the conditions of a device, and kills of a package.
///
/// # Errors
/// Returns an error if the device is lost or its shell does not answer.
pub async fn read(device: &Device, package: &str) -> Result<Reading, DeviceError> {
    let script = Command::script(SCRIPT).called("reading the conditions of the device");
    let output = device.run(&script.arg(package), LIMIT).await?;
    Ok(Reading::parse(&output.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_answers_has_no_conditions() {
        let text = "@@heaptap thermal\nCan't find service: thermalservice\n@@heaptap battery\n\
                    @@heaptap saver\ncmd: Can't find service: settings\n@@heaptap screen\n\
                    @@heaptap df\ndf: /data: Permission denied\n@@heaptap exits\n@@heaptap log\n";
        assert_eq!(
            Reading::parse(text.as_bytes()).conditions,
            Conditions::default()
        );
        assert_eq!(Reading::parse(b"").conditions, Conditions::default());
    }

    #[test]
    fn kills_are_those_since_the_earlier_reading() {
        let line =
            |pid: u32| format!("11-20 09:00 560 560 I lowmemorykiller: Kill 'a' ({pid}), uid 1\n");
        let exit = "ApplicationExitInfo #0:\n timestamp=2026 pid=2 realUid=1\n process=a reason=3 (LOW_MEMORY)\n";
        let log =
            |lines: &[String]| format!("@@heaptap exits\n{exit}@@heaptap log\n{}", lines.concat());
        let before = Reading::parse(log(&[line(1)]).replace(exit, "").as_bytes());
        let after = Reading::parse(log(&[line(1), line(2), line(3)]).as_bytes());
        let pids: Vec<u32> = after
            .kills_since(&before)
            .iter()
            .map(|kill| kill.pid)
            .collect();
        assert_eq!(pids, [2, 3]);
        assert!(after.kills_since(&after).is_empty());
        assert!(after.kill_of(2, "a").is_some() && after.kill_of(2, "b").is_none());
    }

    #[test]
    fn a_kill_that_another_source_records_later_is_not_new() {
        let log = "@@heaptap exits\n@@heaptap log\n\
                   11-20 09:00 560 560 I lowmemorykiller: Kill 'a' (2), uid 1\n";
        let exits = "@@heaptap exits\nApplicationExitInfo #0:\n timestamp=2026 pid=2 realUid=1\n \
                     process=a reason=3 (LOW_MEMORY)\n@@heaptap log\n";
        let [log, exits] = [log, exits].map(|text| Reading::parse(text.as_bytes()));
        assert_eq!((log.kills.len(), exits.kills.len()), (1, 1));
        assert!(exits.kills_since(&log).is_empty());
        assert!(log.kills_since(&exits).is_empty());
        // Another process can get the same ID.
        let mut other = exits.clone();
        other.kills[0].id = "timestamp=2025".to_owned();
        other.kills[0].kill.process = "b".to_owned();
        assert_eq!(exits.kills_since(&other).len(), 1);
    }
}
