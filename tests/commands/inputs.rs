//! Inputs that can be read only once: pipes and standard input.
#![cfg(unix)]

fn fixture(name: &str) -> String {
    format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A pipe gives its bytes once: a second open of the input reads nothing.
#[test]
fn an_input_is_opened_once_whatever_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let graph = fixture("heap_graphs/graph_10k.pftrace.zst");
    let dump = fixture("hprof/leaklab-before.hprof.zst");
    let packed = fixture("hprof/android-a.hprof.gz");
    let pipe = |name: &str, file: &str| {
        let pipe = folder.path().join(name).to_str().unwrap().to_owned();
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
