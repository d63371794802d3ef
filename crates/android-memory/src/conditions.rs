//! Conditions of a device: `dumpsys thermalservice` and `battery`, and processes killed for memory
//! by `dumpsys activity exit-info` (Android 11) and the log of lmkd.

use heaptap_model::conditions::LowMemoryKill;

/// Maximum number of characters of a name or reason.
const MAX_CHARS: usize = 200;

/// Returns the thermal status: 0 (not throttled) to 6 (shutdown).
pub fn thermal_status(text: &str) -> Option<u8> {
    let mut lines = text.lines().map(str::trim);
    let status = lines.find_map(|line| line.strip_prefix("Thermal Status:"))?;
    status.trim().parse().ok().filter(|status| *status <= 6)
}

/// Contents of `dumpsys battery`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Battery {
    pub percent: Option<u8>,
    pub celsius: Option<f64>,
    /// A charger is connected.
    pub is_charging: Option<bool>,
}

impl Battery {
    /// Parses the text.
    pub fn parse(text: &str) -> Battery {
        let rows = || {
            let pairs = text.lines().filter_map(|line| line.split_once(':'));
            pairs.map(|(key, value)| (key.trim(), value.trim()))
        };
        let number = |wanted: &str| {
            let mut rows = rows();
            let found = rows.find(|(key, _)| *key == wanted);
            found.and_then(|(_, value)| value.parse::<i32>().ok())
        };
        let percent = match (number("level"), number("scale").unwrap_or(100)) {
            (Some(level), scale @ 1..) => u8::try_from(i64::from(level) * 100 / i64::from(scale)),
            _ => return Battery::default(),
        };
        let mut chargers = rows()
            .filter(|(key, _)| key.ends_with(" powered"))
            .peekable();
        let has_chargers = chargers.peek().is_some();
        Battery {
            percent: percent.ok().filter(|percent| *percent <= 100),
            // Tenths of a degree.
            celsius: number("temperature").map(|tenths| f64::from(tenths) / 10.0),
            is_charging: has_chargers.then(|| chargers.any(|(_, value)| value == "true")),
        }
    }
}

/// A kill with the text that tells it from others: the same in each reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KillRecord {
    pub id: String,
    pub kill: LowMemoryKill,
}

/// Returns the processes of `exit-info` that were killed for memory.
pub fn low_memory_exits(text: &str) -> Vec<KillRecord> {
    let records = text.split("ApplicationExitInfo #").skip(1);
    let killed = records.filter_map(|record| {
        let value = |key: &str| {
            let mut lines = record.lines();
            let rest = lines.find_map(|line| {
                let (before, rest) = line.split_once(key)?;
                // `pid=`, and not the end of another word.
                let whole = before.chars().next_back().is_none_or(char::is_whitespace);
                whole.then_some(rest)
            })?;
            Some(rest.split_whitespace().next().unwrap_or(""))
        };
        if value("reason=")? != "3" {
            return None;
        }
        let pid = value("pid=")?;
        // The number of a record changes with each newer one.
        let time = record.lines().find(|line| line.contains("timestamp="))?;
        Some(KillRecord {
            id: time.trim().to_owned(),
            kill: LowMemoryKill {
                process: short(value("process=")?),
                pid: pid.parse().ok()?,
                reason: None,
            },
        })
    });
    killed.collect()
}

/// Returns the kills in lines of the log with the tag `lowmemorykiller`:
/// `Kill 'com.example.app' (6201), uid 10234, … reason: low watermark is breached`.
pub fn low_memory_log(text: &str) -> Vec<KillRecord> {
    let killed = text.lines().filter_map(|line| {
        // `Reclaim` is the word of some vendors.
        let (_, rest) = line
            .split_once(": Kill '")
            .or_else(|| line.split_once(": Reclaim '"))?;
        let (process, rest) = rest.split_once("' (")?;
        let (pid, rest) = rest.split_once(')')?;
        let reason = rest.split_once("reason: ").map(|(_, reason)| short(reason));
        Some(KillRecord {
            id: line.trim().to_owned(),
            kill: LowMemoryKill {
                process: short(process),
                pid: pid.parse().ok()?,
                reason,
            },
        })
    });
    killed.collect()
}

