//! Every form of `dumpsys meminfo` since Android 4 in one model. It covers processes with their
//! table, App Summary, objects and databases; the whole device; and the forms for scripts. Columns
//! and rows are identified by name, and unknown ones are kept.
//!
//! | module | owns |
//! |---|---|
//! | `number` | integers in the digits of any locale |
//! | `line` | parsed values and unknown lines |
//! | `table` | columns and rows of the table and of Dalvik Details |
//! | `pairs` | `name: number` lines: App Summary, Objects, SQL, Native Allocations |
//! | `databases` | databases and pools |
//! | `process` | one process and its sections |
//! | `system` | the whole device: lists of processes and categories, RAM |
//! | `compact` | the forms for scripts, `--checkin` and `-c` |
//! | `explain` | meaning of rows, with advice |
//! | `parts` | division of a process's memory by App Summary's rules; check of sums |

use heaptap_base::text::plain_str;

mod compact;
mod databases;
pub mod explain;
mod line;
mod number;
mod pairs;
mod parts;
mod process;
mod system;
mod table;

pub use compact::Compact;
pub use databases::{Database, Databases};
pub use line::Lines;
use line::is_trouble;
pub use pairs::{Entry, Pairs};
pub use parts::{NATIVE_HEAP, Rule, Sum};
pub use process::{Body, Process, Section};
pub use system::{Fact, Item, List, Measure};
pub use table::{Column, Heading, Headings, Row, Table};

/// Parsed output of `dumpsys meminfo`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Meminfo {
    /// Pieces in the order of the text.
    pub pieces: Vec<Piece>,
}

/// A piece of the output.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Clocks of the device.
    Clocks(Clocks),
    Process(Process),
    /// A list of the whole device.
    List(List),
    /// Lines about the device's RAM.
    Facts(Vec<Fact>),
    /// The whole device in the form for scripts.
    Compact(Compact),
    /// There is no process with this name or process ID.
    NoProcess(String),
    /// All other lines: blank ones, the preamble, output of other programs.
    Text(Lines<()>),
}

/// Clocks of the device at the time of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clocks {
    /// Time since boot, ms: BOOTTIME.
    pub realtime_ms: u64,
}

/// Maximum number of lines to parse; a device with a thousand processes has 90,000. Further lines
/// are kept as text.
const MAX_LINES: usize = 1 << 18;

const NO_PROCESS: &str = "No process found for: ";

/// Parses `Uptime: UPTIME Realtime: REALTIME`, or `time,UPTIME,REALTIME` of the forms for scripts.
fn clocks(line: &str) -> Option<Clocks> {
    let (uptime, realtime) = match line.strip_prefix("Uptime: ") {
        Some(rest) => rest.split_once(" Realtime: ")?,
        None => line.strip_prefix("time,")?.split_once(',')?,
    };
    let number = |text: &str| text.parse().ok().filter(|n: &u64| n.to_string() == text);
    number(uptime)?;
    Some(Clocks {
        realtime_ms: number(realtime)?,
    })
}

impl Meminfo {
    /// Parses a text. Never fails: unknown parts are kept as text.
    pub fn parse(text: &str) -> Meminfo {
        let mut meminfo = Meminfo::default();
        let text = &*plain_str(text);
        let body = text.strip_suffix('\n').unwrap_or(text);
        if text.is_empty() {
            return meminfo;
        }
        let mut lines: Vec<&str> = body.splitn(MAX_LINES + 1, '\n').collect();
        let rest = (lines.len() > MAX_LINES).then(|| lines.pop()).flatten();
        meminfo.read(&lines);
        if let Some(rest) = rest {
            let mut text = Lines::default();
            text.text(rest);
            meminfo.pieces.push(Piece::Text(text));
        }
        for piece in &mut meminfo.pieces {
            if let Piece::Compact(compact) = piece {
                compact.finish();
            }
        }
        meminfo
    }

    fn read(&mut self, lines: &[&str]) {
        let mut at = 0;
        while at < lines.len() {
            let line = lines[at];
            if let Some((pid, name)) = process::heading(line) {
                let process = Process {
                    pid: Some(pid),
                    name: Some(name.to_owned()),
                    ..Process::default()
                };
                at = self.process(process, lines, at + 1);
            } else if process::table_head(&lines[at..]).is_some() {
                at = self.process(Process::default(), lines, at);
            } else {
                self.line(line);
                at += 1;
            }
        }
    }

