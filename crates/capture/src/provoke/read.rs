//! Parsers for the output of device commands, of all releases. Hostile input takes time in
//! proportion to its length and never causes a panic.

use android_memory::gc::parse_line;
use android_memory::status::{Ticks, kilobytes, uptime_ns};

/// Returns the component of `ActivityRecord{5d1f6a7 u0 com.example.app/.Main t12}`, also with the
/// brace before `t12` and without the user, as in old releases.
pub fn record(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("ActivityRecord{")?;
    let mut words = rest.split_whitespace().skip(1).take(8);
    let component = words.find(|word| word.trim_end_matches('}').contains('/'))?;
    Some(component.trim_end_matches('}').to_owned())
}

/// Returns lines about the device's own display and lines without a display: other displays might
/// be listed before or after it, with their own foreground, focus and rotation.
fn own_display(text: &str) -> impl Iterator<Item = &str> {
    /// Parses `Display #0 (activities from top to bottom):`, `  Display: mDisplayId=0 (organized)`.
    fn heading(line: &str) -> Option<&str> {
        let rest = line.strip_prefix("Display")?;
        let id = rest
            .strip_prefix(" #")
            .or_else(|| rest.strip_prefix(": mDisplayId="))?;
        let end = id.find(|c: char| !c.is_ascii_digit()).unwrap_or(id.len());
        id.get(..end).filter(|id| !id.is_empty())
    }
    let mut own = true;
    text.lines().map(str::trim_start).filter(move |line| {
        if let Some(id) = heading(line) {
            own = id == "0";
        }
        own
    })
}

/// Finds the foreground activity in `dumpsys activity activities` of any release.
pub fn front(text: &str) -> Option<String> {
    // Newest keys first: if a dump has several, the first in this list counts.
    const KEYS: [&str; 5] = [
        "topResumedActivity=",
        "mTopResumedActivity",
        "mResumedActivity",
        "ResumedActivity:",
        "mFocusedActivity",
    ];
    let found = |key: &str| own_display(text).find_map(|line| record(line.strip_prefix(key)?));
    KEYS.into_iter().find_map(found)
}

/// Finds the foreground component in `dumpsys window`: `mCurrentFocus=Window{1 u0 a/a.Main}`.
pub fn focus(text: &str) -> Option<String> {
    own_display(text).find_map(|line| {
        let rest = line.strip_prefix("mCurrentFocus=Window{")?;
        let word = rest.split_whitespace().nth(2)?.trim_end_matches('}');
        word.contains('/').then(|| word.to_owned())
    })
}

/// An activity as described by its app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// `com.example.app/.MainActivity`.
    pub component: String,
    /// ID of the app's object; it changes when the activity is recreated.
    pub object: Option<String>,
    pub resumed: bool,
}

/// Parses `dumpsys activity top`: the top activity of each visible task.
pub fn shown(text: &str) -> Vec<Shown> {
    /// Maximum number of visible activities.
    const MAX_COUNT: usize = 64;
    let mut all: Vec<Shown> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("ACTIVITY ") {
            if all.len() == MAX_COUNT {
                break;
            }
            let mut words = rest.split_whitespace();
            let Some(component) = words.next().filter(|w| w.contains('/')) else {
                continue;
            };
            all.push(Shown {
                component: component.to_owned(),
                object: None,
                resumed: false,
            });
        } else if let Some(last) = all.last_mut() {
            if let Some(rest) = line.strip_prefix("Local Activity ") {
                let hash = rest.split_whitespace().next();
                last.object = last.object.take().or(hash.map(str::to_owned));
            } else if line.split_whitespace().any(|w| w == "mResumed=true") {
                last.resumed = true;
            }
        }
    }
    all
}

/// Output of `am start -W`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Started {
    /// `COLD`, `WARM`, `HOT`, `UNKNOWN (0)`; since Android 10.
    pub launch: Option<String>,
    pub activity: Option<String>,
    /// Time until it was drawn, ms.
    pub total_ms: Option<u64>,
    /// `Warning: Activity not started, …`: it was brought to the foreground, or already there.
    pub warning: Option<String>,
}

