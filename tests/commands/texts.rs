//! Texts that commands read from files: every compression and encoding, and standard input, give
//! the same result.

use std::io::{Cursor, Write as _};

use serde_json::Value;

use crate::program::{Arguments, Ended, assert_contains, heaptap};

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(crate::program::fixture(name)).expect("the fixture is there")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).expect("memory");
    out.finish().expect("memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).expect("memory")
}

/// An xz of one block, stored uncompressed.
fn xz(bytes: &[u8]) -> Vec<u8> {
    let sum_of = |part: &[u8]| {
        let mut sum = flate2::Crc::new();
        sum.update(part);
        sum.sum().to_le_bytes()
    };
    let with_sum = |part: &[u8]| [part, &sum_of(part)].concat();
    let number = |mut n: usize| {
        let mut out = Vec::new();
        while n >= 0x80 {
            out.push(n as u8 | 0x80);
            n >>= 7;
        }
        out.push(n as u8);
        out
    };
    let filled = |mut part: Vec<u8>| {
        part.resize(part.len().next_multiple_of(4), 0);
        part
    };
    let flags = [0, 1];
    let mut block = with_sum(&[2, 0, 0x21, 1, 0x16, 0, 0, 0]);
    for (at, piece) in bytes.chunks(1 << 16).enumerate() {
        block.push(if at == 0 { 1 } else { 2 });
        block.extend(((piece.len() - 1) as u16).to_be_bytes());
        block.extend(piece);
    }
    block.push(0);
    let size = block.len() + 4;
    let block = [filled(block), sum_of(bytes).to_vec()].concat();
    let records = [vec![0, 1], number(size), number(bytes.len())].concat();
    let index = with_sum(&filled(records));
    let backward = (index.len() / 4 - 1) as u32;
    let footer = [&backward.to_le_bytes()[..], &flags].concat();
    [
        &b"\xfd7zXZ\0"[..],
        &with_sum(&flags),
        &block,
        &index,
        &sum_of(&footer),
        &footer,
        b"YZ",
    ]
    .concat()
}

