//! Parsing of log lines in any format of `logcat -v` and in the formats that Android Studio,
//! Eclipse and `flutter run` copy, also behind what a CI system puts before each line: a time, the
//! name of a step, colors. Each line is parsed independently, so a log can mix formats.
//! Only `-v long` needs the previous line, which [`Splitter`] remembers.

use serde::Serialize;

use super::art;
use super::size::plain;
use super::stamp::Stamp;

/// Layout of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `I/tag( 123): message`
    Brief,
    /// `MM-DD HH:MM:SS.mmm I/tag( 123): message`
    Time,
    /// `MM-DD HH:MM:SS.mmm  123  456 I tag: message`
    Threadtime,
    /// `I( 123) message  (tag)`
    Process,
    /// `I( 123: 456) message`
    Thread,
    /// `I/tag: message`
    Tag,
    /// `message`
    Raw,
    /// `[ MM-DD HH:MM:SS.mmm 123: 456 I/tag ]`, then the message on separate lines.
    Long,
    /// `YYYY-MM-DD HH:MM:SS.mmm 123-456 tag package I message`, as Android Studio copies it.
    Studio,
}

/// A line of a log. Parts that its format omits are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLine<'a> {
    pub format: Format,
    pub time: Option<Stamp>,
    /// Process ID.
    pub pid: Option<u32>,
    /// `V`, `D`, `I`, `W`, `E`, `F`; `A` in Android Studio.
    pub level: Option<char>,
    /// Tag, trimmed.
    pub tag: Option<&'a str>,
    /// Package, if Android Studio prints it.
    pub package: Option<&'a str>,
    pub message: &'a str,
}

/// Type of a line in a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row<'a> {
    Line(LogLine<'a>),
    /// `--------- beginning of main` and the like.
    Divider,
    /// Nothing to process: a blank line, or the head of a line of `-v long`.
    Nothing,
}

/// Parses one line, with or without its line end. Returns `None` if it is not a log line: blank, or
/// `--------- beginning of main`. A line in an unknown format is `raw`. The head of a line of `-v
/// long` has an empty message: use [`Splitter`] if that format can occur.
pub fn parse_line(text: &str) -> Option<LogLine<'_>> {
    let text = bare(text);
    if text.trim().is_empty() || is_divider(text) {
        return None;
    }
    let line = without_tool(text);
    let known = headed(line);
    // A tool that logs the lines of a device has its own header, without a process ID.
    let inner = match known {
        Some(LogLine { pid: Some(_), .. }) => None,
        _ => inside(line),
    };
    Some(inner.or(known).unwrap_or_else(|| LogLine {
        message: art::without_prefix(text),
        ..LogLine::empty(Format::Raw)
    }))
}

/// Parses a line that begins with a header of any format.
fn headed(line: &str) -> Option<LogLine<'_>> {
    timed(line)
        .or_else(|| long_head(line))
        .or_else(|| leveled(line, None))
}

/// Maximum number of bytes before a header inside a line.
const MAX_PREFIX_LENGTH: usize = 256;

/// Parses a line with a prefix before its header, which must have a process ID.
fn inside(line: &str) -> Option<LogLine<'_>> {
    let bytes = line.as_bytes();
    let may_begin = |at: &usize| {
        // `m` ends the code of a color.
        let is_behind = !bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'm';
        let next = bytes.get(at + 1);
        is_behind
            && match bytes[*at] {
                b'0'..=b'9' | b'[' => true,
                _ => matches!(next, Some(b'/' | b'(')),
            }
    };
    let mut places = (1..bytes.len().min(MAX_PREFIX_LENGTH)).filter(may_begin);
    places.find_map(|at| headed(line.get(at..)?).filter(|line| line.pid.is_some()))
}

/// Parser for the lines of one file, in order.
#[derive(Debug, Clone, Default)]
pub struct Splitter {
    /// Head of a line of `-v long`, whose message follows.
    head: Option<String>,
}