/// Parses both streams of `am start -W`.
pub fn started(stdout: &str, stderr: &str) -> Started {
    let mut started = Started::default();
    for line in stdout.lines().chain(stderr.lines()).map(str::trim) {
        if let Some(text) = line.strip_prefix("Warning: Activity not started") {
            let text = text.trim_start_matches([',', ' ']);
            started.warning = Some(text.chars().take(200).collect());
            continue;
        }
        let Some((key, value)) = line.split_once(": ") else {
            continue;
        };
        let value: String = value.trim().chars().take(300).collect();
        match key {
            "LaunchState" => started.launch = Some(value),
            "Activity" => started.activity = Some(value),
            "TotalTime" => started.total_ms = value.parse().ok(),
            _ => {}
        }
    }
    started
}

/// Finds the error in the streams of `am`, `wm`, `settings` and `input`: old versions always exit
/// with 0 and report errors only as text.
pub fn complaint(exit: u8, stdout: &str, stderr: &str) -> Option<String> {
    const BEGINNINGS: [&str; 6] = [
        "Error",
        "Exception occurred",
        "Unknown command",
        "Invalid",
        "usage:",
        "Usage:",
    ];
    let told = |line: &&str| {
        let begins = |word: &&str| line.trim_start().starts_with(word);
        BEGINNINGS.iter().any(begins) || line.contains("Permission Denial")
    };
    let lines = || stderr.lines().chain(stdout.lines());
    let clean = |line: &str| -> String { line.trim().chars().take(300).collect() };
    // The exception's own line is more specific than the line that announces it.
    let mut own = lines().filter(|line| !line.trim_start().starts_with("at "));
    if let Some((_, text)) = own.find_map(|line| line.split_once("Exception: ")) {
        return Some(clean(text));
    }
    match lines().find(told) {
        Some(line) => Some(clean(line)),
        None if exit != 0 => {
            let first = lines().find(|l| !l.trim().is_empty());
            Some(first.map_or_else(|| format!("exit status {exit}"), clean))
        }
        None => None,
    }
}

/// State of a process at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pulse {
    pub pid: u32,
    pub uid: Option<u32>,
    /// CPU time so far, kernel ticks.
    pub ticks: u64,
    /// Start, ticks after boot; together with the PID it identifies the process.
    pub started: u64,
    /// RssAnon, otherwise VmRSS, bytes.
    pub resident: Option<u64>,
}

/// Parses the output of the script `phone_state::LOOK`: the device clock, and the processes.
pub fn pulses(text: &str) -> Option<(u64, Vec<Pulse>)> {
    /// Maximum number of processes with one name.
    const MAX_COUNT: usize = 64;
    let mut lines = text.lines();
    let now = uptime_ns(lines.next()?)?;
    let mut all: Vec<Pulse> = Vec::new();
    for line in lines {
        if let Some(pid) = line.strip_prefix("pid ") {
            if all.len() == MAX_COUNT {
                break;
            }
            all.push(Pulse {
                pid: pid.trim().parse().ok()?,
                ..Pulse::default()
            });
            continue;
        }
        let Some(last) = all.last_mut() else { continue };
        let number = |text: &str| text.split_whitespace().next()?.parse::<u32>().ok();
        match line.split_once(':') {
            Some(("Uid", rest)) => last.uid = number(rest),
            Some(("RssAnon", rest)) => last.resident = kilobytes(rest.trim()),
            Some(("VmRSS", rest)) => last.resident = last.resident.or(kilobytes(rest.trim())),
            _ if last.ticks == 0 => {
                let is_own = number(line) == Some(last.pid);
                if let Some(ticks) = Ticks::parse(line).filter(|_| is_own) {
                    (last.ticks, last.started) = (ticks.cpu, ticks.start);
                }
            }
            _ => {}
        }
    }
    // The process ended between two lines.
    all.retain(|p| p.started > 0);
    Some((now, all))
}

