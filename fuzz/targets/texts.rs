//! Texts of a device.

use super::results::in_directory;
use android_memory::gc::{self, Axis, Row, Splitter};
use android_memory::graphics;
use android_memory::malloc_info as allocator;
use android_memory::meminfo::Meminfo;
use android_memory::smaps::{By, Reader, Smaps, Sums, changes, parse, stable};
use android_memory::status::{self as proc_status, Status};
use heaptap::commands::gc::run;
use heaptap::heaps::selector::ProcessFilter;
use heaptap_base::text::plain_str;
use heaptap_model::timeline::Source;
use std::collections::HashSet;

/// Bytes as what a phone answers while an app is provoked, and as an action.
pub fn provoke(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    heaptap_capture::provoke::read::every_reader(&text);
    if let Ok(action) = text.parse::<heaptap_capture::provoke::Action>() {
        let again = action.to_string().parse();
        assert_eq!(again, Ok(action), "what is shown is read back");
    }
}

/// Bytes as a log of the phone: each line in any format, what it says of collections; and as a file
/// that `gc` reads, also packed or as a bug report.
pub fn gc_log(bytes: &[u8]) {
    let mut splitter = Splitter::default();
    let mut axis = Axis::default();
    for bytes in bytes.split(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(bytes);
        if let Row::Line(line) = splitter.line(&text) {
            gc::parse_event(&line);
            gc::chatty(&line);
            line.time.map(|time| axis.ns(time));
        }
    }
    in_directory(|directory| {
        let path = directory.join("log.txt");
        std::fs::write(&path, bytes).expect("a writable directory");
        if let Ok(mut report) = run::read(&[run::Input::Path(path)]) {
            report.choose(&ProcessFilter::default());
            serde_json::to_string(&report).expect("plain data");
        }
    });
}

/// Bytes as the kernel's and the services' texts that are read all along: whatever is read of
/// them is what the same text says with other line ends.
pub fn status(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let crlf = text.replace("\r\n", "\n").replace('\n', "\r\n");
    let unix = crlf.replace("\r\n", "\n");
    let (one, other) = (Status::parse(&unix), Status::parse(&crlf));
    assert_eq!(one, other);
    if let Some(status) = one {
        assert_eq!(status.resident(None).map(|of| of.rss), status.rss);
    }
    assert_eq!(
        graphics::gfxinfo_bytes(&unix),
        graphics::gfxinfo_bytes(&crlf)
    );
    assert_eq!(graphics::dmabuf_bytes(&unix), graphics::dmabuf_bytes(&crlf));
    for line in unix.lines() {
        let _ = (
            proc_status::uptime_ns(line),
            proc_status::seconds_ns(line),
            proc_status::kilobytes(line),
        );
    }
}

/// Bytes as mappings, in one piece and in several: sums by kind are the sum of all, and nothing
/// differs from itself.
pub fn smaps(bytes: &[u8]) {
    let Ok(whole) = parse(bytes) else {
        return;
    };
    all_of_smaps(&whole);
    let mut reader = Reader::default();
    for piece in bytes.chunks(37) {
        if reader.feed(piece).is_err() {
            return;
        }
    }
    let mut again = Reader::default();
    let fed = again.feed(bytes);
    if let (Ok(()), Ok(pieces)) = (fed, reader.finish()) {
        assert!(again.finish() == Ok(pieces));
    }
}

pub fn all_of_smaps(smaps: &Smaps) {
    smaps.parts();
    let kinds = smaps.groups(By::Kind);
    if !smaps.is_rollup() {
        let mut sum = Sums::default();
        for row in kinds.rows.iter().filter(|row| row.group.sub.is_none()) {
            sum += &row.sums;
        }
        assert!(sum == kinds.total);
    }
    for by in [By::Kind, By::Library, By::Mapping] {
        assert!(changes(smaps, smaps, by).rows.is_empty());
    }
    for mapping in &smaps.mappings {
        let once = stable(&mapping.name);
        assert!(stable(&once).len() <= once.len());
    }
}

/// Bytes as what an allocator says of itself.
pub fn malloc_info(bytes: &[u8]) {
    if let Ok(info) = allocator::parse(bytes) {
        assert!(info.large <= info.live);
    }
}

/// Bytes as what `dumpsys meminfo` printed: read and looked through; what is unknown is a line of it.
pub fn meminfo(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let meminfo = Meminfo::parse(&text);
    let plain = plain_str(&text);
    let lines: HashSet<&str> = plain.split('\n').collect();
    let of_processes = meminfo.processes().flat_map(|process| process.texts());
    for line in meminfo.unknown().chain(of_processes.map(|(_, line)| line)) {
        assert!(lines.contains(line), "a line of the text");
    }
    for process in meminfo.processes() {
        process.parts(Source::Meminfo);
        process.table().map(|table| table.sums());
    }
    for list in meminfo.lists() {
        list.sum();
        for item in list.items.values() {
            item.name();
            item.pid();
            item.swap();
        }
    }
    for fact in meminfo.facts() {
        fact.amounts().for_each(drop);
    }
    meminfo.trouble();
}