impl Splitter {
    /// Parses the next line.
    pub fn line<'a>(&'a mut self, text: &'a str) -> Row<'a> {
        if is_divider(bare(text)) {
            self.head = None;
            return Row::Divider;
        }
        let Some(line) = parse_line(text) else {
            return Row::Nothing;
        };
        match line.format {
            Format::Long => {
                self.head = Some(bare(text).to_owned());
                Row::Nothing
            }
            // A message body can look like another format, but not if it begins with a time.
            Format::Time | Format::Threadtime | Format::Studio
                if self.head.is_none() || timed(without_tool(bare(text))).is_some() =>
            {
                self.head = None;
                Row::Line(line)
            }
            _ => match self.head.as_deref().and_then(parse_line) {
                Some(head) => Row::Line(LogLine {
                    message: match line.format {
                        Format::Raw => line.message,
                        _ => bare(text),
                    },
                    ..head
                }),
                None => Row::Line(line),
            },
        }
    }
}

impl Splitter {
    /// Returns whether the last line was the head of a line of `-v long`.
    pub(super) fn has_head(&self) -> bool {
        self.head.is_some()
    }
}

impl<'a> LogLine<'a> {
    fn empty(format: Format) -> LogLine<'a> {
        LogLine {
            format,
            time: None,
            pid: None,
            level: None,
            tag: None,
            package: None,
            message: "",
        }
    }
}

/// Removes the line end and the colors of `-v color`.
fn bare(text: &str) -> &str {
    let mut text = text.trim_end_matches(['\r', '\n']);
    while let Some(rest) = text.strip_prefix("\x1b[") {
        let Some(end) = rest.find('m').filter(|end| *end <= 16) else {
            break;
        };
        text = &rest[end + 1..];
    }
    loop {
        let Some(start) = text.rfind("\x1b[") else {
            return text;
        };
        let code = &text[start + 2..];
        let sgr = code
            .strip_suffix('m')
            .is_some_and(|c| c.bytes().all(|b| b.is_ascii_digit() || b == b';'));
        if !sgr {
            return text;
        }
        text = text[..start].trim_end_matches('\r');
    }
}

fn is_divider(text: &str) -> bool {
    text.starts_with("--------- beginning of") || text.starts_with("--------- switch to")
}

/// Removes prefixes that tools add to the lines: `[+123 ms] ` of `flutter run -v`, and the commas
/// of some test servers.
fn without_tool(text: &str) -> &str {
    let text = text.trim_start_matches(',');
    let Some(rest) = text.strip_prefix('[') else {
        return text;
    };
    let Some((inside, rest)) = rest.split_once("] ") else {
        return text;
    };
    let took = inside.trim().trim_start_matches('+').strip_suffix(" ms");
    match took.is_some_and(|number| plain(&number.replace(',', "")).is_some()) {
        true => rest,
        false => text,
    }
}

/// Parses lines that begin with a time.
fn timed(text: &str) -> Option<LogLine<'_>> {
    let (mut time, mut rest) = Stamp::parse(text)?;
    loop {
        // Eclipse prints a colon after the time.
        let after = rest.strip_prefix(':').unwrap_or(rest);
        if !after.starts_with([' ', '\t']) {
            return None;
        }
        rest = after.trim_start();
        // The device's own time is the last one.
        match Stamp::parse(rest) {
            Some(inner) => (time, rest) = inner,
            None => break,
        }
    }
    leveled(rest, Some(time))
        .or_else(|| threadtime(rest, time))
        .or_else(|| studio(rest, time))
}

fn level(text: &str) -> Option<char> {
    text.chars().next().filter(|c| "VDIWEFSA".contains(*c))
}

fn pid(text: &str) -> Option<u32> {
    text.trim().parse().ok()
}

/// Parses a process ID, if the ID of a thread follows.
fn process(id: &str, thread: &str) -> Option<u32> {
    pid(thread).and_then(|_| pid(id))
}