/// Finds why a process ended in `dumpsys activity exit-info PKG`: the reason and its description.
pub fn exit_reason(text: &str, pid: u32) -> Option<String> {
    let mut ours = false;
    let mut reason = None;
    let own = format!("pid={pid}");
    for line in text.lines().map(str::trim) {
        if line.starts_with("ApplicationExitInfo #") {
            if reason.is_some() {
                break;
            }
            ours = false;
        }
        ours |= line.split_whitespace().any(|w| w == own);
        if !ours {
            continue;
        }
        if let Some((_, rest)) = line.split_once("reason=")
            && reason.is_none()
        {
            reason = Some(word_in_brackets(rest));
        }
        if let (Some(reason), Some((_, rest))) = (&mut reason, line.split_once(" description=")) {
            let end = rest.find(" state=").unwrap_or(rest.len());
            let text: String = rest[..end].chars().take(200).collect();
            if !["null", "", "crash"].contains(&text.as_str()) {
                reason.push_str(&format!(" ({text})"));
            }
        }
    }
    reason.map(|r: String| r.chars().take(300).collect())
}

/// Returns the text in the outer parentheses of `4 (APP CRASH(EXCEPTION)) subreason=…`.
fn word_in_brackets(text: &str) -> String {
    let mut depth = 0u32;
    let mut word = String::new();
    for c in text.chars().take(200) {
        match c {
            '(' => {
                depth += 1;
                if depth == 1 {
                    continue;
                }
            }
            ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            _ => {}
        }
        if depth > 0 {
            word.push(c);
        }
    }
    match word.as_str() {
        "" => text
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned(),
        _ => word,
    }
}

/// Finds lines about the end of a process in the log: the exception, an ANR, the
/// signal, the low-memory killer.
pub fn death_lines(text: &str, pid: u32, process: &str) -> Vec<String> {
    const MAX_COUNT: usize = 6;
    let mut found: Vec<String> = Vec::new();
    let mut after_fatal = 0;
    for line in text.lines() {
        if found.len() == MAX_COUNT {
            break;
        }
        let Some((line, tag)) = parse_line(line).and_then(|line| Some((line, line.tag?))) else {
            continue;
        };
        let message = line.message.trim();
        let own = line.pid == Some(pid);
        let add = |found: &mut Vec<String>| {
            let text: String = message.chars().take(300).collect();
            if !found.contains(&text) {
                found.push(text);
            }
        };
        if own && tag == "AndroidRuntime" {
            if message.starts_with("FATAL EXCEPTION") {
                after_fatal = 2;
            } else if after_fatal > 0 && !message.starts_with("at ") {
                after_fatal -= 1;
                if !message.starts_with("Process: ") {
                    add(&mut found);
                }
            }
            continue;
        }
        let signal = message.starts_with("Fatal signal") || message.starts_with("Abort message");
        let killed = message.starts_with("Kill") && message.contains(&pid.to_string());
        let told = message.starts_with("ANR in ") || killed;
        if (own && signal) || (told && message.contains(process)) {
            add(&mut found);
        }
    }
    found
}

/// Final output of `monkey -v`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MonkeyEnd {
    /// `Events injected: N`.
    pub injected: Option<u32>,
    /// `** …`: reason of an early end.
    pub aborted: Option<String>,
}

/// Parses the output of monkey.
pub fn monkey(text: &str) -> MonkeyEnd {
    let mut end = MonkeyEnd::default();
    for line in text.lines().map(str::trim) {
        if let Some(count) = line.strip_prefix("Events injected:") {
            end.injected = count.trim().parse().ok();
        } else if let Some(why) = line.strip_prefix("** ") {
            let mut why: String = why.chars().take(200).collect();
            if end.aborted.is_none() {
                why.truncate(why.trim_end_matches('.').len());
                end.aborted = Some(why);
            }
        }
    }
    end
}