/// Encoded as by PowerShell's `>`.
fn utf16(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let text = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A directory with one input.
struct Input {
    directory: tempfile::TempDir,
}

impl Input {
    fn new(bytes: &[u8]) -> Input {
        let directory = tempfile::tempdir().expect("a folder");
        std::fs::write(directory.path().join("input"), bytes).expect("a file");
        Input { directory }
    }

    /// Runs a command in the directory; `input` is also its standard input.
    fn run(&self, args: impl Arguments) -> Ended {
        let file = std::fs::File::open(self.directory.path().join("input")).expect("the file");
        let mut heaptap = heaptap();
        heaptap.current_dir(self.directory.path()).stdin(file);
        Ended::from_command(heaptap.args(args.list()))
    }

    fn expect(&self, code: i32, args: impl Arguments) -> Ended {
        let ended = self.run(args);
        ended.assert_code(code);
        ended
    }

    /// The document of a successful command.
    fn json(&self, args: impl Arguments) -> Value {
        self.expect(0, args).json()
    }
}

/// Whatever the compression, a file and standard input give the document of the plain file, except
/// for the name in `source`.
fn says_the_same(text: &[u8], of_file: &[&str], of_stdin: &[&str]) -> Value {
    let document = |input: &Input, args| {
        let mut document = input.json(args);
        document
            .as_object_mut()
            .expect("an object")
            .remove("source");
        document
    };
    let plain = document(&Input::new(text), of_file);
    for packed in [
        text.to_vec(),
        gzip(text),
        zstd(text),
        xz(text),
        zstd(&xz(text)),
    ] {
        let input = Input::new(&packed);
        assert_eq!(document(&input, of_file), plain);
        assert_eq!(document(&input, of_stdin), plain);
    }
    plain
}

#[test]
fn meminfo_of_any_packing() {
    let text = fixture("meminfo/synthetic_api34_d.txt");
    let plain = says_the_same(
        &text,
        &["meminfo", "input", "--json"],
        &["meminfo", "-", "--json"],
    );
    assert!(!plain["processes"].as_array().expect("a list").is_empty());
    let input = Input::new(&gzip(&utf16(&text)));
    let wide = input.json(&["meminfo", "input", "--json"]);
    assert_eq!(wide["processes"], plain["processes"]);
    assert_eq!(
        input.json(&["meminfo", "-", "--json"])["processes"],
        plain["processes"]
    );
    // Two compressed texts are compared by their content.
    let packed = Input::new(&xz(&text));
    std::fs::write(packed.directory.path().join("other"), &text).expect("a file");
    packed.expect(0, &["diff", "input", "other", "--json"]);

    let torn = gzip(&text);
    let torn = Input::new(&torn[..torn.len() / 2]);
    let refused = torn.expect(8, &["meminfo", "input", "--json"]);
    let refused = refused.json();
    assert_eq!(refused["error"]["kind"], "input-unreadable");
    let trace = Input::new(&fixture("conversions/c_cont.pftrace"));
    let refused = trace.expect(8, &["meminfo", "input", "--json"]);
    let refused = refused.json();
    assert_eq!(refused["error"]["kind"], "not-a-meminfo");
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(message.ends_with("it is a Perfetto trace"), "{message}");
    let xml = br#"<malloc version="scudo-1"><alloc size="16" count="3"/></malloc>"#;
    let allocator = Input::new(xml);
    let refused = allocator.run(&["meminfo", "input", "--json"]);
    let refused = refused.json();
    assert_eq!(refused["error"]["kind"], "not-a-meminfo");
    let help = refused["error"]["help"].as_str().expect("help");
    assert_contains(&help, "`--reconcile`");
    allocator.expect(0, &["meminfo", "input", "--reconcile"]);
}

/// Mappings of a process; enough that compression leaves some bytes.
fn mappings() -> Vec<u8> {
    let text: String = (0..2000_u64)
        .map(|n| {
            let at = 0x7000_0000 + n * 0x9000;
            let size = n.wrapping_mul(2_654_435_761) % 4096;
            format!(
                "{at:x}-{:x} rw-p 00000000 00:00 {size} /lib/{size}.so\nRss: {size} kB\n",
                at + 0x1000
            )
        })
        .collect();
    text.into_bytes()
}

#[test]
fn smaps_of_any_packing() {
    let text = mappings();
    let plain = says_the_same(
        &text,
        &["smaps", "input", "--json"],
        &["smaps", "-", "--json"],
    );
    assert_eq!(plain["count"], 2000);
    let wide = Input::new(&xz(&utf16(&text)));
    assert_eq!(wide.json(&["smaps", "input", "--json"]), plain);
    // The saved copy is the text itself.
    let packed = Input::new(&zstd(&text));
    packed.json(&["smaps", "-", "--save", "kept", "--json"]);
    let kept = std::fs::read(packed.directory.path().join("kept")).expect("it was kept");
    assert_eq!(kept, text);

    for packed in [gzip(&text), xz(&text)] {
        let torn = Input::new(&packed[..packed.len() / 2]);
        let refused = torn.expect(8, &["smaps", "input", "--json"]);
        let refused = refused.json();
        assert_eq!(refused["error"]["kind"], "input-unreadable");
    }
    let notes = Input::new(b"hello\n");
    for name in ["input", "-"] {
        let refused = notes.expect(8, &["smaps", name, "--json"]);
        let refused = refused.json();
        assert_eq!(refused["error"]["kind"], "not-mappings");
    }
    // A trace in a pipe is detected, too.
    let trace = Input::new(&fixture("conversions/c_cont.pftrace"));
    for name in ["input", "-"] {
        let refused = trace.expect(7, &["smaps", name, "--json"]);
        let refused = refused.json();
        assert_eq!(refused["error"]["kind"], "no-mappings");
    }
}

#[test]
fn logs_of_any_packing() {
    let text = fixture("gclog/gc_forms.log");
    let plain = says_the_same(&text, &["gc", "input", "--json"], &["gc", "-", "--json"]);
    assert!(!plain["processes"].as_array().expect("a list").is_empty());
    // The only text of a ZIP.
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in [("log.txt", &text[..]), ("screen.png", b"\x89PNG")] {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(name, options).expect("memory");
        zip.write_all(bytes).expect("memory");
    }
    let zip = zip.finish().expect("memory").into_inner();
    let packed = Input::new(&zip);
    for name in ["input", "-"] {
        let document = packed.json(&["gc", name, "--json"]);
        assert_eq!(document["processes"], plain["processes"]);
    }

    // The lines before the damage are read, and then it is reported.
    let long = text.repeat(200);
    let torn = gzip(&long);
    let torn = Input::new(&torn[..torn.len() / 2]);
    let output = torn.expect(6, &["gc", "input", "--json"]);
    let document = output.json();
    assert!(document["lines"].as_u64() > Some(10), "{document:#}");
    let what = "input: its gzip stream breaks off after ";
    output.assert_stderr(what);
}

#[test]
fn a_file_called_like_standard_input_is_not_taken_for_it() {
    let input = Input::new(&mappings());
    std::fs::write(input.directory.path().join("-"), "no mappings").expect("a file");
    input.json(&["smaps", "-", "--json"]);
    let trace = Input::new(&fixture("conversions/c_cont.pftrace"));
    for name in ["-", "input"] {
        std::fs::create_dir_all(trace.directory.path().join("-")).expect("a folder");
        let output = trace.expect(7, &["smaps", name]);
        let shown = if name == "-" {
            "standard input"
        } else {
            "input"
        };
        output.assert_stderr(&format!("{shown} contains no memory mappings"));
    }
}

#[test]
fn a_text_inside_an_archive_is_not_read_with_the_bytes_around_it() {
    let stored = |text: &[u8]| {
        let mut out = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored);
        out.start_file("text.txt", options).expect("memory");
        out.write_all(text).expect("memory");
        out.finish().expect("memory").into_inner()
    };
    let meminfo = fixture("meminfo/synthetic_api34_d.txt");
    for (text, args) in [
        (mappings(), ["smaps", "input", "--json"].as_slice()),
        (mappings(), &["smaps", "-", "--json"]),
        (meminfo, &["meminfo", "input", "--json"]),
    ] {
        let alone = Input::new(&text).json(args);
        assert_eq!(Input::new(&stored(&text)).json(args), alone);
        let tar = [&[b'x'; 257][..], b"ustar", &[0; 250], &text].concat();
        Input::new(&tar).expect(8, args);
    }
}

