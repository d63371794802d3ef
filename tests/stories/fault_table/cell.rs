//! One cell: a recording with one fault at one step, the command that goes on, and the check that
//! nothing is lost.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use heaptap::phone::Gate;
use serde_json::Value;

use super::faults::Fault;
use super::steps::{After, Step};
use crate::lab::{APP, LIMIT, Lab, files};

const PHONE: &str = "android=14,build=userdebug,speed=20";
/// Silence of a command after which a person with a lasting fault presses Ctrl-C.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a person sees in a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub says: String,
    pub exit: String,
    pub kept: String,
    pub next: String,
}

enum Event {
    Line(String),
    Stopped,
    Snapshot,
    Over,
}

/// The recording of a cell.
struct Cell<'a> {
    lab: &'a Lab,
    step: &'a Step,
    fault: Fault,
    child: Child,
    sender: Sender<Event>,
    events: Receiver<Event>,
    ignores: Arc<AtomicBool>,
    lines: Vec<String>,
    id: String,
    gate: Option<Arc<Gate>>,
    reached: usize,
    is_struck: bool,
    is_asked: bool,
    is_labeled: bool,
    is_ending: bool,
}

impl Drop for Cell<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Walks a cell.
///
/// # Errors
/// Returns the reason why it does not have a good answer.
pub fn walk(step: &Step, fault: Fault) -> Result<Seen, String> {
    let lab = Lab::new(PHONE);
    let ended = record(&lab, step, fault)?;
    fault.end(&lab);
    judge(&lab, fault, &ended).map_err(|wrong| format!("{wrong}\n{}", shown(&ended)))
}

/// The end of a recording.
struct Over {
    code: Option<i32>,
    signal: Option<i32>,
    lines: Vec<String>,
    stderr: String,
}

fn shown(over: &Over) -> String {
    let lines = over.lines.iter().map(|line| {
        let short: String = line.chars().take(300).collect();
        short
    });
    format!(
        "exit {:?}, signal {:?}\n{}\n--- stderr\n{}",
        over.code,
        over.signal,
        lines.collect::<Vec<_>>().join("\n"),
        over.stderr
    )
}

fn record(lab: &Lab, step: &Step, fault: Fault) -> Result<Over, String> {
    let args = [
        "record",
        "-n",
        APP,
        "-o",
        "out",
        "--with",
        "all",
        "--no-report",
        "--json-lines",
    ];
    let mut command = crate::program::cleaned("sh");
    command
        // A process whose files cannot grow gets an error instead of this signal.
        .args([
            "-c",
            "trap '' XFSZ; exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_heaptap"),
        ])
        .args(args)
        .arg("--adb-server")
        .arg(lab.phone.addr().to_string())
        .current_dir(lab.work())
        .env("HEAPTAP_STATE_DIR", lab.dir.path().join("state"))
        .env("HEAPTAP_CACHE_DIR", lab.dir.path().join("cache"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (sender, events) = channel();
    let gate = (step.after == After::Begin).then(|| close(lab, step, 0, "", &sender));
    let mut child = command.spawn().expect("heaptap starts");
    let ignores = Arc::new(AtomicBool::new(false));
    read_lines(&mut child, &sender, &ignores);
    let (text_sender, text) = channel();
    let mut pipe = child.stderr.take().expect("piped");
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = pipe.read_to_end(&mut text);
        let _ = text_sender.send(String::from_utf8_lossy(&text).into_owned());
    });
    let mut cell = Cell {
        lab,
        step,
        fault,
        child,
        sender,
        events,
        ignores,
        lines: Vec::new(),
        id: String::new(),
        gate,
        reached: 0,
        is_struck: false,
        is_asked: false,
        is_labeled: false,
        is_ending: false,
    };
    let status = cell.run()?;
    let stderr = text.recv_timeout(LIMIT).unwrap_or_default();
    let over = Over {
        code: status.code(),
        signal: status.signal(),
        lines: std::mem::take(&mut cell.lines),
        stderr,
    };
    match cell.is_struck {
        true => Ok(over),
        false => Err(format!("it ended before the step\n{}", shown(&over))),
    }
}

