//! The state of the device that recordings can change, read before and after, and the step that
//! compares both. Recordings that a failed step left are fetched first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::context::{Bench, Ended, LEFT_ON_DEVICE, Outcome, RETURN};
use super::document::sessions_below;
use crate::recording::advice::device_away;
use crate::recording::events::EventHandler;
use crate::recording::sessions::{self, SessionSelector};
use android_memory::status::Ticks;
use heaptap_adb::{Command, Device, DeviceError};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::sanitize;
use heaptap_capture::eligibility::DeviceFacts;
use heaptap_capture::session::fixed_path;
use heaptap_results::lists::join_list;

/// Time limit for reading the state.
const LOOK: Duration = Duration::from_secs(15);
/// Time until lazy services have reset their properties, and scripts have removed their files.
const SETTLE: Duration = Duration::from_secs(8);
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Time limit for fetching what a failed step left.
const FETCH: Duration = Duration::from_secs(30);

/// Prefixes of the properties that recordings, heapprofd and heaptap's own commands can change.
const PROPERTIES: [&str; 9] = [
    "heapprofd.",
    "persist.heapprofd.",
    "traced.",
    "persist.traced",
    "wrap.",
    "libc.debug.",
    "log.tag",
    "debug.atrace.",
    "security.perf_harden",
];

/// `$1` PID of the app. Properties come last, because their values can have any line.
const STATE: &str = r#"for d in /data/misc/perfetto-traces /data/local/tmp; do
  echo "heaptap-part files $d"; ls -a "$d" 2>/dev/null
done
echo "heaptap-part selinux"; getenforce
echo "heaptap-part perfetto"; pidof perfetto
echo "heaptap-part app"; cat "/proc/$1/stat" 2>/dev/null
echo "heaptap-part properties"; getprop
echo "heaptap-part end""#;
const STATE_QUERY: &str = "reading the state of the device";
/// Last line of a complete state.
const END: &str = "heaptap-part end";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct DeviceState {
    /// Paths of files in the directories that recordings write.
    files: BTreeSet<String>,
    selinux: String,
    perfetto: BTreeSet<String>,
    /// Start time of the app since boot, in ticks; `None` if it is not running.
    app: Option<u64>,
    properties: BTreeMap<String, String>,
}

impl DeviceState {
    pub(super) async fn read(
        device: &Device,
        pid: Option<u32>,
    ) -> Result<DeviceState, DeviceError> {
        let command = Command::script(STATE)
            .called(STATE_QUERY)
            .arg(pid.map_or_else(|| "none".to_owned(), |pid| pid.to_string()));
        let text = device.text(&command, LOOK).await?;
        DeviceState::parse(&text).ok_or_else(|| DeviceError::Garbled {
            serial: device.serial().to_owned(),
            what: STATE_QUERY.to_owned(),
            detail: "the end is missing".to_owned(),
        })
    }

    /// Returns `None` for a text that is not whole: what is missing would look as if the
    /// recordings had removed it.
    fn parse(text: &str) -> Option<DeviceState> {
        let text = text.trim_end().strip_suffix(END)?;
        let mut state = DeviceState::default();
        let mut part = "";
        for line in text.lines().map(|line| line.trim_end_matches('\r')) {
            if part != "properties"
                && let Some(next) = line.strip_prefix("heaptap-part ")
            {
                part = next;
                continue;
            }
            match part.split_once(' ').unwrap_or((part, "")) {
                ("files", directory) if !matches!(line, "." | ".." | "") => {
                    state.files.insert(format!("{directory}/{line}"));
                }
                ("selinux", _) => state.selinux = line.to_owned(),
                ("perfetto", _) => {
                    let pids = line.split_whitespace().map(str::to_owned);
                    state.perfetto.extend(pids);
                }
                ("app", _) => state.app = Ticks::parse(line).map(|ticks| ticks.start),
                ("properties", _) => state.property(line),
                _ => {}
            }
        }
        Some(state)
    }

