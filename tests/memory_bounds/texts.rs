//! Texts of a device: meminfo, smaps, logs, malloc_info; and the data that heaptap stores about
//! them.

use super::archives::zip_of;
use super::wire::many;
use super::{MIB, Shapes};
use android_memory::gc::GcLog;
use android_memory::malloc_info;
use android_memory::meminfo::Meminfo;
use android_memory::smaps::{self, By};
use android_memory::status::Status;
use heaptap::commands::gc::run;
use heaptap_capture::jdwp::Allocations;
use heaptap_model::timeline::Timeline;

const SIZE: usize = 8 * MIB;

fn lines(each: impl Fn(u64) -> String) -> Vec<u8> {
    many(SIZE, |n| (each(n) + "\n").into_bytes())
}

#[test]
fn meminfo_of_any_shape() {
    let mut all = Shapes::of("a meminfo");
    let process = "** MEMINFO in pid 1 [a] **\n";
    let table = "           Pss  Private\n         Total    Dirty\n        ------   ------\n";
    let shapes = vec![
        ("empty lines", b"\n".repeat(SIZE)),
        ("short lines", lines(|_| "a".to_owned())),
        ("one long line", b"a".repeat(SIZE)),
        ("one long line of numbers", b"1 ".repeat(SIZE / 2)),
        (
            "processes",
            lines(|n| format!("** MEMINFO in pid {n} [a] **")),
        ),
        (
            "a table of many rows",
            [
                process.as_bytes(),
                table.as_bytes(),
                &lines(|_| "a 1 1".to_owned()),
            ]
            .concat(),
        ),
        (
            "rows of the phone",
            [
                &b"Total PSS by process:\n"[..],
                &lines(|n| format!(" 1K: a (pid {n})")),
            ]
            .concat(),
        ),
        ("facts", lines(|_| "a: 1K".to_owned())),
        (
            "pairs",
            [process.as_bytes(), &lines(|_| "A: 1 B: 2".to_owned())].concat(),
        ),
        (
            "databases",
            [
                process.as_bytes(),
                b" DATABASES\n",
                &lines(|_| " 4 1 1 a.db".to_owned()),
            ]
            .concat(),
        ),
        (
            "rows for programs",
            lines(|n| format!("proc,native,a,{n},1,e")),
        ),
        (
            "one long row for programs",
            [&b"4,"[..], &b"1,".repeat(SIZE / 2)].concat(),
        ),
    ];
    for (shape, file) in shapes {
        let text = String::from_utf8(file).expect("text");
        all.read(shape, text.len(), || {
            let read = Meminfo::parse(&text);
            let processes = read.processes().count();
            (read.lists().count(), processes, read)
        });
    }
    all.hold();
}

#[test]
fn smaps_of_any_shape() {
    let mut all = Shapes::of("smaps");
    let mapping = |n: u64| format!("{n:x}-{:x} r--p 00000000 00:00 0 ", n + 1);
    let shapes = vec![
        ("empty lines", b"\n".repeat(SIZE)),
        ("mappings", lines(mapping)),
        ("named mappings", lines(|n| format!("{}/{n}", mapping(n)))),
        ("short mappings", lines(|n| format!("{n:x}-{n:x} r 0 0 0"))),
        ("figures", lines(|_| "Rss: 1 kB".to_owned())),
        ("one long line", b"a".repeat(SIZE)),
        ("strange lines", lines(|_| "?".to_owned())),
        ("other figures", lines(|n| format!("A{n}: 1 kB"))),
        (
            "figures of one mapping",
            [mapping(1).as_bytes(), b"\n", &lines(|n| format!("A{n}: 1 kB"))].concat(),
        ),
        (
            "rows of showmap",
            [
                &b" virtual                     shared   shared  private  private\n    size      RSS      PSS    clean    dirty    clean    dirty object\n-------- -------- -------- -------- -------- -------- -------- ------\n"[..],
                &lines(|n| format!("1 1 1 1 1 1 1 {n}")),
            ]
            .concat(),
        ),
    ];
    for (shape, file) in shapes {
        all.read(shape, file.len(), || {
            let read = smaps::parse(&file);
            let groups = read.as_ref().ok().map(|read| read.groups(By::Mapping));
            (groups, read)
        });
    }
    all.hold();
}