/// Closes the gate of a step's request, and sends an event when one is stopped there.
fn close(lab: &Lab, step: &Step, at: usize, id: &str, sender: &Sender<Event>) -> Arc<Gate> {
    let parts = step.requests[at].iter();
    let parts: Vec<&str> = parts
        .map(|part| if *part == "ID" { id } else { part })
        .collect();
    let gate = Arc::new(lab.phone.faults().close_gate(&parts));
    let (waiting, sender) = (Arc::clone(&gate), sender.clone());
    std::thread::spawn(move || {
        if waiting.is_reached_within(LIMIT) {
            drop(waiting);
            let _ = sender.send(Event::Stopped);
        }
    });
    gate
}

fn read_lines(child: &mut Child, sender: &Sender<Event>, ignores: &Arc<AtomicBool>) {
    let stdout = BufReader::new(child.stdout.take().expect("piped"));
    let (sender, ignores) = (sender.clone(), Arc::clone(ignores));
    std::thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            if sender.send(Event::Line(line)).is_err() || ignores.load(Ordering::SeqCst) {
                break;
            }
        }
        let _ = sender.send(Event::Over);
    });
}

impl Cell<'_> {
    fn run(&mut self) -> Result<std::process::ExitStatus, String> {
        let begun = Instant::now();
        loop {
            if begun.elapsed() > LIMIT * 2 {
                return Err(format!("it hangs: {:#?}", self.lines));
            }
            let event = match self.events.recv_timeout(PATIENCE) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => {
                    if let Ok(Some(status)) = self.child.try_wait() {
                        return Ok(status);
                    }
                    if self.is_struck && self.fault.lasts() {
                        self.ask_end(&["INT", "INT"]);
                    } else if self.ignores.load(Ordering::SeqCst) {
                        self.ask_end(&["INT"]);
                    }
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => unreachable!("a sender is kept"),
            };
            match event {
                Event::Over if !self.ignores.load(Ordering::SeqCst) => {
                    return Ok(self.child.wait().expect("our own child"));
                }
                Event::Over => {}
                Event::Stopped => self.stopped(),
                Event::Snapshot => {
                    self.is_labeled = true;
                    self.end_when_captured();
                }
                Event::Line(line) => self.take(line),
            }
        }
    }

    fn take(&mut self, line: String) {
        let value: Value = serde_json::from_str(&line).unwrap_or_default();
        self.lines.push(line);
        match value["event"].as_str().unwrap_or_default() {
            "started" if self.id.is_empty() => {
                self.id = value["session"].as_str().unwrap_or_default().to_owned();
                self.arm(After::Started);
            }
            "progress" if value["elapsed_s"].as_f64() >= Some(1.0) && !self.is_asked => {
                if self.step.requests.is_empty() && !self.is_struck {
                    self.strike();
                }
                if !self.is_asked && !self.fault.is_signal() || !self.is_struck {
                    self.ask_snapshot();
                }
            }
            "captured" => self.end_when_captured(),
            "connection-lost" | "pull-retry" | "starting"
                if self.is_struck && self.fault.lasts() =>
            {
                self.ask_end(&["INT", "INT"]);
            }
            _ => {}
        }
    }

    fn arm(&mut self, stage: After) {
        if self.step.after == stage && self.gate.is_none() && !self.step.requests.is_empty() {
            self.gate = Some(close(self.lab, self.step, 0, &self.id, &self.sender));
        }
    }

    /// heaptap is stopped at a request of the step.
    fn stopped(&mut self) {
        self.reached += 1;
        if self.reached == self.step.requests.len() {
            self.strike();
            return;
        }
        let next = close(self.lab, self.step, self.reached, &self.id, &self.sender);
        if let Some(gate) = self.gate.replace(next) {
            gate.answer(heaptap::phone::Answer::Serve);
        }
    }

    fn strike(&mut self) {
        self.is_struck = true;
        self.fault.strike_host(self.lab, self.child.id());
        let signals = self.fault.signals();
        if !signals.is_empty() {
            self.is_asked = true;
            self.is_ending = true;
            self.signal(signals);
        }
        if self.fault == Fault::Stdout {
            self.ignores.store(true, Ordering::SeqCst);
        }
        let answer = self.fault.strike_phone(self.lab);
        if !signals.is_empty() {
            // heaptap takes a signal while its request is stopped.
            std::thread::sleep(Duration::from_millis(300));
        }
        if let Some(gate) = self.gate.take() {
            gate.answer(answer);
        }
    }

    fn signal(&self, signals: &[&str]) {
        use rustix::process::{Pid, Signal, kill_process};
        for (n, signal) in signals.iter().enumerate() {
            if n > 0 {
                // A person presses a key twice more slowly than a shell repeats a signal.
                std::thread::sleep(Duration::from_millis(200));
            }
            let signal = match *signal {
                "TERM" => Signal::TERM,
                "HUP" => Signal::HUP,
                "KILL" => Signal::KILL,
                _ => Signal::INT,
            };
            let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            let _ = kill_process(pid.expect("a pid"), signal);
        }
    }

    fn ask_end(&mut self, signals: &[&str]) {
        self.is_asked = true;
        if !self.is_ending || signals.len() > 1 {
            self.is_ending = true;
            self.signal(signals);
        }
    }

    /// Asks for a snapshot as from another terminal.
    fn ask_snapshot(&mut self) {
        self.is_asked = true;
        self.arm(After::Label);
        let mut command = crate::program::heaptap();
        command
            .args(["snapshot", "--label", "up", "--json", "--adb-server"])
            .arg(self.lab.phone.addr().to_string())
            .current_dir(self.lab.work())
            .env("HEAPTAP_STATE_DIR", self.lab.dir.path().join("state"))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("heaptap starts");
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            let _ = child.wait();
            let _ = sender.send(Event::Snapshot);
        });
    }

    /// Ends the recording once the label has everything.
    fn end_when_captured(&mut self) {
        let is_captured = self.lines.iter().any(|line| line.contains("\"captured\""));
        if self.is_labeled && (is_captured || self.is_struck) && !self.is_ending {
            self.arm(After::End);
            self.is_ending = true;
            self.signal(&["INT"]);
        }
    }
}