    /// Parses a process and returns the line at which the next piece begins.
    fn process(&mut self, mut process: Process, lines: &[&str], from: usize) -> usize {
        let ends = |line: &&str| {
            process::heading(line).is_some()
                || line.starts_with("Uptime: ")
                || line.starts_with("Total ")
                || line.starts_with(NO_PROCESS)
                || line.starts_with("Applications Memory Usage")
        };
        let end = lines[from..].iter().position(ends);
        let end = end.map_or(lines.len(), |found| from + found);
        process.read(&lines[from..end]);
        self.pieces.push(Piece::Process(process));
        end
    }

    fn line(&mut self, line: &str) {
        if self.continues(line) {
            return;
        }
        let piece = if let Some(clocks) = clocks(line) {
            Piece::Clocks(clocks)
        } else if let Some(target) = line.strip_prefix(NO_PROCESS) {
            Piece::NoProcess(target.to_owned())
        } else if let Some(list) = List::headed(line) {
            Piece::List(list)
        } else if compact::is_record(line) {
            let mut compact = Compact::default();
            compact.push(line);
            Piece::Compact(compact)
        } else if let Some(process) = compact::checkin(line) {
            Piece::Process(process)
        } else if let Some(fact) = Fact::read(line, true) {
            Piece::Facts(vec![fact])
        } else if let Some(Piece::Text(text)) = self.pieces.last_mut() {
            text.text(line);
            return;
        } else {
            let mut text = Lines::default();
            text.text(line);
            Piece::Text(text)
        };
        self.pieces.push(piece);
    }

    /// Adds the line to the previous piece if it belongs there, and returns whether it did.
    fn continues(&mut self, line: &str) -> bool {
        match self.pieces.last_mut() {
            Some(Piece::List(list)) => list.read(line),
            Some(Piece::Facts(facts)) => match Fact::read(line, false) {
                Some(fact) => {
                    facts.push(fact);
                    true
                }
                None => false,
            },
            Some(Piece::Compact(compact)) if compact::is_record(line) => {
                compact.push(line);
                true
            }
            _ => false,
        }
    }

    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Process(process) => Some(process),
            _ => None,
        })
    }

    /// Returns the process with this ID, or the first one without an ID.
    pub fn process_of(&self, pid: u32) -> Option<&Process> {
        let mut processes = self.processes();
        processes.find(|process| process.pid.is_none_or(|of| of == pid))
    }

    /// Returns the lists of the whole device.
    pub fn lists(&self) -> impl Iterator<Item = &List> {
        self.pieces.iter().flat_map(|piece| match piece {
            Piece::List(list) => std::slice::from_ref(list),
            Piece::Compact(compact) => &compact.lists,
            _ => &[],
        })
    }

    /// Returns the lines about the device's RAM.
    pub fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.pieces.iter().flat_map(|piece| match piece {
            Piece::Facts(facts) => facts.as_slice(),
            _ => &[],
        })
    }

    /// Returns the numbers of a line of `-c` such as `ram,TOTAL,FREE,USED`, bytes.
    pub fn numbers(&self, kind: &str) -> Option<Vec<i64>> {
        self.pieces.iter().find_map(|piece| match piece {
            Piece::Compact(compact) => compact.numbers(kind),
            _ => None,
        })
    }

    /// Returns unknown lines that are not blank: output of other programs, additions of a vendor.
    /// Excludes the preamble.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        let texts = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.unknown()),
            _ => None,
        });
        texts
            .flatten()
            .filter(|line| !line.starts_with("Applications Memory Usage"))
    }

    /// Returns the device's clocks at the start of the output.
    pub fn clocks(&self) -> Option<Clocks> {
        self.pieces.iter().find_map(|piece| match piece {
            Piece::Clocks(clocks) => Some(*clocks),
            _ => None,
        })
    }

    /// Returns the requested name or process ID if the device does not have such a process.
    pub fn no_process(&self) -> Option<&str> {
        self.pieces.iter().find_map(|piece| match piece {
            Piece::NoProcess(target) => Some(target.as_str()),
            _ => None,
        })
    }

    /// Returns the device's message if it could not report everything.
    pub fn trouble(&self) -> Option<&str> {
        self.pieces.iter().find_map(|piece| match piece {
            Piece::Process(process) => process.trouble(),
            Piece::Text(text) => text.unknown().find(|line| is_trouble(line)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests;
