//! Logs as they were saved: plain or in gzip, in UTF-8, in UTF-16 as PowerShell writes it, or
//! with bytes of neither; from stdin, too. And recordings.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::bugreport::{self, Bugreport};
use super::{GcError, GcReport, GcSource, OfPhone, Stretch};
use crate::error::ErrorClass;
use crate::import::{self, Kind, detect};
use crate::memory::gc::GcLog;
use crate::results::findings::Finding;
use crate::results::manifest::Manifest;
use crate::results::timeline::{add, add_traces, collections_of};
use crate::results::{recorded, timeline};
use crate::units::ByteSize;

/// What stands behind that in a line is dropped: the log's own limit is some 4000.
const LONGEST_LINE: usize = 64 << 10;
/// So much of a file tells what it is.
const HEAD: usize = 64 << 10;
/// More is not unpacked: a log has some MiB, what was made to unpack without end has no end.
const LARGEST: u64 = 4 << 30;

/// What to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Standard input: a log or a trace.
    Stdin,
    /// A log, a recording's folder or a trace; a pipe, which gives a log or a trace.
    Path(PathBuf),
    /// A recording, between two of its labels.
    Stretch(PathBuf, Stretch),
}

/// Reads logs, one after another, as one; or one recording. Blocks.
///
/// # Errors
/// Where one can't be read, or is something else.
pub fn read(inputs: &[Input]) -> Result<GcReport, GcError> {
    let mut log = Log::default();
    let is_alone = inputs.len() == 1;
    for input in inputs {
        let recorded = match input {
            Input::Stdin => of_stream(&mut log, io::stdin().lock(), "standard input", is_alone)?,
            Input::Path(path) => of_path(&mut log, path, is_alone)?,
            Input::Stretch(path, stretch) => {
                alone(&path.display().to_string(), is_alone)?;
                Some(of_known(known_of(path, Some(stretch))?))
            }
        };
        if let Some(report) = recorded {
            return Ok(report);
        }
    }
    let mut report = GcReport::of_log(GcSource::Log, &log.log, &log.phone);
    report.findings = log.findings;
    Ok(report)
}

/// Reads a file into `log`; of a recording, which is to be alone, what it holds.
fn of_path(log: &mut Log, path: &Path, is_alone: bool) -> Result<Option<GcReport>, GcError> {
    let name = path.display().to_string();
    let unreadable = |source| GcError::Unreadable {
        name: name.clone(),
        source,
    };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        return alone(&name, is_alone).and_then(|()| recording(path).map(Some));
    }
    let mut file = File::open(path).map_err(unreadable)?;
    // A pipe gives its bytes once: `heaptap gc <(adb logcat -d)`.
    if !metadata.is_file() {
        return of_stream(log, file, &name, is_alone);
    }
    let head = fill(&mut file).map_err(unreadable)?;
    file.rewind().map_err(unreadable)?;
    if timeline::are_lines(&head) {
        alone(&name, is_alone)?;
        let known = timeline::of_lines(file, &name).map_err(unreadable)?;
        let mut report = of_known(known);
        name_processes(&mut report, path);
        return Ok(Some(report));
    }
    match detect_within(&head) {
        Kind::Trace => return alone(&name, is_alone).and_then(|()| recording(path).map(Some)),
        Kind::Zip => bugreport::in_zip(file, &name, |text| unpacked(log, text, &name, LARGEST))?,
        _ => read_log(log, file, &name)?,
    }
    Ok(None)
}

/// Reads what comes once into `log`; of a trace, which is to be alone, what it holds.
fn of_stream(
    log: &mut Log,
    mut stream: impl Read,
    name: &str,
    is_alone: bool,
) -> Result<Option<GcReport>, GcError> {
    let head = fill(&mut stream).map_err(|source| GcError::Unreadable {
        name: name.to_owned(),
        source,
    })?;
    let kind = detect_within(&head);
    let are_lines = timeline::are_lines(&head);
    let whole = io::Cursor::new(head).chain(stream);
    if are_lines {
        alone(name, is_alone)?;
        let known = timeline::of_lines(whole, name).map_err(|source| GcError::Unreadable {
            name: name.to_owned(),
            source,
        })?;
        return Ok(Some(of_known(known)));
    }
    if kind == Kind::Trace {
        alone(name, is_alone)?;
        let mut known = timeline::LoadedTimeline::default();
        add(
            &mut known,
            import::open_stream(whole, name)?,
            &collections_of(None),
        )?;
        return Ok(Some(of_known(known)));
    }
    read_log(log, whole, name)?;
    Ok(None)
}