    /// Parses `[name]: [value]`. Android does not distinguish an empty property from a missing one.
    fn property(&mut self, line: &str) {
        let parts = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: ["));
        if let Some((name, value)) = parts
            && PROPERTIES.iter().any(|prefix| name.starts_with(prefix))
            && value != "]"
        {
            let value = value.trim_end_matches(']');
            self.properties.insert(name.to_owned(), value.to_owned());
        }
    }

    fn has_lost_app(&self, after: &DeviceState) -> bool {
        self.app.is_some() && self.app != after.app
    }

    /// Returns the differences that a try can be the cause of. `fixed` is a file that the shell
    /// cannot remove.
    fn changes(&self, after: &DeviceState, fixed: Option<&str>) -> Vec<String> {
        let mut changes = Vec::new();
        for file in after.files.difference(&self.files) {
            if Some(&**file) != fixed {
                changes.push(format!("the file {file} is new"));
            }
        }
        for file in self.files.difference(&after.files) {
            changes.push(format!("the file {file} is gone"));
        }
        if self.selinux != after.selinux {
            changes.push(format!(
                "SELinux was {} and is {}",
                self.selinux, after.selinux
            ));
        }
        for pid in after.perfetto.difference(&self.perfetto) {
            changes.push(format!("perfetto ({pid}) is still running"));
        }
        let names: BTreeSet<&String> = self
            .properties
            .keys()
            .chain(after.properties.keys())
            .collect();
        for name in names {
            let value =
                |state: &DeviceState| state.properties.get(name).cloned().unwrap_or_default();
            let (before, now) = (value(self), value(after));
            if before != now {
                changes.push(format!("the property {name} was {before:?} and is {now:?}"));
            }
        }
        changes
            .iter()
            .map(|change| sanitize(change).into_owned())
            .collect()
    }
}

/// Recordings that failed steps left on the device.
#[derive(Default)]
struct RemainingRecordings {
    fetched: usize,
    /// Sessions that this host cannot write, with the reason.
    unwritten: Vec<(String, Failure)>,
}

/// Returns why the device is not as before: because of this host, if nothing but recordings that it
/// cannot write stays.
fn not_restored(changes: Vec<String>, left: RemainingRecordings) -> Failure {
    let is_unwritten = |change: &String| left.unwritten.iter().any(|(id, _)| change.contains(id));
    let is_host = changes.iter().all(is_unwritten);
    let Some((id, mut failure)) = left.unwritten.into_iter().next().filter(|_| is_host) else {
        let changes = join_list(changes.into_iter());
        let message = format!("the device is not as before: {changes}");
        return Failure::new(ErrorClass::Device, "not-restored", message).with_help(
            "`heaptap status` lists recordings that are still on it, and `heaptap stop` \
             fetches and removes them; a restart of the device resets its properties",
        );
    };
    failure.message = format!(
        "data of failed steps stay on the device, because this host cannot write them: {}",
        failure.message
    );
    failure.hints.clear();
    failure.with_help(format!("free disk space, then run `heaptap stop {id}`"))
}

impl Bench<'_> {
    /// Fetches what failed steps left on the device, and compares its state with that before.
    pub(super) async fn put_back(
        &self,
        before: Result<DeviceState, DeviceError>,
        pid: Option<u32>,
        facts: &DeviceFacts,
    ) -> Outcome {
        if let Err(obstacle) = self.device.wait_ready(RETURN).await {
            let message = format!("{} is not connected: {obstacle}", self.device.serial());
            return Err(device_away(message, LEFT_ON_DEVICE).into());
        }
        let left = self.fetch_left().await?;
        let before = before.map_err(|error| Ended::Failed(Failure::from(error).into()))?;
        // The shell of Android 10 cannot remove its one trace file.
        let is_old = facts.api().is_some_and(|api| api < 30);
        let fixed = is_old.then(|| fixed_path(facts.shell_uid == Some(0)));
        let until = Instant::now() + SETTLE;
        let changes = loop {
            let after = DeviceState::read(self.device, pid).await;
            let after = after.map_err(|error| Ended::Failed(Failure::from(error).into()))?;
            let changes = before.changes(&after, fixed.as_deref());
            if changes.is_empty() && before.has_lost_app(&after) {
                let message = "the app exited or was restarted during the try";
                let failure = Failure::new(ErrorClass::Device, "target-gone", message)
                    .with_help("check `adb logcat -b crash`, then run the command again");
                return Err(failure.into());
            }
            if changes.is_empty() || Instant::now() >= until {
                break changes;
            }
            sleep(LOOK_AGAIN).await;
        };
        if !changes.is_empty() {
            return Err(not_restored(changes, left).into());
        }
        let mut words = "files, properties, SELinux and the app are as before".to_owned();
        match left.fetched {
            0 => {}
            1 => words += "; fetched a recording that a step left",
            count => words += &format!("; fetched {count} recordings that steps left"),
        }
        // It stays if the first recording of this device was one of the steps.
        if let Some(fixed) = fixed.filter(|fixed| !before.files.contains(fixed)) {
            let message =
                format!("{fixed} stays: the shell of Android 10 cannot remove it; other {words}");
            let failure = Failure::new(ErrorClass::Device, "not-restored", message);
            return Err(Ended::Impossible(failure.into()));
        }
        Ok(words)
    }