#[test]
fn damage_is_told_before_what_cannot_be_compared() {
    let text = mappings();
    let packed = gzip(&text);
    let input = Input::new(&packed[..11]);
    std::fs::write(input.directory.path().join("other"), &text).expect("a file");
    let refused = input.expect(8, &["diff", "input", "other", "--json"]);
    let refused = refused.json();
    assert_eq!(refused["error"]["kind"], "input-damaged");
}

#[test]
fn an_allocators_xml_is_reconciled_from_standard_input() {
    let input =
        Input::new(b"<malloc version=\"scudo-1\"><alloc size=\"1024\" count=\"3\"/></malloc>\n");
    let of_stdin = input.json(&["meminfo", "-", "--reconcile", "--json"]);
    assert_eq!(
        of_stdin["tables"][0]["rows"][0]["bytes"], 3072,
        "{of_stdin}"
    );
    let xml = gzip(&b"<malloc version=\"scudo-1\"></malloc>".repeat(99));
    let torn = Input::new(&xml[..xml.len() - 9]);
    for name in ["input", "-"] {
        let refused = torn.expect(8, &["meminfo", name, "--reconcile", "--json"]);
        let refused = refused.json();
        assert_eq!(refused["error"]["kind"], "input-damaged");
    }
    let text = Input::new(b"something else");
    text.expect(8, &["meminfo", "-", "--reconcile"])
        .assert_stderr("standard input does not contain a heap: it is text");
}

const MEMINFO: &str = "\
Applications Memory Usage (in Kilobytes):
Uptime: 100 Realtime: 100

** MEMINFO in pid 4242 [com.example.app] **
                   Pss  Private  Private  SwapPss      Rss     Heap     Heap     Heap
                 Total    Dirty    Clean    Dirty    Total     Size    Alloc     Free
                ------   ------   ------   ------   ------   ------   ------   ------
  Native Heap    20000    19000       10        5    21000    30000    25000     5000
        Stack      400      400        0        0      404
        TOTAL    20400    19400       10        5    21404    30000    25000     5000
";

const GC: &str = "Explicit concurrent mark compact GC freed 10130KB AllocSpace bytes, 22(704KB) \
    LOS objects, 49% free, 9010KB/18MB, paused 274us,607us total 19.749ms";

/// A table of showmap with one library.
fn showmap(kb: u64) -> String {
    let row = |name: &str| format!("{kb} {kb} {kb} 0 0 0 {kb} 0 0 1 {name}\n");
    format!(
        " virtual                     shared   shared  private  private\n    \
         size      RSS      PSS    clean    dirty    clean    dirty     swap  swapPSS   #  object\n\
         -------- -------- --------\n{}-------- -------- --------\n{}",
        row("/system/lib64/libc.so"),
        row("TOTAL")
    )
}

