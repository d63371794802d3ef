//! The log of one process, each line once: followed over its own connection, resumed after
//! a disconnection, and otherwise read from the ring buffer. The connection runs logcat
//! directly, so that logcat ends with the connection.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::clock::Clock;
use super::collections::Collections;
use super::own_collections::OurWindows;
use android_memory::gc;
use android_memory::status;
use heaptap_adb::{Command, Device, DeviceError, Lines, ShellEvent};
use heaptap_base::parallel::lock;
use heaptap_model::timeline::Entry;

/// Timeout for logcat to start or to print the buffered lines.
const PATIENCE: Duration = Duration::from_secs(15);
/// Timeout of one attempt to reconnect to the device.
const RETURN_STEP: Duration = Duration::from_secs(30);
/// Lines are slightly out of order, so a log is resumed this much before its last line.
const OVERLAP_NS: u64 = 1_000_000_000;
/// Maximum number of lines remembered to detect repetitions.
const REMEMBERED: usize = 8192;

/// Message of a follower.
#[derive(Debug)]
pub(super) enum Said {
    Line {
        pid: u32,
        text: String,
    },
    /// Number of received bytes.
    Bytes(u64),
    /// A command was sent.
    Sent,
    /// The log of this device cannot be followed.
    Refused {
        pid: u32,
        why: String,
    },
    /// logcat ends repeatedly and is restarted ever more slowly. Sent once.
    Restless {
        pid: u32,
    },
}

/// Event of a followed log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEvent<'a> {
    Line(&'a str),
    /// logcat of a process ends repeatedly and is restarted, finally every five seconds. Sent
    /// once.
    Restless {
        /// PID of the logged process.
        pid: u32,
    },
}

/// Position in a log: where the next read starts, and which lines it repeats.
#[derive(Debug, Default)]
pub(super) struct Position {
    /// Time of the latest line, or of the start, ns since 1970.
    latest: u64,
    /// Lines of the last seconds: time and hash.
    recent: VecDeque<(u64, u64)>,
    /// Number of expected repetitions of each line.
    repeated: HashMap<u64, u32>,
    hasher: RandomState,
}

/// Position shared by a follower and the code that reads the rest.
pub(super) type SharedPosition = Arc<Mutex<Position>>;

impl Position {
    pub(super) fn from(epoch_ns: u64) -> SharedPosition {
        Arc::new(Mutex::new(Position {
            latest: epoch_ns,
            ..Position::default()
        }))
    }

    /// Returns the time from which the log must be read again, ns since 1970.
    fn resume(&mut self) -> u64 {
        if self.recent.is_empty() {
            return self.latest;
        }
        let from = self.latest.saturating_sub(OVERLAP_NS);
        self.repeated.clear();
        for (_, hash) in self.recent.iter().filter(|(time, _)| *time >= from) {
            *self.repeated.entry(*hash).or_default() += 1;
        }
        from
    }

    fn is_new(&mut self, time: u64, line: &str) -> bool {
        let hash = self.hasher.hash_one(line);
        if let Some(times) = self.repeated.get_mut(&hash) {
            *times -= 1;
            if *times == 0 {
                self.repeated.remove(&hash);
            }
            return false;
        }
        self.latest = self.latest.max(time);
        self.recent.push_back((time, hash));
        let old = self.latest.saturating_sub(2 * OVERLAP_NS);
        while self.recent.len() > REMEMBERED
            || self.recent.front().is_some_and(|(time, _)| *time < old)
        {
            self.recent.pop_front();
        }
        true
    }
}

fn command(pid: u32, from_ns: u64, follow: bool) -> Command {
    let (seconds, millis) = (from_ns / 1_000_000_000, from_ns / 1_000_000 % 1000);
    let command = Command::program("logcat").args(["-v", "threadtime", "-v", "epoch"]);
    let command = match follow {
        true => command,
        false => command.arg("-d"),
    };
    command
        .args(["-b", "main"])
        .arg(format!("--pid={pid}"))
        .args(["-T".to_owned(), format!("{seconds}.{millis:03}")])
        .called("following the log")
}