/// Parses `[UID] PID TID L tag: message`.
fn threadtime(text: &str, time: Stamp) -> Option<LogLine<'_>> {
    let mut rest = text;
    let mut word = || -> Option<&str> {
        let (word, after) = rest.split_once([' ', '\t'])?;
        rest = after.trim_start();
        Some(word)
    };
    let (first, second, third) = (word()?, word()?, word()?);
    let is_level = |word: &str| word.len() == 1 && level(word).is_some();
    let (ids, letter) = if is_level(third) {
        ((first, second), third)
    } else {
        ((second, third), word()?)
    };
    if !is_level(letter) {
        return None;
    }
    let (tag, message) = tagged(rest)?;
    Some(LogLine {
        time: Some(time),
        pid: Some(process(ids.0, ids.1)?),
        level: level(letter),
        tag: Some(tag),
        message,
        ..LogLine::empty(Format::Threadtime)
    })
}

/// Parses `tag    : message`; an empty tag is nothing before the colon.
fn tagged(text: &str) -> Option<(&str, &str)> {
    let (tag, message) = match text.split_once(": ") {
        Some(parts) => parts,
        // An empty message.
        None => (text.strip_suffix(':')?, ""),
    };
    Some((tag.trim(), message))
}

/// Parses `I/tag( 123): message`, `I/tag: message`, `I( 123) message  (tag)`, `I( 123: 456)
/// message`.
fn leveled(text: &str, time: Option<Stamp>) -> Option<LogLine<'_>> {
    let letter = level(text)?;
    let rest = &text[1..];
    if let Some(rest) = rest.strip_prefix('/') {
        return slashed(rest, letter, time);
    }
    if time.is_some() {
        return None;
    }
    let (inside, message) = rest.strip_prefix('(')?.split_once(')')?;
    let message = message.strip_prefix(' ').unwrap_or(message);
    // With `-v uid`, the parentheses of `process` look like those of `thread`, but `process` has
    // the tag at the end.
    let named = message
        .strip_suffix(')')
        .and_then(|m| m.rsplit_once("  ("))
        .zip(owner(inside));
    Some(match (named, owner(inside)) {
        (Some(((message, tag), (_, pid))), _) => LogLine {
            pid: Some(pid),
            level: Some(letter),
            tag: Some(tag.trim()),
            message,
            ..LogLine::empty(Format::Process)
        },
        (None, Some((None, pid))) => LogLine {
            pid: Some(pid),
            level: Some(letter),
            message,
            ..LogLine::empty(Format::Process)
        },
        _ => LogLine {
            pid: Some(process_of(inside)?),
            level: Some(letter),
            message,
            ..LogLine::empty(Format::Thread)
        },
    })
}

/// Parses the text after `I/`.
fn slashed(rest: &str, letter: char, time: Option<Stamp>) -> Option<LogLine<'_>> {
    // The tag can contain parentheses. Use the first pair that contains a number and precedes a
    // colon.
    let mut from = 0;
    while let Some(open) = rest[from..].find('(').map(|at| at + from) {
        // A tag is short and does not contain `: `, so the rest is a message.
        if open > 128 || rest[..open].contains(": ") {
            break;
        }
        let Some(close) = rest[open..].find(')').map(|at| at + open) else {
            break;
        };
        let behind = &rest[close + 1..];
        if let (Some((_, pid)), Some(message)) =
            (owner(&rest[open + 1..close]), behind.strip_prefix(':'))
        {
            return Some(LogLine {
                time,
                pid: Some(pid),
                level: Some(letter),
                tag: Some(rest[..open].trim()),
                message: message.strip_prefix(' ').unwrap_or(message),
                ..LogLine::empty(match time {
                    Some(_) => Format::Time,
                    None => Format::Brief,
                })
            });
        }
        from = open + 1;
    }
    let (tag, message) = tagged(rest)?;
    Some(LogLine {
        time,
        level: Some(letter),
        tag: Some(tag),
        message,
        ..LogLine::empty(match time {
            Some(_) => Format::Time,
            None => Format::Tag,
        })
    })
}

/// Splits up to three parts at colons.
fn colons(inside: &str) -> Option<[Option<&str>; 3]> {
    let mut parts = inside.split(':').map(str::trim);
    let three = [parts.next(), parts.next(), parts.next()];
    parts.next().is_none().then_some(three)
}