fn short(text: &str) -> String {
    let short: String = text.trim().chars().take(MAX_CHARS).collect();
    heaptap_base::untrusted::sanitize(&short).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_thermal_status_is_read() {
        let text = "IsStatusOverride: false\nThermal Status: 3\nCached temperatures:\n\t\
                    Temperature{mValue=45.0, mType=3, mName=skin, mStatus=3}\n";
        assert_eq!(thermal_status(text), Some(3));
        for odd in ["", "Thermal Status: x", "Thermal Status: 9", "mStatus=3"] {
            assert_eq!(thermal_status(odd), None, "{odd}");
        }
    }

    #[test]
    fn the_battery_is_read_in_percent_and_degrees() {
        let text = "Current Battery Service state:\n  AC powered: false\n  USB powered: true\n  \
                    status: 5\n  level: 174\n  scale: 200\n  temperature: -35\n";
        let battery = Battery::parse(text);
        assert_eq!(battery.percent, Some(87));
        assert_eq!(battery.celsius, Some(-3.5));
        assert_eq!(battery.is_charging, Some(true));
        let battery = Battery::parse(&text.replace("true", "false"));
        assert_eq!(battery.is_charging, Some(false));
        for odd in [
            "",
            "level: x",
            "level: 5\nscale: 0",
            "Can't find service: battery",
        ] {
            assert_eq!(Battery::parse(odd), Battery::default(), "{odd}");
        }
    }

    #[test]
    fn exits_for_memory_are_told_from_others() {
        let record = |at: usize, pid: u32, reason: &str| {
            format!(
                "        ApplicationExitInfo #{at}:\n          timestamp=2026-10-08 22:49:3{at}.375 \
                 pid={pid} realUid=1 user=0\n          process=a.b reason={reason} subreason=0 \
                 (UNKNOWN) status=0\n          importance=100 description=reason=3 state=empty\n"
            )
        };
        let head = "  package: a.b\n    Historical Process Exit for uid=1\n";
        let text = |records: &[String]| format!("{head}{}", records.concat());
        let kill = record(1, 8180, "3 (LOW_MEMORY)");
        let found = low_memory_exits(&text(&[record(0, 8297, "4 (CRASH)"), kill.clone()]));
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].kill.process.as_str(), found[0].kill.pid),
            ("a.b", 8180)
        );
        // The same record after a newer one.
        let later = low_memory_exits(&text(&[kill.replace("#1", "#7")]));
        assert_eq!(found, later);
        assert_eq!(low_memory_exits("reason=3 pid=1"), []);
    }

    #[test]
    fn kills_of_lmkd_have_their_reason() {
        let log = "11-20 09:00:00.1  560  560 I lowmemorykiller: Kill 'a.b:s' (8180), uid 10001, \
                   oom_score_adj 900 to free 5kB rss, 0kB swap; reason: low watermark is breached\n\
                   11-20 09:00:01.1  560  560 I lowmemorykiller: Kill 'c' (7), uid 1 to free 5kB\n\
                   11-20 09:00:02.1  560  560 I lowmemorykiller: Using psi monitors\n\
                   11-20 09:00:02.1  560  560 I lowmemorykiller: Kill 'd' (x)\n";
        let kills: Vec<LowMemoryKill> = low_memory_log(log).into_iter().map(|r| r.kill).collect();
        assert_eq!(kills.len(), 2);
        assert_eq!((kills[0].process.as_str(), kills[0].pid), ("a.b:s", 8180));
        assert_eq!(
            kills[0].reason.as_deref(),
            Some("low watermark is breached")
        );
        assert_eq!((kills[1].pid, kills[1].reason.as_ref()), (7, None));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(\\PC|\n){0,200}") {
            let _ = thermal_status(&format!("Thermal Status:{text}"));
            let _ = Battery::parse(&format!("level: 5\n{text}"));
            let _ = low_memory_exits(&format!("ApplicationExitInfo #{text} reason=3 {text}"));
            let _ = low_memory_log(&format!("I x: Kill '{text}"));
        }
    }
}
