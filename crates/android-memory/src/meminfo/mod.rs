//! `dumpsys meminfo` in every form since Android 4, as one model: processes with their table,
//! App Summary, objects and databases; the whole phone; the forms for scripts. Columns and rows
//! are known by their names, what is not known is kept, and every text comes back as it was.
//!
//! | module | owns |
//! |---|---|
//! | `number` | integers in the digits of any locale |
//! | `line` | lines that were read, and those that were not |
//! | `table` | columns and rows of the table and of Dalvik Details |
//! | `pairs` | `name: number` lines: App Summary, Objects, SQL, Native Allocations |
//! | `databases` | databases and pools |
//! | `process` | one process and its sections |
//! | `system` | the whole phone: lists of processes and categories, its RAM |
//! | `compact` | the forms for scripts, `--checkin` and `-c` |
//! | `explain` | what rows mean, and what to do about them |
//! | `parts` | how a process's memory divides, by App Summary's rules; whether sums are right |

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

pub use compact::{Checkin, Compact};
pub use databases::{Database, Databases};
pub use line::{Line, Lines};
pub use number::Digits;
pub use pairs::{Entry, Group, Pairs};
pub use parts::{NATIVE_HEAP, Rule, Sum};
pub use process::{Body, Process, Section};
pub use system::{Fact, Item, List, Measure};
pub use table::{Column, Heading, Headings, Row, Table};

/// What `dumpsys meminfo` printed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Meminfo {
    /// Its pieces, in order.
    pub pieces: Vec<Piece>,
    /// Whether lines end as on Windows, which some adb and pseudo-terminals do.
    pub(crate) crlf: bool,
    /// Whether the last line has no end.
    pub(crate) torn: bool,
}

/// A piece of what was printed.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// What the clocks said.
    Clocks(Clocks),
    /// The same in the forms for scripts.
    Time(Clocks),
    /// A process.
    Process(Process),
    /// A process in the form for scripts.
    Checkin(Checkin),
    /// A list of the whole phone.
    List(List),
    /// Lines on the phone's RAM.
    Facts(Lines<Fact>),
    /// The whole phone in the form for scripts.
    Compact(Compact),
    /// There is none of this name or pid.
    NoProcess(String),
    /// Lines that are none of these: blank ones, the preamble, what other programs printed.
    Text(Lines<()>),
}

/// The phone's clocks when it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clocks {
    /// Since boot, without deep sleep, ms.
    pub uptime_ms: u64,
    /// Since boot, ms: BOOTTIME.
    pub realtime_ms: u64,
}

/// Lines that are looked at: a phone with a thousand processes has 90,000. What comes behind
/// them is kept as text.
const MOST_LINES: usize = 1 << 18;

const NO_PROCESS: &str = "No process found for: ";

/// Whether a line says that the phone could not ask the app.
pub(crate) fn is_trouble(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix("Got ");
    let failure = rest.and_then(|rest| rest.split([' ', '!', ':']).next());
    failure.is_some_and(|word| word.ends_with("Exception"))
        || line.starts_with("*** SERVICE 'meminfo' DUMP TIMEOUT")
        || line.starts_with("Can't find service: meminfo")
}

fn clocks(line: &str) -> Option<Clocks> {
    let rest = line.strip_prefix("Uptime: ")?;
    let (uptime, realtime) = rest.split_once(" Realtime: ")?;
    let clocks = Clocks {
        uptime_ms: uptime.parse().ok()?,
        realtime_ms: realtime.parse().ok()?,
    };
    (print_clocks(&clocks) == line).then_some(clocks)
}

/// `time,UPTIME,REALTIME` of the forms for scripts.
fn time(line: &str) -> Option<Clocks> {
    let (uptime, realtime) = line.strip_prefix("time,")?.split_once(',')?;
    let clocks = Clocks {
        uptime_ms: uptime.parse().ok()?,
        realtime_ms: realtime.parse().ok()?,
    };
    (print_time(&clocks) == line).then_some(clocks)
}

fn print_time(clocks: &Clocks) -> String {
    format!("time,{},{}", clocks.uptime_ms, clocks.realtime_ms)
}

fn print_clocks(clocks: &Clocks) -> String {
    format!(
        "Uptime: {} Realtime: {}",
        clocks.uptime_ms, clocks.realtime_ms
    )
}