#[test]
fn other_texts() {
    let told =
        "freed 1KB AllocSpace bytes, 0(0B) LOS objects, 50% free, 11MB/22MB, paused 1us total 2us";
    let log = |n: u64, pid: u64| {
        format!(
            "01-01 00:00:00.{:03} {pid} {pid} I a: Background concurrent copying GC {told}",
            n % 1000
        )
    };
    let mut all = Shapes::of("a log");
    let shapes = vec![
        ("empty lines", b"\n".repeat(SIZE)),
        ("collections", lines(|n| log(n, 1))),
        ("collections of many processes", lines(|n| log(n, n))),
        ("one long line", b"a".repeat(SIZE)),
        (
            "many pauses",
            lines(|n| format!("{} {}", log(n, 1), "1us ".repeat(1000))),
        ),
    ];
    for (shape, file) in shapes {
        let text = String::from_utf8(file).expect("text");
        all.read(shape, text.len(), || {
            let mut log = GcLog::of_year(2026);
            log.push_all(&text);
            log
        });
    }
    all.hold();

    let mut all = Shapes::of("a packed or exported log");
    let export = |messages: &[u8]| [&b"{\"logcatMessages\":["[..], messages].concat();
    let message = |n: u64| {
        format!(
            "{{\"header\":{{\"pid\":{n},\"tag\":\"art\",\"timestamp\":{{\"seconds\":{n}}}}},\
             \"message\":\"Background concurrent copying GC {told}\"}},"
        )
    };
    let report = |lines: &[u8]| {
        let head = "== dumpstate: 2026-01-01 00:00:00\n------ SYSTEM LOG (logcat) ------\n";
        zip_of(
            1,
            |_| "bugreport.txt".to_owned(),
            &[head.as_bytes(), lines].concat(),
        )
    };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("input");
    for (shape, file) in [
        ("messages of Studio", export(&lines(message))),
        (
            "one long message of Studio",
            export(&b"{\"message\":\"".repeat(SIZE / 12)),
        ),
        ("one deep message of Studio", export(&b"[".repeat(SIZE))),
        ("a report of many processes", report(&lines(|n| log(n, n)))),
        ("a report of one long line", report(&b"a".repeat(SIZE))),
    ] {
        std::fs::write(&path, &file).expect("a writable directory");
        all.read(shape, file.len(), || {
            run::read(&[run::Input::Path(path.clone())]).map(drop)
        });
    }
    all.hold();

    let mut all = Shapes::of("malloc_info");
    for (shape, file) in [
        (
            "heaps",
            [
                &b"<malloc version=\"a\">"[..],
                &b"<heap nr=\"1\"/>".repeat(SIZE / 14),
            ]
            .concat(),
        ),
        ("open elements", b"<a>".repeat(SIZE / 3)),
        ("one long name", [&b"<"[..], &b"a".repeat(SIZE)].concat()),
        (
            "attributes",
            [&b"<malloc "[..], &b"a=\"\" ".repeat(SIZE / 5)].concat(),
        ),
        (
            "bins",
            [
                &b"<malloc version=\"jemalloc-1\"><heap nr=\"0\">"[..],
                &b"<bin nr=\"1\"><allocated>1</allocated></bin>".repeat(SIZE / 43),
            ]
            .concat(),
        ),
    ] {
        all.read(shape, file.len(), || malloc_info::parse(&file));
    }
    all.hold();

    let mut all = Shapes::of("a timeline");
    for (shape, file) in [
        ("empty lines", b"\n".repeat(SIZE)),
        ("strange lines", b"{}\n".repeat(SIZE / 3)),
        (
            "ends",
            b"{\"boot_ns\":1,\"pid\":1,\"kind\":\"gone\"}\n".repeat(SIZE / 37),
        ),
        ("one deep line", b"[".repeat(SIZE)),
        (
            "one long list",
            [
                &b"{\"boot_ns\":1,\"pid\":1,\"kind\":\"collection\",\"pauses\":["[..],
                &b"1,".repeat(SIZE / 2),
                b"1]}\n",
            ]
            .concat(),
        ),
        (
            "one long list that is not wanted",
            [
                &b"{\"boot_ns\":1,\"a\":["[..],
                &b"0,".repeat(SIZE / 2),
                b"0],\"pid\":1,\"kind\":\"gone\"}\n",
            ]
            .concat(),
        ),
    ] {
        let text = String::from_utf8(file).expect("text");
        all.read(shape, text.len(), || Timeline::parse(&text));
    }
    all.hold();

    let mut all = Shapes::of("a status");
    let file = String::from_utf8(lines(|_| "VmRSS: 1 kB".to_owned())).expect("text");
    all.read("lines", file.len(), || Status::parse(&file));
    all.hold();
}

#[test]
fn tracked_allocations() {
    let mut all = Shapes::of("tracked allocations");
    /// That many entries, and empty strings of three kinds.
    fn list(entries: u16, strings: [u16; 3], entry: &[u8]) -> Vec<u8> {
        let mut out = vec![15, 9, 8];
        out.extend(entries.to_be_bytes());
        out.extend((15 + entry.len() as u32 * u32::from(entries)).to_be_bytes());
        strings.iter().for_each(|n| out.extend(n.to_be_bytes()));
        out.extend(entry.repeat(usize::from(entries)));
        strings
            .iter()
            .for_each(|&n| out.extend([0; 4].repeat(usize::from(n))));
        out
    }
    let entry = |frames: u8| {
        let mut entry = vec![0, 0, 0, 1, 0, 1, 0, 0, frames];
        entry.extend([0; 8].repeat(usize::from(frames)));
        entry
    };
    for (shape, file) in [
        ("entries", list(u16::MAX, [0; 3], &entry(0))),
        ("frames", list(u16::MAX, [1; 3], &entry(16))),
        ("strings", list(1, [u16::MAX; 3], &entry(0))),
    ] {
        all.read(shape, file.len(), || Allocations::read(&file));
    }
    all.hold();
}
