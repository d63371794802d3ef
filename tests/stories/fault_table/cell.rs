//! One cell: a recording with one fault at one step, the command that goes on, and the check that
//! nothing is lost.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use virtual_phone::Gate;

use super::faults::Fault;
use super::judge::judge;
use super::steps::{After, Step};
use crate::lab::{LIMIT, Lab};

const PHONE: &str = "android=14,build=userdebug,speed=20";
/// Silence of a command after which a person with a lasting fault presses Ctrl-C.
const PATIENCE: Duration = Duration::from_secs(2);
/// Silence after which a command without such a fault hangs.
const LONG_PATIENCE: Duration = Duration::from_secs(30);

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
    /// The fault ends the recording, because it was running.
    ends_itself: bool,
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
pub struct Over {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub lines: Vec<String>,
    pub stderr: String,
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
    let args = "record -n com.example.app -o out --with all --no-report --json-lines";
    let mut command = lab.command(args);
    command.args(["--adb-server", &lab.phone.addr().to_string()]);
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
        ends_itself: false,
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
            // Without stdout, the test sees nothing to wait for.
            let is_blind = self.is_struck && self.fault == Fault::Stdout && !self.is_ending;
            let patience = match self.fault.lasts() || is_blind {
                true => PATIENCE,
                false => LONG_PATIENCE,
            };
            let event = match self.events.recv_timeout(patience) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => {
                    if let Ok(Some(status)) = self.child.try_wait() {
                        return Ok(status);
                    }
                    if is_blind {
                        self.ask_end(&["INT"]);
                        continue;
                    }
                    if !self.fault.lasts() {
                        return Err(format!("it hangs: {:#?}", self.lines));
                    }
                    if self.is_struck {
                        self.ask_end(&["INT", "INT"]);
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
            gate.answer(virtual_phone::Answer::Serve);
        }
    }

    fn strike(&mut self) {
        self.is_struck = true;
        let is_running = !self.lab.traces().is_empty();
        self.ends_itself =
            self.fault.ends_recording() && (is_running || self.fault == Fault::DeviceFull);
        self.fault.strike_host(self.lab, self.child.id());
        let signals = self.fault.signals();
        if !signals.is_empty() {
            if self.is_ending {
                // heaptap takes signals that follow each other at once as one.
                std::thread::sleep(Duration::from_millis(200));
            }
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
                "HUP" => crate::signals::hang_up(),
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
        let mut command = self.lab.command("snapshot --label up --json");
        command
            .args(["--adb-server", &self.lab.phone.addr().to_string()])
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
        if self.ends_itself {
            return;
        }
        if self.is_labeled && (is_captured || self.is_struck) && !self.is_ending {
            self.arm(After::End);
            self.is_ending = true;
            self.signal(&["INT"]);
        }
    }
}
