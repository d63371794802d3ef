//! Saved logs from files and stdin, packed or not, also with bytes that are not text; and
//! recordings.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::bugreport::Bugreport;
use super::error::{not_a_log, of_text as text_failure, of_traces, unreadable};
use super::report::{GcReport, GcSource, OfPhone};
use super::stretch::Stretch;
use crate::heaps::trace_findings;
use android_memory::gc::{self, GcLog};
use heaptap_base::directory;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::units::{ByteSize, thousands};
use heaptap_input::{Kind, Text, TextInput};
use heaptap_results::findings::Finding;
use heaptap_results::manifest::Manifest;
use heaptap_results::timeline::{TraceState, add, add_traces, collections_of};
use heaptap_results::{recorded, timeline};

/// Maximum length of a line in bytes; the rest is dropped. The limit of the log itself is about
/// 4000.
const MAX_LINE_LENGTH: usize = 64 << 10;
/// Bytes to read at once.
const PIECE: usize = 64 << 10;
/// Maximum unpacked size in bytes. Logs have a few MiB, but a file made for it can unpack without
/// end.
const MAX_SIZE: u64 = 4 << 30;

/// Input of `gc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Standard input: a log or a trace.
    Stdin,
    /// A log, a recording directory, a trace, or a pipe with a log or a trace.
    Path(PathBuf),
    /// A recording between two of its labels.
    Stretch(PathBuf, Stretch),
}