/// A bug report with a log, the mappings of two processes, and meminfo, among other sections.
fn bugreport() -> String {
    format!(
        "========================================================\n\
         == dumpstate: 2026-09-10 10:00:00\n\
         ========================================================\n\
         ------ SYSTEM LOG (logcat -v threadtime -d *:v) ------\n\
         09-10 09:59:00.000  4242  4250 I com.example.app: {GC}\n\
         ------ 0.4s was the duration of 'SYSTEM LOG' ------\n\
         ------ SHOW MAP 1 (init) (/system/xbin/su root showmap -q 1) ------\n{}\
         ------ SHOW MAP 4242: com.example.app (showmap -q 4242) ------\n{}\
         ------ DUMPSYS HIGH (/system/bin/dumpsys) ------\n\
         -------------------------------------------------------------------------------\n\
         DUMP OF SERVICE HIGH meminfo:\n{MEMINFO}\
         --------- 0.412s was the duration of dumpsys meminfo, ending at: 2026-09-10 10:00:04\n\
         -------------------------------------------------------------------------------\n\
         DUMP OF SERVICE HIGH activity:\n*** SERVICE 'activity' DUMP TIMEOUT (10000ms) EXPIRED ***\n",
        showmap(4),
        showmap(512)
    )
}

fn zip_of(name: &str, text: &str) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in [
        (name, text),
        ("FS/proc/version", "Linux"),
        ("dumpstate_log.txt", "x"),
    ] {
        zip.start_file(name, zip::write::SimpleFileOptions::default())
            .expect("memory");
        zip.write_all(text.as_bytes()).expect("memory");
    }
    zip.finish().expect("memory").into_inner()
}

#[test]
fn texts_with_any_line_ends_are_those_with_plain_ones() {
    let smaps = "7100000000-7100100000 rw-p 00000000 00:00 0  [anon:scudo:primary]\n\
                 Size: 1024 kB\nRss: 512 kB\nPss: 512 kB\nPrivate_Dirty: 512 kB\n";
    let log = format!("--------- beginning of main\n09-15 15:09:12.773 7 8 I x.y: {GC}\n");
    for end in ["\r\n", "\r\r\n", "\r"] {
        let odd = |text: &str| Input::new(text.replace('\n', end).as_bytes());
        let found = odd(MEMINFO).json(&["meminfo", "input", "--json"]);
        assert_eq!(
            found["processes"][0]["rows"][0]["values"]["pss"],
            20_000 << 10,
            "{end:?}"
        );
        let found = odd(smaps).json(&["smaps", "input", "--json"]);
        assert_eq!(found["total"]["pss"], 512 << 10, "{end:?}");
        assert_eq!(found["truncated"], false);
        let found = odd(&log).json(&["gc", "-", "--json"]);
        assert_eq!(found["processes"][0]["pid"], 7, "{end:?}");
    }
}

#[test]
fn each_command_reads_its_part_of_a_bug_report() {
    let report = bugreport();
    for bytes in [
        report.clone().into_bytes(),
        gzip(report.as_bytes()),
        zip_of("bugreport-x-2026.txt", &report),
    ] {
        let input = Input::new(&bytes);
        for name in ["input", "-"] {
            let found = input.json(&["meminfo", name, "--json"]);
            assert_eq!(found["processes"][0]["pid"], 4242);
            assert_eq!(found["unknown"], serde_json::json!([]));
            assert_eq!(found["problems"], serde_json::json!([]));
            let found = input.json(&["gc", name, "--json"]);
            assert_eq!(found["processes"][0]["collections"], 1);
            let found = input.json(&["smaps", name, "-n", "com.example.app", "--json"]);
            assert_eq!(found["total"]["pss"], 512 << 10);
            assert_eq!(found["pid"], 4242);
            input
                .expect(2, &["smaps", name])
                .assert_stderr("init (1)")
                .assert_stderr("-n NAME");
        }
        // Nothing differs from itself.
        let found = input.json(&["diff", "input", "input", "--json"]);
        assert_eq!(found["kind"], "meminfo");
        input.run("top input").assert_stderr("heaptap meminfo");
    }
    let without = Input::new(b"== dumpstate: 2026-09-10 10:00:00\n------ UPTIME (uptime) ------\n");
    for (command, section) in [
        ("meminfo", "DUMP OF SERVICE meminfo"),
        ("smaps", "SHOW MAP"),
    ] {
        without
            .expect(8, &[command, "input"])
            .assert_stderr(format!("section {section}"));
    }
}

#[test]
fn processes_of_one_text_of_mappings_are_read_one_by_one() {
    let mapping = |kb: u64| {
        format!(
            "7100000000-7100200000 rw-p 00000000 00:00 0\nSize: 2048 kB\nRss: {kb} kB\nPss: {kb} kB\n"
        )
    };
    let input = Input::new(format!("{}{}", mapping(1024), mapping(8)).as_bytes());
    let several = input.expect(2, &["smaps", "input"]);
    several.assert_stderr("@1, @2").assert_stderr("input@1 or ");
    for (which, kb) in [("input@1", 1024), ("input@2", 8)] {
        let found = input.json(&["smaps", which, "--json"]);
        assert_eq!(found["total"]["pss"], kb << 10, "{which}");
    }
}