fn alone(name: &str, is_alone: bool) -> Result<(), GcError> {
    match is_alone {
        true => Ok(()),
        false => Err(GcError::NotAlone {
            name: name.to_owned(),
        }),
    }
}

/// What was read so far.
#[derive(Default)]
struct Log {
    log: GcLog,
    /// What bugreports tell beside it.
    phone: OfPhone,
    findings: Vec<Finding>,
}

/// What a recording holds: the lines beside it, and what its trace has of the kind.
fn recording(path: &Path) -> Result<GcReport, GcError> {
    let mut report = of_known(known_of(path, None)?);
    report.findings.extend(unasked(path, &report));
    Ok(report)
}

/// That nobody asked for collections, where a recording's folder has none.
fn unasked(path: &Path, report: &GcReport) -> Option<Finding> {
    let manifest = Manifest::read(path).ok()?;
    let asked = manifest.beside.is_some_and(|beside| {
        let mut with = beside.with.iter();
        with.any(|what| what == "gc")
    });
    (report.processes.is_empty() && !asked).then(|| Finding {
        kind: "gc-not-recorded",
        class: None,
        message: format!("{} was recorded without collections", path.display()),
        help: Some("`heaptap record --with gc` has each of them".to_owned()),
        pid: None,
    })
}

/// Gives processes the names that the manifest beside the lines of a recording has for them:
/// lines of collections have numbers alone.
fn name_processes(report: &mut GcReport, path: &Path) {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Ok(manifest) = Manifest::read(folder) else {
        return;
    };
    let of_it = manifest.beside.as_ref().is_some_and(|beside| {
        let timeline = beside.timeline.as_ref().map(|timeline| &timeline.file);
        let named = timeline.into_iter().chain(&beside.collections);
        let mut named = named.map(|file| Some(OsStr::new(file)));
        named.any(|file| file == path.file_name())
    });
    if !of_it {
        return;
    }
    let names = recorded::process_names(&manifest);
    for process in &mut report.processes {
        if let (None, Some(pid)) = (&process.name, process.pid) {
            process.name = names.get(&u64::from(pid)).cloned();
        }
    }
}

fn known_of(path: &Path, stretch: Option<&Stretch>) -> Result<timeline::LoadedTimeline, GcError> {
    let mut known = timeline::beside(path);
    add_traces(&mut known, path)?;
    if let Some(stretch) = stretch {
        let findings = stretch.cut(path, &mut known.timeline)?;
        known.findings.extend(findings);
    }
    Ok(known)
}

fn of_known(known: timeline::LoadedTimeline) -> GcReport {
    let mut report = GcReport::of_recording(known.timeline);
    report.findings = known.findings;
    report
}

/// What a file is that begins so; of gzip, what is inside.
fn detect_within(head: &[u8]) -> Kind {
    let kind = detect(head);
    if kind != Kind::Gzip {
        return kind;
    }
    let mut inner = Vec::new();
    // A torn end is no matter here.
    let _ = MultiGzDecoder::new(head)
        .take(HEAD as u64)
        .read_to_end(&mut inner);
    match detect(&inner) {
        Kind::Trace => Kind::Trace,
        _ => kind,
    }
}

fn read_log(log: &mut Log, input: impl Read, name: &str) -> Result<(), GcError> {
    let unreadable = |source| GcError::Unreadable {
        name: name.to_owned(),
        source,
    };
    let mut input = BufReader::with_capacity(HEAD, input);
    let head = fill(&mut input).map_err(unreadable)?;
    if detect(&head) == Kind::Gzip {
        let packed = io::Cursor::new(head).chain(input);
        return unpacked(log, MultiGzDecoder::new(packed), name, LARGEST);
    }
    plain(log, &head, input, name)
}