/// Follows the log of `pid` until it is aborted, or logcat fails several times in a row: once can be a
/// restart of logd, or of the device.
pub(super) async fn follow(
    device: Device,
    pid: u32,
    position: SharedPosition,
    said: mpsc::Sender<Said>,
) {
    let mut restarts = Restarts::default();
    let mut failures = 0;
    loop {
        let from = lock(&position).resume();
        let _ = said.send(Said::Sent).await;
        let begun = Instant::now();
        let ended = match read(&device, (pid, from), true, &position, &said).await {
            Ok(Some(why)) if failures + 1 >= RESTLESS => {
                let _ = said.send(Said::Refused { pid, why }).await;
                return;
            }
            // logcat ends with logd, which restarts, and when it is killed.
            Ok(failure) => {
                failures = failure.map_or(0, |_| failures + 1);
                true
            }
            Err(error) if error.is_connection() => false,
            Err(error) => {
                let why = error.to_string();
                let _ = said.send(Said::Refused { pid, why }).await;
                return;
            }
        };
        let (pause, restless) = restarts.after(begun.elapsed(), ended);
        if restless {
            let _ = said.send(Said::Restless { pid }).await;
        }
        tokio::time::sleep(pause).await;
        // The next attempt shows whether it is back.
        let _ = device.wait_ready(RETURN_STEP).await;
    }
}

/// Delays for restarting logcat.
#[derive(Debug)]
struct Restarts {
    pause: Duration,
    /// Number of logcats in a row that ended by themselves after a short time.
    ended: u32,
    told: bool,
}

/// Runtime after which a logcat counts as working, even if it ended.
const STEADY: Duration = Duration::from_secs(30);
/// Number of early ends in a row that are reported.
const RESTLESS: u32 = 4;

impl Default for Restarts {
    fn default() -> Restarts {
        Restarts {
            pause: Duration::from_millis(100),
            ended: 0,
            told: false,
        }
    }
}

impl Restarts {
    /// Returns the pause after a logcat with this runtime, and whether to report now that it
    /// keeps ending. Output does not prove that it works, because it starts with known lines.
    fn after(&mut self, ran: Duration, ended: bool) -> (Duration, bool) {
        if ran >= STEADY {
            self.pause = Restarts::default().pause;
            self.ended = 0;
        }
        self.ended = if ended {
            self.ended.saturating_add(1)
        } else {
            0
        };
        let pause = self.pause;
        self.pause = (pause * 2).min(Duration::from_secs(5));
        let restless = self.ended >= RESTLESS && !self.told;
        self.told |= restless;
        (pause, restless)
    }
}