/// Finds what a person sees, runs the command that goes on, and checks that nothing is lost.
fn judge(lab: &Lab, fault: Fault, over: &Over) -> Result<Seen, String> {
    let mut seen = Seen {
        says: says(over, fault),
        exit: over
            .code
            .map_or("killed".to_owned(), |code| code.to_string()),
        kept: String::new(),
        next: String::new(),
    };
    if over.code == Some(1) || over.code.is_none() && over.signal != Some(9) {
        return Err("it crashed".to_owned());
    }
    let has_dumps = lab
        .phone
        .truth()
        .iter()
        .any(|truth| !truth.dumps.is_empty());
    let is_fetched = lab.work().join("out/raw-trace").exists();
    let has_results = lab.work().join("out/manifest.json").exists();
    let is_left = lab.is_left();
    if fault == Fault::NoOutput {
        let _ = std::fs::remove_file(lab.work().join("out"));
    }
    let on_phone = !lab.traces().is_empty();
    seen.kept = match (has_results, is_left, on_phone, is_fetched) {
        (true, false, ..) => "results",
        (true, true, ..) => "results, journal",
        (false, true, true, true) => "trace on the device and on the host",
        (false, true, true, false) => "trace on the device",
        (false, true, false, true) => "trace on the host",
        (false, true, false, false) => "journal",
        (false, false, true, _) => "trace on the device, no journal",
        (false, false, false, true) => "trace on the host, no journal",
        (false, false, false, false) => "nothing was recorded",
    }
    .to_owned();
    let command = command(over);
    if let Some(command) = &command {
        seen.next = with_id(command);
    }
    let mut folder = "out";
    if is_left {
        let words = match (&command, over.signal) {
            (Some(command), _) if command.starts_with("heaptap stop") => command.clone(),
            (_, Some(_)) => "heaptap stop".to_owned(),
            _ => {
                return Err(format!(
                    "a session is left, and no command goes on: {command:?}"
                ));
            }
        };
        if over.signal.is_some() {
            seen.next = "heaptap stop".to_owned();
        }
        let mut words: Vec<&str> = words.split_whitespace().skip(1).collect();
        if let Some(last) = words.last_mut()
            && *last == "DIR"
        {
            *last = "elsewhere";
            folder = "elsewhere";
        }
        let ended = lab.run(&words);
        let good = match has_dumps || on_phone {
            true => matches!(ended.code(), Some(0 | 6 | 7)),
            // Nothing had reached the phone.
            false => matches!(ended.code(), Some(0 | 5 | 6 | 7 | 8)),
        };
        if !good {
            return Err(format!(
                "`heaptap {}` does not go on: {ended}",
                words.join(" ")
            ));
        }
    }
    let has_results = lab.work().join(folder).join("manifest.json").exists();
    tidy(lab, fault, folder)?;
    if has_results {
        whole(lab, folder)?;
    } else if over.code == Some(0) {
        return Err("success without results".to_owned());
    } else {
        // The same command works again.
        let again = lab.run(&["record", "-n", APP, "-o", "out", "-d", "2s", "--no-report"]);
        if again.code() != Some(0) {
            return Err(format!("the same command does not work: {again}"));
        }
        tidy(lab, fault, "out")?;
        if seen.next.is_empty() {
            seen.next = "the same command".to_owned();
        }
    }
    Ok(seen)
}