impl Meminfo {
    /// Reads a text. Never fails: what is not understood is kept as text.
    pub fn parse(text: &str) -> Meminfo {
        let mut meminfo = Meminfo {
            torn: !text.is_empty() && !text.ends_with('\n'),
            ..Meminfo::default()
        };
        let body = text.strip_suffix('\n').unwrap_or(text);
        if text.is_empty() {
            return meminfo;
        }
        let mut lines: Vec<&str> = body.splitn(MOST_LINES + 1, '\n').collect();
        let rest = (lines.len() > MOST_LINES).then(|| lines.pop()).flatten();
        let ended = lines.len() - usize::from(meminfo.torn && rest.is_none());
        meminfo.crlf =
            rest.is_none() && ended > 0 && lines[..ended].iter().all(|line| line.ends_with('\r'));
        if meminfo.crlf {
            for line in &mut lines[..ended] {
                *line = line.strip_suffix('\r').unwrap_or(line);
            }
        }
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
                let usual = format!("** MEMINFO in pid {pid} [{name}] **") == line;
                let process = Process {
                    pid: Some(pid),
                    name: Some(name.to_owned()),
                    heading: (!usual).then(|| line.to_owned()),
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

    /// Reads a process up to where the next piece begins.
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
        } else if let Some(clocks) = time(line) {
            Piece::Time(clocks)
        } else if let Some(target) = line.strip_prefix(NO_PROCESS) {
            Piece::NoProcess(target.to_owned())
        } else if let Some(list) = List::headed(line) {
            Piece::List(list)
        } else if compact::is_record(line) {
            let mut compact = Compact::default();
            compact.push(line);
            Piece::Compact(compact)
        } else if let Some(checkin) = Checkin::read(line) {
            Piece::Checkin(checkin)
        } else if let Some(fact) = Fact::read(line, true) {
            let mut facts = Lines::default();
            let printed = fact.print();
            facts.push(fact, &printed, line);
            Piece::Facts(facts)
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

    /// Whether the line belongs to the piece before; it is then read.
    fn continues(&mut self, line: &str) -> bool {
        match self.pieces.last_mut() {
            Some(Piece::List(list)) => list.read(line),
            Some(Piece::Facts(facts)) => match Fact::read(line, false) {
                Some(fact) => {
                    let printed = fact.print();
                    facts.push(fact, &printed, line);
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

    /// The text again, byte for byte.
    pub fn render(&self) -> String {
        let mut lines = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Clocks(clocks) => lines.push(print_clocks(clocks)),
                Piece::Time(clocks) => lines.push(print_time(clocks)),
                Piece::Process(process) => process.write(&mut lines),
                Piece::Checkin(checkin) => lines.push(checkin.fields.join(",")),
                Piece::List(list) => list.write(&mut lines),
                Piece::Facts(facts) => facts.write(&mut lines, Fact::print),
                Piece::Compact(compact) => lines.extend(compact.records.iter().cloned()),
                Piece::NoProcess(target) => lines.push(format!("{NO_PROCESS}{target}")),
                Piece::Text(text) => text.write(&mut lines, |()| String::new()),
            }
        }
        let end = if self.crlf { "\r\n" } else { "\n" };
        let mut text = lines.join(end);
        if !self.torn && !self.pieces.is_empty() {
            text.push_str(end);
        }
        text
    }

    /// The processes.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Process(process) => Some(process),
            Piece::Checkin(checkin) => Some(&checkin.process),
            _ => None,
        })
    }

    /// The lists of the whole phone.
    pub fn lists(&self) -> impl Iterator<Item = &List> {
        self.pieces.iter().flat_map(|piece| match piece {
            Piece::List(list) => std::slice::from_ref(list),
            Piece::Compact(compact) => &compact.lists,
            _ => &[],
        })
    }

    /// The lines on the phone's RAM.
    pub fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::Facts(facts) => Some(facts.values()),
                _ => None,
            })
            .flatten()
    }

    /// The numbers of a line of `-c` such as `ram,TOTAL,FREE,USED`, bytes.
    pub fn numbers(&self, kind: &str) -> Option<Vec<i64>> {
        self.pieces.iter().find_map(|piece| match piece {
            Piece::Compact(compact) => compact.numbers(kind),
            _ => None,
        })
    }

    /// Lines that are none of these and not blank: what other programs printed, a vendor's
    /// additions. The preamble is left out.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        let texts = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.unknown()),
            _ => None,
        });
        texts
            .flatten()
            .filter(|line| !line.starts_with("Applications Memory Usage"))
    }

    /// The phone's clocks when it began.
    pub fn clocks(&self) -> Option<Clocks> {
        self.pieces.iter().find_map(|piece| match piece {
            Piece::Clocks(clocks) | Piece::Time(clocks) => Some(*clocks),
            _ => None,
        })
    }

    /// What was asked for where the phone knows no such process.
    pub fn no_process(&self) -> Option<&str> {
        self.pieces.iter().find_map(|piece| match piece {
            Piece::NoProcess(target) => Some(target.as_str()),
            _ => None,
        })
    }

    /// Why the phone could not tell all, in its words.
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
