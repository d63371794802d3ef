//! Inputs that can be read only once, pipes and standard input, and profiles of other tools.
#![cfg(unix)]

fn fixture(name: &str) -> String {
    format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A pipe gives its bytes once: a second open of the input reads nothing.
#[test]
fn an_input_is_opened_once_whatever_it_holds() {
    let directory = tempfile::tempdir().unwrap();
    let graph = fixture("heap_graphs/graph_10k.pftrace.zst");
    let dump = fixture("hprof/leaklab-before.hprof.zst");
    let packed = fixture("hprof/android-a.hprof.gz");
    let pipe = |name: &str, file: &str| {
        let pipe = directory.path().join(name).to_str().unwrap().to_owned();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("there is mkfifo").success());
        let (path, bytes) = (pipe.clone(), std::fs::read(file).unwrap());
        // heaptap can close the pipe before all of it is written.
        let feeder = std::thread::spawn(move || drop(std::fs::write(path, bytes)));
        (pipe, feeder)
    };
    for (at, file) in [&graph, &dump, &packed].into_iter().enumerate() {
        for command in ["top", "leaks", "report", "convert"] {
            let (path, feeder) = pipe(&format!("{command}-{at}"), file);
            let (page, again) = (format!("{path}.out"), format!("{path}.again"));
            let args = |input: &str, page: &str| -> Vec<String> {
                let more: &[&str] = match command {
                    "report" => &["-o", page],
                    "convert" => &["-o", page, "--format", "folded"],
                    _ => &["--json"],
                };
                let all = [command, input].into_iter().chain(more.iter().copied());
                all.map(str::to_owned).collect()
            };
            let run = |args: Vec<String>| crate::program::heaptap().args(args).output().unwrap();
            let (from_pipe, of_file) = (run(args(&path, &page)), run(args(file, &again)));
            assert_eq!(from_pipe.status.code(), Some(0), "{file} {from_pipe:?}");
            assert_eq!(of_file.status.code(), Some(0), "{file} {of_file:?}");
            feeder.join().unwrap();
        }
    }
    // Standard input, too.
    for file in [&graph, &dump] {
        let output = crate::program::heaptap()
            .args(["top", "-", "--csv", "--sort", "shallow"])
            .stdin(std::fs::File::open(file).unwrap())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{file}: {output:?}");
        let rows = String::from_utf8(output.stdout).unwrap();
        let of_file = crate::program::heaptap()
            .args(["top", file, "--csv", "--sort", "shallow"])
            .output()
            .unwrap();
        assert_eq!(rows, String::from_utf8(of_file.stdout).unwrap());
        // A flag that only Java heaps support skips the search for native ones.
        let output = crate::program::heaptap()
            .args(["top", "-", "--heap", "java", "--csv", "--sort", "shallow"])
            .stdin(std::fs::File::open(file).unwrap())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), rows);
    }
}

/// Returns a heap profile in the order in which Go writes its fields: one callsite of 121,723
/// objects and 16 MiB.
fn go_profile() -> Vec<u8> {
    let mut profile = vec![];
    let mut add = |tag: u8, bytes: &[u8]| {
        profile.extend([tag, bytes.len() as u8]);
        profile.extend(bytes);
    };
    // Period type, sample types, location, function, sample.
    add(0x5a, &[8, 1, 16, 2]);
    add(0x0a, &[8, 3, 16, 4]);
    add(0x0a, &[8, 5, 16, 2]);
    add(0x22, &[8, 1, 0x22, 2, 8, 1]);
    add(0x2a, &[8, 1, 16, 6]);
    let values = [0xfb, 0xb6, 0x07, 0x80, 0x80, 0x80, 0x08];
    add(0x12, &[&[0x0a, 1, 1, 0x12, 7][..], &values].concat());
    for text in [
        "",
        "space",
        "bytes",
        "inuse_objects",
        "count",
        "inuse_space",
        "main.load",
    ] {
        add(0x32, text.as_bytes());
    }
    // A period of 512 KiB.
    profile.extend([0x60, 0x80, 0x80, 0x20]);
    profile
}

#[test]
fn a_heap_profile_as_go_writes_it_is_read_and_its_counts_are_estimates() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("heap.pb");
    std::fs::write(&file, go_profile()).unwrap();
    let top = |flags: &[&str]| {
        let mut command = crate::program::heaptap();
        let output = command.arg("top").arg(&file).args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = top(&["--view", "objects"]);
    assert!(text.contains("sampled every 512.0 KiB"), "{text}");
    assert!(
        text.contains("121,723 estimated allocations unreleased"),
        "{text}"
    );
    assert!(text.contains("main.load"), "{text}");
    let document: serde_json::Value = serde_json::from_str(&top(&["--json"])).unwrap();
    // One sample of each interval.
    assert_eq!(document["heaps"][0]["total_limits"]["samples"], 32);
}
