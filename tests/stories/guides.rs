//! Runs every command of the guides verbatim: in the order of the page, in one directory, with a
//! device on the adb server. A line that ends with `# exits with N` must have that exit code; the
//! others must have 0.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use virtual_phone::{Abi, MAPPING, unstripped_libraries};

use crate::builds::apk;
use crate::lab::{Lab, Running};

/// No command of a page takes that long.
const LIMIT: Duration = Duration::from_secs(180);

/// The phone of docs/README.md, faster. Its libraries have symbols, for pages without `--symbols`.
const PHONE: &str = "android=14,build=userdebug,stripped=no,speed=10";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the commands of a page and their exit codes: the lines of its `sh` blocks.
fn commands(page: &str) -> Vec<(String, i32)> {
    let blocks = page.split("\n```sh\n").skip(1);
    let code = blocks.filter_map(|rest| rest.split("\n```").next());
    let lines = code.flat_map(|code| {
        let code = code.replace("\\\n", " ");
        code.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    lines
        .filter_map(|line| {
            let (command, comment) = line.split_once(" #").unwrap_or((&line, ""));
            let code = comment.split("exits with ").nth(1).map(|rest| {
                let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
                digits.unwrap().parse().expect("an exit code")
            });
            let command = command.trim();
            let is_command = !command.is_empty() && !command.starts_with('#');
            is_command.then(|| (command.to_owned(), code.unwrap_or(0)))
        })
        .collect()
}

/// Creates the files that the guides assume in the current directory.
fn prepare(work: &Path) {
    let fixture = |name: &str| std::fs::read(root().join("fixtures").join(name)).unwrap();
    std::fs::create_dir(work.join("libs")).unwrap();
    for (name, bytes) in unstripped_libraries(Abi::Arm64) {
        std::fs::write(work.join("libs").join(name), bytes).unwrap();
    }
    std::fs::write(work.join("mapping.txt"), MAPPING).unwrap();
    // Two builds and the scenario of a merge.
    apk(work, "old.apk", "package=com.example.app\nversion=41\n");
    apk(
        work,
        "new.apk",
        "package=com.example.app\nversion=42\nmemory=150\n",
    );
    let merge = "version: 1\nname: merge\ntarget: {name: com.example.app}\ninstall: {apk: \
                 new.apk}\nsteps: [start, {sleep: 200ms}, {snapshot: up}]\nbudgets:\n- {name: \
                 startup, native: {function: LoadDefaults}, at: up, change: 5%}\n";
    std::fs::write(work.join("merge.yaml"), merge).unwrap();
    let meminfo = fixture("meminfo/synthetic_api34_d.txt");
    let bar = "=".repeat(56);
    let mut report = format!(
        "{bar}\n== dumpstate: 2026-09-10 10:00:00\n{bar}\n------ DUMPSYS HIGH (/system/bin/dumpsys) \
         ------\nDUMP OF SERVICE HIGH meminfo:\n"
    )
    .into_bytes();
    report.extend(&meminfo);
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let name = "bugreport-x-2026-09-10-10-00-00.txt";
    zip.start_file(name, zip::write::SimpleFileOptions::default())
        .unwrap();
    std::io::Write::write_all(&mut zip, &report).unwrap();
    let packed = fixture("hprof/android-a.hprof.gz");
    let mut heap = Vec::new();
    let mut unpacked = flate2::read::MultiGzDecoder::new(packed.as_slice());
    std::io::Read::read_to_end(&mut unpacked, &mut heap).unwrap();
    for (name, bytes) in [
        ("app.hprof", heap),
        ("gc.log", fixture("gclog/gc_forms.log")),
        ("meminfo.txt", meminfo),
        ("bugreport.zip", zip.finish().unwrap().into_inner()),
        ("trace.pftrace", fixture("conversions/c_cont.pftrace")),
    ] {
        std::fs::write(work.join(name), bytes).unwrap();
    }
}

fn run(page: &str) {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let commands = commands(&text);
    assert!(!commands.is_empty(), "{page} has no commands");
    let lab = Lab::new(PHONE);
    prepare(&lab.work());
    let program = Path::new(env!("CARGO_BIN_EXE_heaptap"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    for (command, code) in commands {
        assert!(command.starts_with("heaptap "), "{page}: {command}");
        // Without a browser, and until nothing has asked for a second.
        let serves = command.starts_with("heaptap explore ") && !command.contains(" -o ");
        let command = command + if serves { " --print-url --idle 1s" } else { "" };
        let mut shell = crate::program::cleaned("sh");
        let child = shell
            .args(["-c", &command])
            .current_dir(lab.work())
            .env("PATH", &path)
            .env("ADB_SERVER_SOCKET", format!("tcp:{}", lab.phone.addr()))
            .env("HEAPTAP_STATE_DIR", lab.dir.path().join("state"))
            .env("HEAPTAP_CACHE_DIR", lab.dir.path().join("cache"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let typed = command.strip_prefix("heaptap ").unwrap_or(&command);
        let ended = Running::new(child, &[typed]).end_within(LIMIT);
        assert_eq!(ended.code(), Some(code), "{page}: {ended}");
    }
}

/// A test for each page.
macro_rules! pages {
    ($($name:ident: $page:literal,)*) => {
        const PAGES: &[&str] = &[$($page),*];
        $(#[test]
        fn $name() {
            run($page);
        })*
    };
}

pages! {
    readme: "README.md",
    guide_to_recording: "docs/guide/recording.md",
    guide_to_native_leaks: "docs/guide/native-leak.md",
    guide_to_java_leaks: "docs/guide/java-leak.md",
    guide_to_startup: "docs/guide/startup.md",
    guide_to_graphics_memory: "docs/guide/graphics-memory.md",
    guide_to_meminfo: "docs/guide/meminfo.md",
    guide_to_ci: "docs/guide/ci.md",
    guide_to_symbols: "docs/guide/symbols.md",
    guide_to_troubleshooting: "docs/guide/troubleshooting.md",
    reference_of_sql: "docs/reference/sql.md",
}

#[test]
fn every_page_with_commands_is_run() {
    for directory in ["docs", "docs/guide", "docs/reference", "docs/internals"] {
        for entry in std::fs::read_dir(root().join(directory)).unwrap() {
            let path = entry.unwrap().path();
            let name = format!(
                "{directory}/{}",
                path.file_name().unwrap().to_string_lossy()
            );
            if name.ends_with(".md") && !PAGES.contains(&&*name) {
                let text = std::fs::read_to_string(&path).unwrap();
                assert_eq!(commands(&text), [], "{name}");
            }
        }
    }
}