/// Parses `[UID:]PID`.
fn owner(inside: &str) -> Option<(Option<&str>, u32)> {
    match colons(inside)? {
        [Some(id), None, None] => Some((None, pid(id)?)),
        [Some(uid), Some(id), None] if is_user(uid) => Some((Some(uid), pid(id)?)),
        _ => None,
    }
}

/// Returns whether this is a user: a number, or a short name as printed by logcat.
fn is_user(uid: &str) -> bool {
    !uid.is_empty() && uid.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Parses the process ID of `[UID:]PID:TID`.
fn process_of(inside: &str) -> Option<u32> {
    match colons(inside)? {
        [Some(id), Some(tid), None] => process(id, tid),
        [Some(uid), Some(id), Some(tid)] if is_user(uid) => process(id, tid),
        _ => None,
    }
}

/// Parses `[ TIME [UID:]PID:TID L/tag ]`.
fn long_head(text: &str) -> Option<LogLine<'_>> {
    // Heads are stored, so limit their size; tags are short.
    let text = (text.len() <= 1024).then_some(text)?;
    let inside = text.strip_prefix("[ ")?.strip_suffix(" ]")?;
    let (time, rest) = Stamp::parse(inside)?;
    let slash = rest.find('/')?;
    let letter = level(rest.get(slash.checked_sub(1)?..)?)?;
    let id = process_of(&rest[..slash - 1])?;
    Some(LogLine {
        time: Some(time),
        pid: Some(id),
        level: Some(letter),
        tag: Some(rest[slash + 1..].trim()),
        ..LogLine::empty(Format::Long)
    })
}

/// Parses `PID-TID tag package I message`, and the older `PID-TID/package I/tag: message`.
fn studio(text: &str, time: Stamp) -> Option<LogLine<'_>> {
    let end = text.find([' ', '\t', '/'])?;
    let (id, thread) = text[..end].split_once('-')?;
    let line = LogLine {
        time: Some(time),
        pid: Some(process(id, thread)?),
        ..LogLine::empty(Format::Studio)
    };
    if let Some(rest) = text[end..].strip_prefix('/') {
        let (package, rest) = rest.split_once(' ')?;
        let inner = slashed(rest.trim_start().get(2..)?, level(rest.trim_start())?, None)?;
        return Some(LogLine {
            level: inner.level,
            tag: inner.tag,
            package: (package != "?").then_some(package),
            message: inner.message,
            ..line
        });
    }
    // Columns are padded to configurable widths, and each one except the level can be hidden. The
    // level is the first single letter.
    let rest = &text[end..];
    let mut columns: [Option<&str>; 2] = [None, None];
    let mut seen = 0;
    let mut at = 0;
    loop {
        let start = at + rest[at..].find(|c: char| !c.is_whitespace())?;
        let stop = rest[start..]
            .find(char::is_whitespace)
            .map_or(rest.len(), |length| start + length);
        let word = &rest[start..stop];
        if word.len() == 1 && level(word).is_some() {
            let message = rest[stop..].trim_start();
            return Some(LogLine {
                level: level(word),
                tag: columns[0],
                package: columns[1],
                message,
                ..line
            });
        }
        // A tag of several words shifts the package: the last word is the package.
        match seen {
            0 => columns[0] = Some(word),
            _ => columns[1] = Some(word),
        }
        seen += 1;
        if seen > 8 {
            return None;
        }
        at = stop;
    }
}

/// Omitted lines reported by the tag `chatty`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chatty {
    /// The previous line of the same process was repeated this many times.
    Identical(u64),
    /// This many lines of the process were discarded.
    Expired(u64),
}

/// Parses the message of a line with the tag `chatty`: `uid=10123(u0_a123) com.example identical 3
/// lines`.
pub fn chatty(line: &LogLine<'_>) -> Option<Chatty> {
    if line.tag != Some("chatty") {
        return None;
    }
    let mut words = line.message.split_whitespace().rev();
    let (unit, count, what) = (words.next()?, words.next()?, words.next()?);
    let count = plain(count)?;
    match (what, unit) {
        ("identical", "line" | "lines") => Some(Chatty::Identical(count)),
        ("expire", "line" | "lines") => Some(Chatty::Expired(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
