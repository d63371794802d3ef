//! Directories with names that a system limits or reads in its own way.

use crate::lab::{APP, Lab};

const FAST: &str = "android=14,build=userdebug,speed=10";

/// Records into `directory`, and reads the results with commands that write files of their own.
fn record_and_read(lab: &Lab, state: &str, directory: &str) {
    let run = |args: &[&str]| {
        let ended = lab.start_as(state, args).end();
        assert_eq!(ended.code(), Some(0), "{directory}: {ended}");
        ended
    };
    let with = ["--with", "java,meminfo,smaps", "-d", "2s"];
    run(&[&["record", "-n", APP, "-o", directory][..], &with].concat());
    assert!(run(&["status"]).stdout.trim().is_empty(), "{directory}");
    let file = |name: &str| format!("{directory}/{name}");
    run(&["top", directory]);
    run(&["leaks", &file("java")]);
    run(&["report", directory, "-o", &file("page.html")]);
    run(&["query", directory, "-o", &file("tables.db")]);
    run(&["convert", directory, "--format", "folded", "-o", &file("x")]);
    run(&["symbolize", directory]);
}

#[test]
fn results_and_journals_are_below_paths_of_more_than_260_characters() {
    let lab = Lab::new(FAST);
    let directory = ["d".repeat(60).as_str(); 5].join("/") + "/out";
    let state = ["s".repeat(60).as_str(); 5].join("/");
    record_and_read(&lab, &state, &directory);
    for name in ["raw-trace", "page.html", "tables.db"] {
        let path = lab.work().join(&directory).join(name);
        assert!(path.as_os_str().len() > 320, "{}", path.display());
        assert!(path.is_file(), "{}", path.display());
    }
}

#[cfg(windows)]
#[test]
fn a_directory_can_be_relative_to_a_drive_or_verbatim_or_have_slashes() {
    let lab = Lab::new(FAST);
    let work = lab.work();
    let drive = work.to_str().and_then(|path| path.get(..2));
    let drive = drive.expect("a drive");
    for (typed, directory) in [
        (format!("{drive}relative"), "relative"),
        (format!(r"\\?\{}\verbatim", work.display()), "verbatim"),
        ("slashes/in/it".to_owned(), "slashes/in/it"),
        (r"back\slashes".to_owned(), "back/slashes"),
    ] {
        let args = ["record", "-n", APP, "-o", &typed, "-d", "2s"];
        let ended = lab.expect(0, &args);
        assert!(
            lab.work().join(directory).join("raw-trace").is_file(),
            "{ended}"
        );
        let ended = lab.expect(0, &["top", &typed]);
    }
}