/// Returns whether the screen is off and whether a lock screen shows, from `mWakefulness=` and
/// `isKeyguardShowing=` or its older names; `None` if unknown.
pub fn screen(text: &str) -> (Option<bool>, Option<bool>) {
    let value = |keys: &[&str]| {
        let mut words = text.split(|c: char| c.is_whitespace() || c == ',');
        words.find_map(|word| {
            let (key, value) = word.split_once('=')?;
            keys.contains(&key).then_some(value)
        })
    };
    let off = value(&["mWakefulness"]).map(|v| v != "Awake");
    let locked = value(&[
        "isKeyguardShowing",
        "mShowingLockscreen",
        "mKeyguardShowing",
    ]);
    (off, locked.map(|v| v == "true"))
}

/// Parses the screen rotation from `mRotation=1` or `mCurrentRotation=ROTATION_90`.
pub fn rotation(text: &str) -> Option<u32> {
    let mut words = own_display(text).flat_map(str::split_whitespace);
    words.find_map(|word| match word.split_once('=')? {
        ("mRotation" | "mCurrentRotation", value) => {
            match value.strip_prefix("ROTATION_").unwrap_or(value) {
                "0" => Some(0),
                "1" | "90" => Some(1),
                "2" | "180" => Some(2),
                "3" | "270" => Some(3),
                _ => None,
            }
        }
        _ => None,
    })
}