    /// Ends, fetches and removes sessions of steps.
    async fn fetch_left(&self) -> Result<RemainingRecordings, Ended> {
        let mut left = RemainingRecordings::default();
        let mut all = sessions_below(self.store, self.directory);
        if let Ok(raw) = self.raw {
            all.extend(sessions_below(self.store, &raw.session()));
        }
        for id in all {
            let (_ask, mut controls) = mpsc::unbounded_channel();
            let ignored: EventHandler = Arc::new(|_| {});
            let selector = SessionSelector::Id(id.clone());
            let device = self.device.clone();
            let stopped = sessions::stop(
                self.store,
                async || Ok(device),
                &selector,
                None,
                None,
                &mut controls,
                &ignored,
            );
            // One that fails is named in the report.
            match tokio::time::timeout(FETCH, Box::pin(stopped)).await {
                Ok(Ok(stopped)) => {
                    left.fetched += 1;
                    // One that stays is named in the report.
                    let _ = stopped.forget();
                }
                Ok(Err(failure)) if failure.class == ErrorClass::HostWrite => {
                    left.unwritten.push((id, failure));
                }
                _ => {}
            }
        }
        self.keep_stripped().await?;
        Ok(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "heaptap-part files /data/misc/perfetto-traces\n.\n..\n\
        heaptap-part files /data/local/tmp\n.\n..\nmine.txt\nheaptap-part selinux\nEnforcing\n\
        heaptap-part perfetto\n77\nheaptap-part app\n2050 (a) b c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 \
        14 15 16 17 18 4711 20\nheaptap-part properties\n[persist.traced.enable]: [1]\n\
        [traced.lazy.heapprofd]: []\n[sys.x]: [1\nheaptap-part files /\n]\nheaptap-part end\n";

    #[test]
    fn the_state_is_compared_by_what_recordings_change() {
        let before = DeviceState::parse(BEFORE).unwrap();
        assert_eq!(before.app, Some(4711));
        assert_eq!(before.files.len(), 1, "{before:?}");
        assert_eq!(before.changes(&before, None), Vec::<String>::new());
        let after = BEFORE
            .replace("mine.txt", "mine.txt\nheaptap-1.hprof")
            .replace("Enforcing", "Permissive")
            .replace("\n77\n", "\n77 78\n")
            .replace("4711", "9999")
            .replace("heapprofd]: []", "heapprofd]: [1]")
            .replace("[sys.x]: [1", "[sys.x]: [2");
        let after = DeviceState::parse(&after).unwrap();
        assert!(before.has_lost_app(&after) && !before.has_lost_app(&before));
        assert_eq!(
            before.changes(&after, None),
            [
                "the file /data/local/tmp/heaptap-1.hprof is new",
                "SELinux was Enforcing and is Permissive",
                "perfetto (78) is still running",
                "the property traced.lazy.heapprofd was \"\" and is \"1\"",
            ]
        );
        // Half of a state is not compared.
        let cut = BEFORE.find("[traced.lazy").unwrap();
        assert_eq!(DeviceState::parse(&BEFORE[..cut]), None);
        let fixed = Some("/data/local/tmp/heaptap-1.hprof");
        assert_eq!(before.changes(&after, fixed).len(), 3);
    }
}