#[test]
fn what_the_device_wrote_instead_of_meminfo_is_the_cause() {
    for (said, cause, help) in [
        (
            "Applications Memory Usage (in Kilobytes):\nUptime: 1 Realtime: 1\n\n\
             *** SERVICE 'meminfo' DUMP TIMEOUT (10000ms) EXPIRED ***\n",
            "DUMP TIMEOUT (10000ms)",
            "dumpsys -t 60 meminfo",
        ),
        (
            "Can't find service: meminfo\n",
            "Can't find service",
            "boot_completed",
        ),
        (
            "Permission Denial: can't dump meminfo from pid=1, uid=10123\n",
            "Permission Denial",
            "adb shell",
        ),
        (
            "error: no devices/emulators found\n",
            "no devices",
            "heaptap doctor",
        ),
        ("I/art     ( 2345): x\n", "it begins", "dumpsys meminfo"),
        ("--------- beginning of main\n", "it is a log", "heaptap gc"),
        ("heap_v2/524288\n", "jemalloc", "jeprof"),
    ] {
        Input::new(said.as_bytes())
            .expect(8, "meminfo input")
            .assert_stderr(cause)
            .assert_stderr(help);
    }
}

#[test]
fn a_text_of_another_kind_names_the_command_that_reads_it() {
    let log = format!("09-15 15:09:12.773 7 8 I x.y: {GC}\n");
    for (text, help) in [
        (MEMINFO, "heaptap meminfo"),
        (&log, "heaptap gc"),
        (&showmap(4), "heaptap smaps"),
        ("<malloc version=\"scudo-1\"></malloc>", "--reconcile"),
        (
            "heap profile:   3: 96 [  5: 160] @ heapprofile\n",
            "pprof -proto",
        ),
    ] {
        let input = Input::new(text.as_bytes());
        for command in ["top", "leaks", "convert"] {
            input.expect(8, &[command, "input"]).assert_stderr(help);
        }
    }
}

#[test]
fn a_log_behind_times_of_a_ci_system_and_an_export_of_studio_are_read() {
    let line = |pid: u64, name: &str| {
        format!("2026-09-15T15:09:12.7730000Z 09-15 15:09:12.773 {pid} {pid} I {name}: {GC}\n")
    };
    let log = [line(13999, "com.example.app"), line(929, "system_server")].concat();
    let input = Input::new(log.as_bytes());
    let found = input.json(&["gc", "input", "-n", "com.example.app", "--json"]);
    assert_eq!(found["processes"][0]["pid"], 13999);
    assert_eq!(found["processes"][0]["collections"], 1);
    let export = serde_json::json!({"metadata": {}, "logcatMessages": [{
        "header": {"logLevel": "INFO", "pid": 22935, "tid": 1, "applicationId": "com.example.app",
            "processName": "com.example.app", "tag": "com.example.app",
            "timestamp": {"seconds": 1_720_000_000, "nanos": 0}},
        "message": GC
    }]});
    let export = serde_json::to_vec_pretty(&export).expect("memory");
    let found = Input::new(&export).json(&["gc", "input", "--json"]);
    assert_eq!(found["processes"][0]["name"], "com.example.app");
    assert_eq!(found["processes"][0]["durations"]["max_ns"], 19_749_000);
    // The same line in packets of a trace (`android.log`): of a process, and of another one.
    let field = |number: u8, value: &[u8]| {
        let length = [value.len() as u8 | 0x80, (value.len() >> 7) as u8];
        [&[number << 3 | 2][..], &length, value].concat()
    };
    let event = |pid: u8| {
        let times = [
            &[0x10, pid, 0x28, 0x01][..],
            &field(6, b"art"),
            &field(8, GC.as_bytes()),
        ];
        field(1, &times.concat())
    };
    let log = [event(7), event(7), event(9)].concat();
    let packet = [
        &[0x40, 0x01, 0x50, 0x01, 0xba, 0x02][..],
        &field(0, &log)[1..],
    ]
    .concat();
    let trace = field(1, &packet).repeat(2);
    let found = Input::new(&trace).json(&["gc", "input", "-p", "7", "--json"]);
    assert_eq!(found["processes"][0]["collections"], 4, "{found:#}");
    assert_eq!(found["processes"].as_array().map(Vec::len), Some(1));
    Input::new(&export[..export.len() - 4])
        .expect(6, "gc input --json")
        .assert_stdout("22935");
}