/// Runs every parser over a text, for fuzzing.
pub fn every_reader(text: &str) {
    let _ = (record(text), front(text), focus(text), shown(text));
    let _ = (started(text, text), complaint(0, text, text), pulses(text));
    let _ = (
        exit_reason(text, 1),
        death_lines(text, 1, "a"),
        monkey(text),
    );
    let _ = (screen(text), rotation(text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_of_all_releases_are_read() {
        for line in [
            "  mResumedActivity: ActivityRecord{5d1f6a7 u0 a.b/.C t12}",
            "topResumedActivity=ActivityRecord{5d1f6a7 u0 a.b/.C} t12}",
            "mFocusedActivity: ActivityRecord{5d1f6a7 a.b/.C t12}",
            "ActivityRecord{5d1f6a7 u0 a.b/.C}",
        ] {
            assert_eq!(record(line).as_deref(), Some("a.b/.C"), "{line}");
        }
        assert_eq!(record("ResumedActivity: null"), None);
        assert_eq!(record("ActivityRecord{"), None);
    }

    #[test]
    fn the_newest_word_for_the_front_wins() {
        let text = "  ResumedActivity: ActivityRecord{1 u0 a/.A t1}\n    topResumedActivity=ActivityRecord{2 u0 b/.B t2}\n";
        assert_eq!(front(text).as_deref(), Some("b/.B"));
        let old = "  mFocusedActivity: ActivityRecord{3 u0 c/.C t3}\n";
        assert_eq!(front(old).as_deref(), Some("c/.C"));
        assert_eq!(front("  ResumedActivity: null\n"), None);
        let window = "  mCurrentFocus=Window{4c0de u0 a.b/a.b.Main}\n";
        assert_eq!(focus(window).as_deref(), Some("a.b/a.b.Main"));
        assert_eq!(
            focus("  mCurrentFocus=Window{5 u0 NotificationShade}"),
            None
        );
    }

    #[test]
    fn another_display_is_not_the_phones_own() {
        let other = "Display #2 (activities from top to bottom):\n    topResumedActivity=ActivityRecord{1 u0 tv/.Show t1}\n  ResumedActivity: ActivityRecord{1 u0 tv/.Show t1}\n";
        let own = "Display #0 (activities from top to bottom):\n    topResumedActivity=ActivityRecord{2 u0 a.b/.C t2}\n  ResumedActivity: ActivityRecord{2 u0 a.b/.C t2}\n";
        let of = |text: String| front(&text);
        for text in [format!("{other}{own}"), format!("{own}{other}")] {
            assert_eq!(of(text).as_deref(), Some("a.b/.C"));
        }
        // On Android 10 each stack has its own, and the focused one comes last.
        let stacks = |id: u32, what: &str| {
            format!(
                "Display #{id} (activities from top to bottom):\n\n  Stack #5: type=standard\n    mResumedActivity: ActivityRecord{{3 u0 {what} t3}}\n"
            )
        };
        let end = "  ResumedActivity: ActivityRecord{3 u0 tv/.Show t3}\n";
        let both = format!("{}{}{end}", stacks(2, "tv/.Show"), stacks(0, "a.b/.C"));
        assert_eq!(of(both).as_deref(), Some("a.b/.C"));
        // The device's own display is dark while another one shows an activity.
        let dark = format!("Display #0 (activities from top to bottom):\n{other}");
        assert_eq!(of(dark), None);
        // A number with the same prefix is another display; a line without a display counts.
        assert_eq!(of(other.replace("#2", "#02")), None);
        assert_eq!(
            of(other.replace("Display #2", "Stack #2")).as_deref(),
            Some("tv/.Show")
        );

        let windows = "  Display: mDisplayId=2\n    mCurrentFocus=Window{4 u0 tv/tv.Show}\n      mCurrentRotation=ROTATION_90\n  Display: mDisplayId=0 (organized)\n    mCurrentFocus=Window{5 u0 a.b/a.b.C}\n      mCurrentRotation=ROTATION_0\n";
        assert_eq!(focus(windows).as_deref(), Some("a.b/a.b.C"));
        assert_eq!(rotation(windows), Some(0));
    }

    #[test]
    fn an_activity_is_known_by_its_object() {
        let text = "TASK 10234:a.b id=12 userId=0\n  ACTIVITY a.b/.C 5d1f6a7 pid=6201\n    Local Activity 3f2a1b State:\n      mResumed=true mStopped=false mFinished=false\nTASK c id=13\n  ACTIVITY c/.D 1 pid=(not running)\n";
        let all = shown(text);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].object.as_deref(), Some("3f2a1b"));
        assert!(all[0].resumed);
        assert!(!all[1].resumed);
    }

    #[test]
    fn a_start_that_only_came_to_the_front_is_told_from_a_launch() {
        let out = "Starting: Intent { cmp=a/.B }\nStatus: ok\nLaunchState: HOT\nActivity: a/.B\nTotalTime: 60\nWaitTime: 67\nComplete\n";
        let err = "Warning: Activity not started, its current task has been brought to the front\n";
        let s = started(out, err);
        assert_eq!(s.launch.as_deref(), Some("HOT"));
        assert_eq!(s.total_ms, Some(60));
        assert!(s.warning.unwrap().contains("brought to the front"));
        assert_eq!(started("Status: ok\nThisTime: 1\n", "").warning, None);
    }

    #[test]
    fn complaints_are_seen_whatever_the_exit_status() {
        let refused = "\nException occurred while executing 'send-trim-memory':\njava.lang.IllegalArgumentException: Unable to set a higher trim level than current level\n\tat com.android.X(X.java:1)\n";
        assert_eq!(
            complaint(255, "", refused).as_deref(),
            Some("Unable to set a higher trim level than current level")
        );
        let old = "Error: Activity class {a/b} does not exist.\n";
        assert_eq!(complaint(0, "", old).as_deref(), Some(old.trim()));
        assert_eq!(
            complaint(0, "Unknown command: user-rotation\n", "").as_deref(),
            Some("Unknown command: user-rotation")
        );
        assert_eq!(complaint(0, "Deleted 1 rows\n", ""), None);
        assert_eq!(complaint(7, "", "").as_deref(), Some("exit status 7"));
        let warning =
            "Warning: Activity not started, its current task has been brought to the front\n";
        assert_eq!(complaint(0, "Status: ok\n", warning), None);
    }

    #[test]
    fn a_pulse_is_read_and_half_of_one_is_none() {
        let text = "11842.33 9000.1\npid 6201\n6201 (a ) b) S 811 811 0 0 -1 1077936448 1 0 0 0 300 100 0 0 20 0 38 0 98765 1 2\nName:\tb\nUid:\t10234\t10234\t10234\t10234\nVmRSS:\t  100000 kB\nRssAnon:\t   55000 kB\npid 7000\n";
        let (now, all) = pulses(text).unwrap();
        assert_eq!(now, 11_842_330_000_000);
        assert_eq!(
            all,
            [Pulse {
                pid: 6201,
                uid: Some(10_234),
                ticks: 400,
                started: 98_765,
                resident: Some(55_000 * 1024),
            }]
        );
        assert_eq!(pulses("nothing"), None);
    }

    #[test]
    fn the_reason_of_a_death_is_found_by_its_pid() {
        let text = "  package: a.b\n    Historical Process Exit for uid=1\n        ApplicationExitInfo #0:\n          timestamp=2026-10-08 22:49:31.375 pid=8297 realUid=1 user=0\n          process=a.b reason=10 (USER REQUESTED) subreason=21 (FORCE STOP) status=0\n          importance=100 pss=0.00 rss=0.00 description=stop a.b state=46 bytes trace=null\n        ApplicationExitInfo #1:\n          timestamp=2026-10-08 22:49:23.372 pid=8180 realUid=1 user=0\n          process=a.b reason=4 (APP CRASH(EXCEPTION)) subreason=0 (UNKNOWN) status=0\n          importance=100 pss=0.00 rss=0.00 description=crash state=empty trace=null\n";
        assert_eq!(
            exit_reason(text, 8180).as_deref(),
            Some("APP CRASH(EXCEPTION)")
        );
        assert_eq!(
            exit_reason(text, 8297).as_deref(),
            Some("USER REQUESTED (stop a.b)")
        );
        assert_eq!(exit_reason(text, 1), None);
        assert_eq!(
            exit_reason("pid=3 reason=2 subreason=0", 3).as_deref(),
            Some("2")
        );
    }

    #[test]
    fn the_log_names_the_exception_and_the_anr() {
        let text = "11-20 09:00:00.123  8180  8180 E AndroidRuntime: FATAL EXCEPTION: main\n11-20 09:00:00.123  8180  8180 E AndroidRuntime: Process: a.b, PID: 8180\n11-20 09:00:00.123  8180  8180 E AndroidRuntime: java.lang.NullPointerException: no\n11-20 09:00:00.123  8180  8180 E AndroidRuntime: \tat x.Y(Z.java:1)\n11-20 09:00:00.123  1204  1300 E ActivityManager: ANR in a.b (a.b/.C)\n11-20 09:00:00.200  9999  9999 E AndroidRuntime: FATAL EXCEPTION: other\n";
        assert_eq!(
            death_lines(text, 8180, "a.b"),
            ["java.lang.NullPointerException: no", "ANR in a.b (a.b/.C)"]
        );
    }

    #[test]
    fn a_monkeys_end_and_the_screen_are_read() {
        let end = monkey(
            "Events injected: 240\n## Network stats: elapsed time=5ms\n// Monkey finished\n",
        );
        assert_eq!(end.injected, Some(240));
        assert_eq!(end.aborted, None);
        let end = monkey("** No activities found to run, monkey aborted.\n");
        assert_eq!(
            end.aborted.as_deref(),
            Some("No activities found to run, monkey aborted")
        );
        assert_eq!(
            screen("  mWakefulness=Asleep\n isKeyguardShowing=true"),
            (Some(true), Some(true))
        );
        assert_eq!(screen("mWakefulness=Awake\n"), (Some(false), None));
        assert_eq!(rotation("  mRotation=1"), Some(1));
        assert_eq!(rotation(" mCurrentRotation=ROTATION_270"), Some(3));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(\\PC|\n){0,200}") {
            everything(&text);
            everything(&format!("1.00 1\npid 1\n1 (x) {text}"));
            everything(&format!("ACTIVITY a/b {text}\nLocal Activity {text}"));
            everything(&format!("pid=1 reason={text} description={text}"));
        }
    }

    fn everything(text: &str) {
        super::every_reader(text);
    }
}