/// Reads logs, concatenated into one, or one recording. Blocks.
///
/// # Errors
/// Returns an error if an input cannot be read or has another kind.
pub fn read(inputs: &[Input]) -> Result<GcReport, Failure> {
    let mut log = Log::default();
    let is_alone = inputs.len() == 1;
    for input in inputs {
        let recorded = match input {
            Input::Stdin => {
                let input = TextInput::stdin().map_err(text_failure)?;
                of_text(&mut log, input, None, is_alone)?
            }
            Input::Path(path) => of_path(&mut log, path, is_alone)?,
            Input::Stretch(path, stretch) => {
                let name = path.display().to_string();
                alone(&name, is_alone)?;
                if is_log(path) {
                    let message = format!("{name} is a log, and only recordings have labels");
                    let failure = Failure::new(ErrorClass::Usage, "no-such-capture", message);
                    return Err(failure.with_help(
                        "leave out the labels to read the whole log, or pass the recording \
                         directory",
                    ));
                }
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

/// Reads a file into `log`. For a recording, which must be the only input, returns its report.
fn of_path(log: &mut Log, path: &Path, is_alone: bool) -> Result<Option<GcReport>, Failure> {
    let name = path.display().to_string();
    if path.is_dir() {
        return alone(&name, is_alone).and_then(|()| recording(path).map(Some));
    }
    let input = TextInput::open(path).map_err(text_failure)?;
    // A pipe gives its bytes once: `heaptap gc <(adb logcat -d)`.
    let file = Some(path).filter(|_| input.is_regular());
    of_text(log, input, file, is_alone)
}

/// Reads an input into `log`. `file` is its path if it can be opened again. For a recording, which
/// must be the only input, returns its report.
fn of_text(
    log: &mut Log,
    mut input: TextInput<'_>,
    file: Option<&Path>,
    is_alone: bool,
) -> Result<Option<GcReport>, Failure> {
    let name = input.name().to_owned();
    let are_lines = timeline::are_lines(input.head());
    if input.kind() == Kind::Trace {
        alone(&name, is_alone)?;
        return Ok(Some(match file {
            Some(path) => recording(path)?,
            None => trace(input, &name)?,
        }));
    }
    let Some(mut text) = input.text(MAX_SIZE).map_err(text_failure)? else {
        let message = format!(
            "{name} is neither a log nor a recording: it is {}",
            Kind::Zip
        );
        return Err(not_a_log(message, Kind::Zip).with_help(
            "use a ZIP that contains a bug report (bugreport-….txt), or one log and no other text",
        ));
    };
    if !are_lines {
        return read_log(log, text, &name).map(|()| None);
    }
    alone(&name, is_alone)?;
    let known = timeline::of_lines(&mut text, &name).map_err(unreadable(&name))?;
    let mut report = of_known(known);
    report.findings.extend(flaws(&text, &name));
    if let Some(path) = file {
        name_processes(&mut report, path);
    }
    Ok(Some(report))
}

/// Returns the report of a trace that can be read only once.
fn trace(input: TextInput<'_>, name: &str) -> Result<GcReport, Failure> {
    let mut known = timeline::LoadedTimeline::default();
    let traces = heaptap_input::open_stream(input.into_stream(), name)?;
    let read = add(&mut known, traces, &collections_of(None)).map_err(of_traces)?;
    known.findings.extend(missing_parts(&read));
    Ok(of_known(known))
}

/// Returns findings about parts of traces that could not be read.
fn missing_parts(read: &[TraceState]) -> Vec<Finding> {
    let read = read.iter();
    read.flat_map(|trace| {
        let damage = trace.damage.as_deref();
        trace_findings::of_missing_parts(&trace.name, damage, &trace.health)
    })
    .collect()
}

/// Returns whether a file is a text other than the timeline of a recording.
fn is_log(path: &Path) -> bool {
    TextInput::of_regular(path)
        .is_some_and(|input| input.kind().may_be_text() && !timeline::are_lines(input.head()))
}

fn alone(name: &str, is_alone: bool) -> Result<(), Failure> {
    match is_alone {
        true => Ok(()),
        false => {
            let message = format!("cannot combine recording {name} with other inputs");
            Err(
                Failure::new(ErrorClass::Usage, "recording-not-alone", message)
                    .with_help("pass the recording alone; only logs can be combined"),
            )
        }
    }
}

/// Logs read so far.
#[derive(Default)]
struct Log {
    log: GcLog,
    /// Facts of bug reports from outside their logs.
    phone: OfPhone,
    findings: Vec<Finding>,
}

/// Returns the report of a recording: its timeline and the collections of its trace.
fn recording(path: &Path) -> Result<GcReport, Failure> {
    let mut report = of_known(known_of(path, None)?);
    report.findings.extend(unasked(path, &report));
    Ok(report)
}

/// Returns a finding if a recording directory was recorded without collections.
fn unasked(path: &Path, report: &GcReport) -> Option<Finding> {
    let manifest = Manifest::read(path).ok()?;
    let asked = manifest.companion.is_some_and(|beside| {
        let mut with = beside.with.iter();
        with.any(|what| what == "gc")
    });
    (report.processes.is_empty() && !asked).then(|| {
        let message = format!("{} was recorded without collections", path.display());
        Finding::new("gc-not-recorded", None, message)
            .with_help("record them with `heaptap record --with gc`")
    })
}

/// Sets process names from the manifest next to the timeline of a recording, because lines of
/// collections contain only PIDs.
fn name_processes(report: &mut GcReport, path: &Path) {
    let Ok(manifest) = Manifest::read(directory::of(path)) else {
        return;
    };
    let of_it = manifest.companion.as_ref().is_some_and(|beside| {
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

fn known_of(path: &Path, stretch: Option<&Stretch>) -> Result<timeline::LoadedTimeline, Failure> {
    let mut known = timeline::beside(path);
    let read = add_traces(&mut known, path).map_err(of_traces)?;
    known.findings.extend(missing_parts(&read));
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

fn read_log(log: &mut Log, mut text: Text<'_>, name: &str) -> Result<(), Failure> {
    let kind = text.kind();
    if !kind.may_be_text() {
        let message = format!("{name} is neither a log nor a recording: it is {kind}");
        return Err(not_a_log(message, kind));
    }
    let mut report = Bugreport::begins(text.head());
    let (lines_before, formed_before) = (log.log.lines, log.log.formed);
    if let Some(year) = report.as_ref().and_then(Bugreport::year)
        && log.log.lines == 0
    {
        log.log = GcLog::of_year(year);
    }
    let is_export = gc::is_export(text.head());
    let mut torn = None;
    let read = match is_export {
        // The lines before the damage count.
        true => match gc::push_export(&mut log.log, &mut text) {
            Ok(()) => Ok(()),
            Err(error) if log.log.lines > lines_before => {
                torn = Some(trace_findings::damaged(name, &error.to_string()));
                Ok(())
            }
            Err(error) => Err(error),
        },
        false => lines(&mut text, |line| {
            let line = String::from_utf8_lossy(line);
            if report.as_mut().is_none_or(|report| report.is_log(&line)) {
                log.log.push(&line);
            }
        }),
    };
    log.findings.extend(torn);
    let is_report = report.is_some();
    if let Some(report) = report {
        log.findings.extend(report.finding(name));
        report.tell(&mut log.phone);
    }
    read.map_err(unreadable(name))?;
    let lines = log.log.lines.saturating_sub(lines_before);
    // Lines of `-v raw` have no prefix, but collections in them show that they are a log.
    let is_log = log.log.formed > formed_before || !log.log.formats.is_empty();
    if lines > 0 && !is_log && !is_report {
        let why = match lines {
            _ if matches!(kind, Kind::Known(_)) => format!("it is {kind}"),
            1 => "its only line is not in a logcat format".to_owned(),
            more => format!(
                "none of its {} lines is in a logcat format",
                thousands(more)
            ),
        };
        return Err(not_a_log(format!("{name} is not a log: {why}"), kind));
    }
    log.findings.extend(flaws(&text, name));
    Ok(())
}

/// Returns findings about damage or truncation of a text that was read to its end.
fn flaws(text: &Text<'_>, name: &str) -> Vec<Finding> {
    let damage = text.damage();
    let torn = damage.map(|what| trace_findings::damaged(name, &what));
    let cut = text.is_cut().then(|| {
        let message = format!(
            "{name} unpacks to more than {}; the rest was not read",
            ByteSize(MAX_SIZE)
        );
        Finding::new("log-cut", ErrorClass::Incomplete, message)
            .with_help("unpack the file and pass only the relevant part")
    });
    torn.into_iter().chain(cut).collect()
}

/// Passes each line to `each`, truncated to `MAX_LINE_LENGTH`.
fn lines(input: impl Read, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut input = BufReader::with_capacity(PIECE, input);
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
        line.extend_from_slice(&text[..text.len().min(MAX_LINE_LENGTH - line.len())]);
        let taken = text.len() + usize::from(end.is_some());
        if end.is_some() {
            each(&line);
            line.clear();
        }
        input.consume(taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    const LINE: &str = "I/art     ( 2345): Explicit concurrent mark sweep GC freed 104710(7MB) \
        AllocSpace objects, 21(416KB) LOS objects, 33% free, 25MB/38MB, paused 1.230ms total \
        67.216ms";

    /// Reads a log called `name` and unpacks at most `most` bytes.
    fn read(bytes: &[u8], name: &str, most: u64) -> Result<Log, Failure> {
        let mut log = Log::default();
        let mut input = TextInput::of_stream(bytes, name).map_err(text_failure)?;
        let text = input.text(most).map_err(text_failure)?;
        read_log(&mut log, text.expect("no ZIP"), name).map(|()| log)
    }

    fn collections(bytes: &[u8]) -> u64 {
        let log = read(bytes, "a test", MAX_SIZE).unwrap();
        let report = GcReport::of_log(GcSource::Log, &log.log, &log.phone);
        report.processes.iter().map(|p| p.collections).sum()
    }

    #[test]
    fn the_time_between_labels_of_a_log_is_refused_with_its_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("app.log");
        std::fs::write(&path, LINE).unwrap();
        let stretch = Stretch::parse("before..after").unwrap();
        let error = super::read(&[Input::Stretch(path, stretch)]).unwrap_err();
        assert_eq!(error.kind, "no-such-capture", "{error}");
    }

    #[test]
    fn logs_come_in_any_encoding() {
        let text = format!("--------- beginning of main\r\n{LINE}\r\nI/x( 1): \u{1f600}\r\n{LINE}");
        assert_eq!(collections(text.as_bytes()), 2);
        for (mark, to) in [
            ([0xff, 0xfe], u16::to_le_bytes as fn(u16) -> [u8; 2]),
            ([0xfe, 0xff], u16::to_be_bytes as fn(u16) -> [u8; 2]),
        ] {
            // Long enough that characters cross the boundaries of the pieces that are read.
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
        assert_eq!(collections(&gzip(&text)), 2);
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn a_torn_packing_is_reported_after_the_lines_before_it() {
        // Lines that differ, so that some of them are before the cut.
        let text: String = (0..5000_u64)
            .map(|n| format!("I/x( 1): {}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect();
        let packed = gzip(&text);
        let log = read(&packed[..packed.len() / 2], "a.gz", MAX_SIZE).unwrap();
        assert!((1000..5000).contains(&log.log.lines), "{}", log.log.lines);
        let [found] = &log.findings[..] else {
            panic!("{:?}", log.findings)
        };
        assert_eq!(found.kind, "input-damaged");
        assert_eq!(found.class, Some(ErrorClass::BadInput));
        let what = "a.gz: its gzip stream breaks off after ";
        assert!(found.message.starts_with(what), "{}", found.message);
        // This one is cut so early that nothing can be read.
        let error = read(&packed[..10], "a.gz", MAX_SIZE).err().unwrap();
        assert_eq!(error.kind, "log-unreadable");
    }

    #[test]
    fn what_unpacks_without_end_is_cut_and_that_is_told() {
        let text = format!("{LINE}\n").repeat(100);
        let packed = gzip(&text);
        let read = |most: u64| {
            let log = read(&packed, "a.gz", most).unwrap();
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
        assert_eq!((longest, count), (MAX_LINE_LENGTH, 2));
    }

    #[test]
    fn a_text_without_a_line_of_a_log_is_refused() {
        let read = |text: &str| read(text.as_bytes(), "a.txt", MAX_SIZE);
        for text in [
            "Applications Memory Usage (in Kilobytes):\nUptime: 1 Realtime: 1\n",
            "com.example.app 4242: 7 collections\n  count  freed\n",
            "{\"some\": \"json\"}\n",
        ] {
            let error = read(text).err().unwrap();
            assert_eq!(error.kind, "not-a-log");
            assert!(
                error.to_string().starts_with("a.txt is not a log: "),
                "{error}"
            );
        }
        // Logs without a collection, in any format, and one without a format.
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
        let elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0";
        let error = read(elf, "lib.so", MAX_SIZE).err().unwrap();
        assert_eq!(error.kind, "not-a-log", "{error}");
    }
}