/// Reads a log as it comes out of its packing, `most` of it.
fn unpacked(log: &mut Log, input: impl Read, name: &str, most: u64) -> Result<(), GcError> {
    let unreadable = |source| GcError::Unreadable {
        name: name.to_owned(),
        source,
    };
    let mut input = input.take(most);
    let mut bounded = BufReader::with_capacity(HEAD, &mut input);
    let head = fill(&mut bounded).map_err(unreadable)?;
    plain(log, &head, bounded, name)?;
    let is_cut = input.limit() == 0 && input.get_mut().read(&mut [0]).map_err(unreadable)? > 0;
    if is_cut {
        log.findings.push(Finding {
            kind: "log-cut",
            class: Some(ErrorClass::Incomplete),
            message: format!(
                "{name} unpacks to more than {}: what comes behind was not read",
                ByteSize(most)
            ),
            help: Some("unpack it, and give the part that matters".to_owned()),
            pid: None,
        });
    }
    Ok(())
}

/// The first bytes, as far as they come.
fn fill(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    input.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

fn plain(log: &mut Log, head: &[u8], rest: impl Read, name: &str) -> Result<(), GcError> {
    let wide = match head {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes as fn([u8; 2]) -> u16),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes as fn([u8; 2]) -> u16),
        _ => None,
    };
    let kind = detect(head);
    let is_text = wide.is_some()
        || matches!(
            kind,
            Kind::Text | Kind::Json | Kind::Html | Kind::Empty | Kind::Unknown
        );
    if !is_text {
        return Err(GcError::NotALog {
            name: name.to_owned(),
            kind,
        });
    }
    let rest = io::Cursor::new(head).chain(rest);
    let mut report = Bugreport::begins(head);
    let (lines_before, formed_before) = (log.log.lines, log.log.formed);
    if let Some(year) = report.as_ref().and_then(Bugreport::year)
        && log.log.lines == 0
    {
        log.log = GcLog::of_year(year);
    }
    let each = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        if report.as_mut().is_none_or(|report| report.is_log(&line)) {
            log.log.push(&line);
        }
    };
    let read = match wide {
        None => lines(rest, each),
        Some(unit) => lines(Narrow::new(rest, unit), each),
    };
    let is_report = report.is_some();
    if let Some(report) = report {
        log.findings.extend(report.finding(name));
        report.tell(&mut log.phone);
    }
    read.map_err(|source| GcError::Unreadable {
        name: name.to_owned(),
        source,
    })?;
    let lines = log.log.lines.saturating_sub(lines_before);
    // Of `-v raw` the lines have no form: what they tell of collections shows whose they are.
    let is_log = log.log.formed > formed_before || !log.log.formats.is_empty();
    match lines > 0 && !is_log && !is_report {
        true => Err(GcError::NoLines {
            name: name.to_owned(),
            lines,
        }),
        false => Ok(()),
    }
}

/// Gives each line to `each`, none of them longer than what is kept.
fn lines(input: impl Read, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut input = BufReader::with_capacity(HEAD, input);
    let mut line = Vec::new();
    loop {
        let piece = match input.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if piece.is_empty() {
            if !line.is_empty() {
                each(&line);
            }
            return Ok(());
        }
        let end = memchr::memchr(b'\n', piece);
        let text = &piece[..end.unwrap_or(piece.len())];
        line.extend_from_slice(&text[..text.len().min(LONGEST_LINE - line.len())]);
        let taken = text.len() + usize::from(end.is_some());
        if end.is_some() {
            each(&line);
            line.clear();
        }
        input.consume(taken);
    }
}

/// UTF-16 as UTF-8.
struct Narrow<R> {
    inner: R,
    unit: fn([u8; 2]) -> u16,
    /// The first half of a character of two units.
    half: Option<u16>,
    ready: Vec<u8>,
    at: usize,
}

impl<R: Read> Narrow<R> {
    fn new(inner: R, unit: fn([u8; 2]) -> u16) -> Self {
        Narrow {
            inner,
            unit,
            half: None,
            ready: Vec::new(),
            at: 0,
        }
    }
}

