//! Terminals of 60 and 100 columns: all output fits, and no word is broken.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::cli::command;

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name);
    path.to_string_lossy().into_owned()
}

/// Results of a command on a terminal of that many columns, without stderr.
fn printed(columns: u16, args: &[&str]) -> String {
    on_terminal(columns, command(args), false)
}

/// What a command writes to a terminal of that many columns, with stderr or without.
pub(super) fn on_terminal(columns: u16, mut command: Command, with_stderr: bool) -> String {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let terminal = openpt(flags).expect("a terminal");
    grantpt(&terminal).expect("it is ours");
    unlockpt(&terminal).expect("it opens");
    let size = Winsize {
        ws_row: 50,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let name = ptsname(&terminal, Vec::new()).expect("it has a name");
    let name = PathBuf::from(name.into_string().expect("of ASCII"));
    let inside = File::options()
        .read(true)
        .write(true)
        .open(name)
        .expect("it opens");
    tcsetwinsize(&inside, size).expect("it has a size");
    let stderr = if with_stderr {
        Stdio::from(inside.try_clone().expect("a second handle"))
    } else {
        Stdio::null()
    };
    let mut child = command
        .arg("--color=never")
        .stdout(Stdio::from(inside))
        .stderr(stderr)
        .spawn()
        .expect("the binary runs");
    let mut bytes = Vec::new();
    let shown = format!("{command:?}");
    // The terminal ends when its last writer closes it.
    drop(command);
    // The end of a terminal is an error on Linux.
    let _ended = File::from(terminal).read_to_end(&mut bytes);
    let status = child.wait().expect("it ends");
    assert_ne!(status.code(), Some(2), "{shown}");
    String::from_utf8(bytes)
        .expect("UTF-8")
        .replace("\r\n", "\n")
}

/// Output to a pipe, which is not cut.
fn whole(args: &[&str]) -> String {
    let output = command(args)
        .arg("--color=never")
        .output()
        .expect("the binary runs");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Words of a line, separated by spaces.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', '\n']).filter(|word| !word.is_empty())
}

/// Fails if a line is wider than the terminal, unless it is a single word or the input's path; if a
/// word was cut, recognized by an ellipsis between letters; or if the full text does not have the
/// word.
fn assert_unbroken(columns: u16, args: &[&str]) {
    let text = printed(columns, args);
    let whole = whole(args);
    let separators = [',', ';', ':'];
    let known: BTreeSet<&str> = words(&whole)
        .flat_map(|word| [word, word.trim_end_matches(separators)])
        .collect();
    assert!(text.lines().count() > 2, "{args:?}: {text}");
    for line in text.lines() {
        let width = console::measure_text_width(line);
        let is_one_word = words(line).filter(|word| word.chars().count() > 1).count() <= 1;
        let is_path = |arg: &&&str| std::path::Path::new(arg).is_absolute();
        let has_path = args.iter().filter(is_path).any(|arg| line.contains(arg));
        assert!(
            width <= usize::from(columns) || is_one_word || has_path,
            "{args:?}: {width} columns\n{line}\n{text}"
        );
        for word in words(line) {
            if word.chars().all(|c| !c.is_alphanumeric())
                || known.contains(word.trim_end_matches(separators))
            {
                continue;
            }
            // A caller without its parameters.
            if ["(", "<"]
                .iter()
                .any(|more| whole.contains(&format!("{word}{more}")))
            {
                continue;
            }
            // A shortened name: `….util.Map`, `…Map::put`, `a::B<…>::c(…)`.
            let mut parts = word.split('…').filter(|part| !part.is_empty());
            let is_shortened = word.contains('…')
                && !word.ends_with('…')
                && parts.all(|part| {
                    let at = whole.find(part);
                    let before = at.and_then(|at| whole[..at].chars().next_back());
                    at.is_some()
                        && (!part.starts_with(char::is_alphanumeric)
                            || !before.is_some_and(|c| c.is_alphanumeric() || c == '_'))
                });
            // Text that only narrow terminals show.
            const OWN: &str = "hidden columns: … widen the terminal or pipe the output, or use `--csv` or `--json`";
            let is_own = OWN.contains(word) || line.starts_with("hidden columns");
            assert!(
                is_shortened || is_own,
                "{args:?}: {word:?} of {line:?}\n{text}"
            );
        }
    }
}

#[test]
fn at_sixty_columns_no_word_is_broken() {
    let java = fixture("hprof/leaklab-after.hprof.zst");
    let before = fixture("hprof/leaklab-before.hprof.zst");
    let android = fixture("hprof/android-a.hprof.gz");
    let native = fixture("conversions/c_cont.pftrace");
    let rust = fixture("conversions/rust_cont_symbolized.pftrace");
    let meminfo = fixture("meminfo/synthetic_api34_d.txt");
    let whole_phone = fixture("meminfo/synthetic_api34_a.txt");
    for args in [
        &["apps", "--virtual"][..],
        &["apps", "--virtual", "--all"],
        &["top", &java],
        &["top", &java, "--tree"],
        &["top", &android],
        &["top", &native],
        &["top", &rust, "--all-frames"],
        &["top", &rust, "--tree"],
        &["leaks", &java],
        &["leaks", &android],
        &["leaks", &before, &java],
        &["leaks", &native],
        &["meminfo", &meminfo],
        &["meminfo", &meminfo, "--explain"],
        &["meminfo", &whole_phone],
        &["paths", &java, "--focus", "DetailActivity"],
        &["paths", &android, "--focus", "Bitmap"],
        &["diff", &before, &java],
        &["hprof", "info", &java],
    ] {
        assert_unbroken(60, args);
    }
}

#[test]
fn at_a_hundred_columns_leaks_shows_the_callers_without_template_arguments() {
    let recording = crate::recorded::demo();
    let recording = recording.to_str().expect("UTF-8");
    let text = printed(100, &["leaks", recording]);
    let mut lines = text.lines().skip_while(|line| !line.contains("called by "));
    let first = lines.next().unwrap_or_else(|| panic!("no callers: {text}"));
    let more = lines.take_while(|line| line.trim_start().starts_with("← "));
    let callers = std::iter::once(first)
        .chain(more)
        .collect::<Vec<_>>()
        .concat();
    for caller in [
        "EventRecorder::Subscribe",
        "Telemetry_subscribe",
        "FeedActivity.onResume",
    ] {
        assert!(callers.contains(caller), "{caller}: {text}");
    }
    assert!(!callers.contains("__nd"), "{text}");
    assert_unbroken(100, &["leaks", recording]);
    assert_unbroken(60, &["leaks", recording]);
    assert_unbroken(60, &["top", recording]);
}