/// Checks that the directory has each dump that the phone wrote, and no other.
fn whole(lab: &Lab, folder: &str) -> Result<(), String> {
    let manifest = lab.manifest(folder);
    let truth = lab.truth_of(folder);
    let dumps = manifest["dumps"].as_array().cloned().unwrap_or_default();
    let is_said = manifest["outcome"]["exit_code"].as_u64() != Some(0);
    if dumps.len() < truth.dumps.len() && !is_said {
        return Err(format!("a dump is missing without a word: {manifest:#}"));
    }
    if truth.finished && !truth.dumps.is_empty() && !is_said {
        lab.assert_has(folder, &truth);
    }
    let trace = lab.work().join(folder).join("raw-trace");
    let size = std::fs::metadata(&trace).map_or(0, |metadata| metadata.len());
    if Some(size) != manifest["trace"]["size"].as_u64() {
        return Err(format!("raw-trace has {size} bytes: {}", manifest["trace"]));
    }
    Ok(())
}

/// Checks that nothing remains on the phone and in the journal, and no unfinished file on the host.
fn tidy(lab: &Lab, fault: Fault, folder: &str) -> Result<(), String> {
    let mut left: BTreeSet<String> = lab.traces().into_iter().collect();
    left.extend(lab.phone.list("/data/local/tmp"));
    // Known: a full device ends the script of `am dumpheap` that would remove its files.
    if fault == Fault::DeviceFull {
        left.retain(|file| !file.contains(".malloc_info.xml"));
    }
    left.extend(files(&lab.dir.path().join("state/sessions")));
    let hidden = |file: &String| file.starts_with('.');
    left.extend(files(&lab.work().join(folder)).into_iter().filter(hidden));
    left.extend(files(&lab.work().join("out")).into_iter().filter(hidden));
    match left.is_empty() {
        true => Ok(()),
        false => Err(format!("left over: {left:?}")),
    }
}

/// Returns a command with `ID` instead of a session.
fn with_id(command: &str) -> String {
    let mut words: Vec<&str> = command.split(' ').collect();
    if let [_, "stop", id, ..] = words.as_mut_slice()
        && id.len() == 8
    {
        *id = "ID";
    }
    words.join(" ")
}