/// Reads the log of `pid` after `position`.
pub(super) async fn read_rest(
    device: &Device,
    pid: u32,
    position: &SharedPosition,
    said: &mpsc::Sender<Said>,
) -> Result<(), DeviceError> {
    let from = lock(position).resume();
    let _ = said.send(Said::Sent).await;
    let reading = read(device, (pid, from), false, position, said);
    // After a timeout, the lines received so far count.
    match tokio::time::timeout(PATIENCE, reading).await {
        Ok(Err(error)) => Err(error),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

/// Follows the logs of several processes from a time on, ns since 1970, each line once, across
/// disconnections. Runs until it is dropped; returns the reason if the log cannot be followed.
pub async fn follow_lines(
    device: &Device,
    pids: &[u32],
    from_ns: u64,
    mut tell: impl FnMut(LogEvent<'_>),
) -> String {
    let (said, mut heard) = mpsc::channel(256);
    let mut followers = tokio::task::JoinSet::new();
    for pid in pids {
        let position = Position::from(from_ns);
        followers.spawn(follow(device.clone(), *pid, position, said.clone()));
    }
    drop(said);
    let mut last = String::from("no process to follow");
    while let Some(said) = heard.recv().await {
        match said {
            Said::Line { text, .. } => tell(LogEvent::Line(&text)),
            Said::Restless { pid } => tell(LogEvent::Restless { pid }),
            // The log of another process might still continue.
            Said::Refused { why, .. } => last = why,
            Said::Bytes(_) | Said::Sent => {}
        }
    }
    last
}

/// Reads until logcat ends. Returns the reason if it failed without a line.
async fn read(
    device: &Device,
    (pid, from_ns): (u32, u64),
    follow: bool,
    position: &SharedPosition,
    said: &mpsc::Sender<Said>,
) -> Result<Option<String>, DeviceError> {
    let command = command(pid, from_ns, follow);
    let mut shell = device.spawn(&command, PATIENCE).await?;
    let mut lines = Lines::default();
    let (mut has_lines, mut complaint) = (false, String::new());
    loop {
        let bytes = match shell.next().await? {
            ShellEvent::Stdout(bytes) => bytes,
            ShellEvent::Stderr(bytes) => {
                if complaint.is_empty() {
                    let text = String::from_utf8_lossy(&bytes);
                    complaint = text.lines().next().unwrap_or_default().trim().to_owned();
                }
                continue;
            }
            ShellEvent::Exit(code) if code == 0 || has_lines => return Ok(None),
            ShellEvent::Exit(code) if complaint.is_empty() => {
                return Ok(Some(format!("logcat exited with {code}")));
            }
            ShellEvent::Exit(_) => return Ok(Some(complaint)),
        };
        let _ = said.send(Said::Bytes(bytes.len() as u64)).await;
        for text in lines.push(&bytes) {
            let Some(line) = gc::parse_line(&text).filter(|line| line.pid == Some(pid)) else {
                continue;
            };
            // The clock of a device without a network can be near 1970.
            let Some(gc::Stamp::Epoch(time) | gc::Stamp::Monotonic(time)) = line.time else {
                continue;
            };
            has_lines = true;
            if lock(position).is_new(time, &text)
                && said.send(Said::Line { pid, text }).await.is_err()
            {
                return Ok(None);
            }
        }
    }
}

/// Contents of the log's ring buffer about some processes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RingLog {
    /// Collections, in order of time.
    pub entries: Vec<Entry>,
    /// Unchanged lines of the span, grouped by process.
    pub lines: Vec<String>,
    /// BOOTTIME of the oldest line of any process in the buffer; `None` if the device does not
    /// report it.
    pub oldest_ns: Option<u64>,
}

/// Reads the device's clocks, and the oldest line of the buffer.
const RING: &str = include_str!("../scripts/log_ring.sh").trim_ascii_end();

/// Reads the lines of `pids` between two times, BOOTTIME, from the log's ring buffer.
///
/// # Errors
/// Returns an error if the device cannot be reached.
pub async fn read_ring(
    device: &Device,
    pids: &[u32],
    (from_ns, until_ns): (u64, u64),
) -> Result<RingLog, DeviceError> {
    let command = Command::script(RING).called("reading the log");
    let text = device.text(&command, PATIENCE).await?;
    let mut head = text.lines();
    let clocks = head.next().unwrap_or("");
    let mut clock = Clock::default();
    let (up, epoch) = clocks.split_once(' ').unwrap_or((clocks, ""));
    let mut ring = RingLog::default();
    let (Some(up), Some(epoch)) = (status::seconds_ns(up), status::seconds_ns(epoch)) else {
        return Ok(ring);
    };
    clock.round(up, epoch);
    let time_of = |line: &str| clock.boot_ns_of(gc::parse_line(line)?.time?);
    ring.oldest_ns = head.find_map(time_of);
    let mut collections = Collections::new(OurWindows::default());
    let (said, mut lines) = mpsc::channel(256);
    for pid in pids {
        let position = Position::from(clock.epoch_ns(from_ns));
        let reading = read_rest(device, *pid, &position, &said);
        tokio::pin!(reading);
        let mut over = None;
        loop {
            let line = tokio::select! {
                biased;
                line = lines.recv() => line,
                outcome = &mut reading, if over.is_none() => {
                    over = Some(outcome);
                    None
                }
            };
            if let Some(Said::Line { text, .. }) = line {
                let within = |ns: &u64| (from_ns..=until_ns).contains(ns);
                let entry = collections.line(*pid, &text, &clock);
                ring.entries.extend(entry.filter(|e| within(&e.boot_ns)));
                if time_of(&text).is_some_and(|ns| within(&ns)) {
                    ring.lines.push(text);
                }
            }
            if over.is_some() && lines.is_empty() {
                break;
            }
        }
        over.unwrap_or(Ok(()))?;
    }
    ring.entries.sort_by_key(|entry| entry.boot_ns);
    Ok(ring)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_adb::scripted::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_resumed_log_repeats_nothing_and_loses_nothing() {
        let shared = Position::from(100 * S);
        let mut position = lock(&shared);
        assert_eq!(position.resume(), 100 * S);
        // Two equal lines at the same time are two lines.
        for line in ["a", "b", "b"] {
            assert!(position.is_new(101 * S, line));
        }
        assert!(position.is_new(105 * S, "c"));
        assert!(position.is_new(105 * S, "d"));
        assert_eq!(position.resume(), 104 * S);
        for line in ["c", "d"] {
            assert!(!position.is_new(105 * S, line));
        }
        assert!(position.is_new(105 * S, "d"), "another equal one");
        assert!(position.is_new(106 * S, "e"));
    }

    #[test]
    fn a_logcat_that_keeps_ending_is_started_ever_more_slowly_and_told_once() {
        let mut restarts = Restarts::default();
        let soon = Duration::from_millis(20);
        let mut pauses = Vec::new();
        let mut told = 0;
        for _ in 0..12 {
            let (pause, restless) = restarts.after(soon, true);
            pauses.push(pause);
            told += u32::from(restless);
        }
        assert_eq!(pauses[..3], [100, 200, 400].map(Duration::from_millis));
        assert_eq!(pauses.last(), Some(&Duration::from_secs(5)));
        assert_eq!(told, 1);
        // After a long run it is restarted immediately.
        assert_eq!(restarts.after(STEADY, true).0, Duration::from_millis(100));
        // A disconnection does not count.
        let mut restarts = Restarts::default();
        assert!((0..12).all(|_| !restarts.after(soon, false).1));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let shared = Position::from(0);
        let mut position = lock(&shared);
        for line in 0..3 * REMEMBERED {
            position.is_new(S, &line.to_string());
        }
        assert!(position.recent.len() <= REMEMBERED);
        position.is_new(10 * S, "later");
        assert_eq!(position.recent.len(), 1);
    }

    #[test]
    fn logcat_is_asked_for_one_process_from_a_moment_on() {
        let text = command(7, 1_700_000_000_123_456_789, true);
        assert_eq!(
            text.text(),
            "logcat -v threadtime -v epoch -b main '--pid=7' -T 1700000000.123"
                .replace("'--pid=7'", "--pid=7")
        );
    }

    fn run(command: &str, lines: &str, end: Step) -> Vec<Step> {
        let mut script = service(&format!("shell,v2,raw:{command}"));
        script.extend([say(packet(1, lines.as_bytes())), end]);
        script
    }

    fn tracker() -> Vec<Step> {
        let list = "S\tdevice\n";
        vec![
            expect("host:track-devices-l"),
            say("OKAY"),
            say(format!("{:04x}{list}", list.len())),
            Step::Hang,
        ]
    }

    #[tokio::test(start_paused = true)]
    async fn a_logcat_that_is_killed_before_its_first_line_is_started_again() {
        let line = "1700000000.500  7  9 I e.myapplicatio: Explicit concurrent copying GC freed \
            1000(48KB) AllocSpace objects, 0(0B) LOS objects, 49% free, 5MB/11MB, paused \
            52us,30us total 20.1ms";
        let logcat = "logcat -v threadtime -v epoch -b main --pid=7 -T 1700000000.000";
        let exit = |code| say(packet(3, &[code]));
        let scripted = Scripted::new([
            features("shell_v2"),
            run(logcat, "", exit(137)),
            tracker(),
            run("true", "", exit(0)),
            run(logcat, &format!("{line}\n"), Step::Hang),
        ]);
        let mut seen = Vec::new();
        let phone = scripted.phone();
        let following = follow_lines(&phone, &[7], 1_700_000_000 * S, |event| {
            seen.push(format!("{event:?}"));
        });
        let _ = tokio::time::timeout(Duration::from_secs(1), following).await;
        assert_eq!(scripted.complaints(), Vec::<String>::new());
        assert_eq!(seen, [format!("{:?}", LogEvent::Line(line))]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_never_works_ends_with_its_reason() {
        let logcat = "logcat -v threadtime -v epoch -b main --pid=7 -T 1700000000.000";
        let exit = |code| say(packet(3, &[code]));
        let failing = || {
            let mut steps = run(logcat, "", exit(1));
            let end = steps.len() - 1;
            steps.insert(end, say(packet(2, b"Logs are disabled\nusage")));
            steps
        };
        let mut script = vec![features("shell_v2")];
        for _ in 1..RESTLESS {
            script.extend([failing(), tracker(), run("true", "", exit(0))]);
        }
        script.push(failing());
        let scripted = Scripted::new(script);
        let why = follow_lines(&scripted.phone(), &[7], 1_700_000_000 * S, |_| {}).await;
        assert_eq!(scripted.complaints(), Vec::<String>::new());
        assert_eq!(why, "Logs are disabled");
    }
}