impl<R: Read> Read for Narrow<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.ready.len() {
            let mut bytes = Vec::with_capacity(8192);
            (&mut self.inner).take(8192).read_to_end(&mut bytes)?;
            self.ready.clear();
            self.at = 0;
            if bytes.is_empty() {
                return Ok(0);
            }
            let units = bytes
                .chunks_exact(2)
                .map(|pair| (self.unit)([pair[0], pair[1]]));
            let mut text = String::with_capacity(bytes.len());
            let mut units: Vec<u16> = self.half.take().into_iter().chain(units).collect();
            if units
                .last()
                .is_some_and(|unit| (0xd800..0xdc00).contains(unit))
            {
                self.half = units.pop();
            }
            for c in char::decode_utf16(units) {
                match c {
                    Ok('\u{feff}') => {}
                    Ok(c) => text.push(c),
                    Err(_) => text.push(char::REPLACEMENT_CHARACTER),
                }
            }
            self.ready = text.into_bytes();
        }
        let some = &self.ready[self.at..];
        let count = some.len().min(out.len());
        out[..count].copy_from_slice(&some[..count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Classified as _;
    use std::io::Write as _;

    const LINE: &str = "I/art     ( 2345): Explicit concurrent mark sweep GC freed 104710(7MB) \
        AllocSpace objects, 21(416KB) LOS objects, 33% free, 25MB/38MB, paused 1.230ms total \
        67.216ms";

    fn collections(bytes: &[u8]) -> u64 {
        let mut log = Log::default();
        read_log(&mut log, bytes, "a test").unwrap();
        let report = GcReport::of_log(GcSource::Log, &log.log, &log.phone);
        report.processes.iter().map(|p| p.collections).sum()
    }

    #[test]
    fn logs_come_in_any_encoding() {
        let text = format!("--------- beginning of main\r\n{LINE}\r\nI/x( 1): \u{1f600}\r\n{LINE}");
        assert_eq!(collections(text.as_bytes()), 2);
        for (mark, to) in [
            ([0xff, 0xfe], u16::to_le_bytes as fn(u16) -> [u8; 2]),
            ([0xfe, 0xff], u16::to_be_bytes as fn(u16) -> [u8; 2]),
        ] {
            // Long enough that characters fall on the seams of what is read at once.
            let text = format!("{text}\n{}", "\u{1f600}x".repeat(9000));
            let wide: Vec<u8> = mark
                .into_iter()
                .chain(text.encode_utf16().flat_map(to))
                .collect();
            assert_eq!(collections(&wide), 2);
        }
        let mut dirty = b"\xff\xc3\x28 I/x( 1): \xf0\x28\n".to_vec();
        dirty.extend_from_slice(text.as_bytes());
        assert_eq!(collections(&dirty), 2);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        assert_eq!(collections(&gzip.finish().unwrap()), 2);
    }

    #[test]
    fn what_unpacks_without_end_is_cut_and_that_is_told() {
        let text = format!("{LINE}\n").repeat(100);
        let read = |most: u64| {
            let mut log = Log::default();
            unpacked(&mut log, text.as_bytes(), "a.gz", most).unwrap();
            (log.log.lines, log.findings)
        };
        assert_eq!(read(text.len() as u64), (100, Vec::new()));
        let (lines, findings) = read(text.len() as u64 / 2);
        assert_eq!(lines, 50);
        assert_eq!(findings[0].class, Some(ErrorClass::Incomplete));
        assert!(
            findings[0].message.starts_with("a.gz unpacks to more than"),
            "{findings:?}"
        );
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let mut longest = 0;
        let mut count = 0;
        let endless = io::repeat(b'x').take(3 << 20).chain(&b"\nshort\n"[..]);
        lines(endless, |line| {
            longest = longest.max(line.len());
            count += 1;
        })
        .unwrap();
        assert_eq!((longest, count), (LONGEST_LINE, 2));
    }

    #[test]
    fn a_text_without_a_line_of_a_log_is_refused() {
        let read = |text: &str| {
            let mut log = Log::default();
            read_log(&mut log, text.as_bytes(), "a.txt")
        };
        for text in [
            "Applications Memory Usage (in Kilobytes):\nUptime: 1 Realtime: 1\n",
            "com.example.app 4242: 7 collections\n  count  freed\n",
            "{\"some\": \"json\"}\n",
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.kind(), "not-a-log");
            assert!(
                error.to_string().starts_with("a.txt is no log: "),
                "{error}"
            );
        }
        // Logs without a collection, whatever their form; and one without any form.
        for text in [
            "",
            "--------- beginning of main\n",
            "what is cut\nI/x( 1): nothing\n",
            "[ 01-02 03:04:05.678  1:  2 I/x ]\nnothing\n",
            &LINE[LINE.find("Explicit").unwrap()..],
        ] {
            assert!(read(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_no_log_is_refused() {
        let mut log = Log::default();
        let error = read_log(
            &mut log,
            &b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..],
            "lib.so",
        )
        .unwrap_err();
        assert!(
            matches!(
                error,
                GcError::NotALog {
                    kind: Kind::Elf,
                    ..
                }
            ),
            "{error}"
        );
    }
}