/// Returns the first command of a message that goes on with the recording, otherwise the first one.
fn command(over: &Over) -> Option<String> {
    let commands: Vec<&str> = over
        .stderr
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|text| text.starts_with("heaptap "))
        .collect();
    let goes_on = |command: &&&str| command.starts_with("heaptap stop");
    let found = commands.iter().find(goes_on).or(match over.code {
        Some(0 | 6 | 7) => None,
        _ => commands.first(),
    });
    found.map(|command| (*command).to_owned())
}

/// Returns the kind and the message of the error, or the kinds of the warnings. What depends on the
/// moment is left out: names, the request in parentheses, and warnings about companion data.
fn says(over: &Over, fault: Fault) -> String {
    let values: Vec<Value> = over
        .lines
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    if let Some(error) = values
        .iter()
        .rev()
        .find_map(|value| value["error"].as_object())
    {
        let text = |key: &str| error[key].as_str().unwrap_or_default();
        return format!("`{}`: {}", text("kind"), general(text("message")));
    }
    let Some(last) = values
        .iter()
        .rev()
        .find(|value| value["event"] == "finished")
    else {
        return String::new();
    };
    let mut kinds = BTreeSet::new();
    for warning in last["manifest"]["warnings"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let kind = warning["kind"].as_str().unwrap_or_default();
        if !kind.starts_with("companion-") && kind != "label-unbound" {
            kinds.insert(format!("`{kind}`"));
        }
    }
    for value in &values {
        let text = value["text"].as_str().unwrap_or_default();
        if text.starts_with("cannot remove") {
            kinds.insert("cannot remove the trace from the device".to_owned());
        }
    }
    if over.stderr.contains("the recording is complete, but ") {
        kinds.insert("cannot access the session journal".to_owned());
    }
    if kinds.is_empty() {
        return match fault.is_signal() {
            true => "ends the recording",
            false => "no effect on the recording",
        }
        .to_owned();
    }
    kinds.into_iter().collect::<Vec<_>>().join(", ")
}

/// Replaces names of this run in a message, and leaves out what is in parentheses.
fn general(message: &str) -> String {
    let mut text = String::new();
    let mut depth = 0_usize;
    for c in message.chars() {
        match c {
            '(' => {
                depth += 1;
                text.truncate(text.trim_end().len());
            }
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => text.push(c),
            _ => {}
        }
    }
    // The request, and output that is not text.
    let until = |text: &str, end: &str| text.split(end).next().unwrap_or_default().to_owned();
    let text = until(&text, " during ");
    let text = text
        .split(|c: char| c.is_control() || c == '\u{fffd}')
        .next();
    let text = text.unwrap_or_default().trim_end().trim_end_matches(':');
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let body = word.trim_end_matches([':', ',', ';', '.']);
        let end = &word[body.len()..];
        let name = match body {
            "virtual-1" => "SERIAL",
            "out" => "DIR",
            _ if body.contains("/state/sessions") => "STATE",
            _ if body.ends_with("/raw-trace") => "DIR/raw-trace",
            _ if body.starts_with("/data/misc/") => "FILE",
            _ if body.contains("/.tmp") => "DIR",
            _ if body.starts_with("127.0.0.1:") => "HOST:PORT",
            _ if words.last().is_some_and(|last| last == "session") && body.len() == 8 => "ID",
            _ if body.starts_with(|c: char| c.is_ascii_digit()) && body.len() > 3 => "N",
            body => body,
        };
        words.push(format!("{name}{end}"));
    }
    words.join(" ")
}

#[test]
fn messages_lose_the_names_of_their_run() {
    for (message, expected) in [
        (
            "the connection to virtual-1 was lost (pull (x) y)",
            "the connection to SERIAL was lost",
        ),
        (
            "cannot write /tmp/.tmpX/work/out/raw-trace: File too large",
            "cannot write DIR/raw-trace: File too large",
        ),
        (
            "session u95hdu8z was not fetched from virtual-1: received 314899 bytes",
            "session ID was not fetched from SERIAL: received N bytes",
        ),
        (
            "cannot access the session journal in /a/.tmp/state/sessions/x.jsonl: no",
            "cannot access the session journal in STATE: no",
        ),
    ] {
        assert_eq!(general(message), expected);
    }
}
