//! Compares symbolization with llvm-symbolizer: frames, names, files and lines for addresses of
//! libc's debug file and of this program; and names with llvm-cxxfilt. `tests/run.sh` installs them.

use heaptap_symbols::symbolize::file::{Bytes, SiblingFiles, SymbolFile, identify};
use object::{Object, ObjectSymbol, SymbolKind};
use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Linkage name, file, line.
type Frame = (String, String, u64);

/// The debug file of the libc that this test runs on.
fn libc_debug_file() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let libc = maps
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(5))
        .find(|path| path.ends_with("/libc.so.6"))?;
    let facts = identify(&Bytes::map(Path::new(libc)).ok()?).ok()?;
    let id = facts.build_id.to_string();
    let (directory, name) = id.split_at_checked(2)?;
    let path = format!("/usr/lib/debug/.build-id/{directory}/{name}.debug");
    Path::new(&path).is_file().then(|| path.into())
}

/// Addresses within functions, with a fixed seed.
fn addresses(file: &[u8], count: usize) -> Vec<u64> {
    let file = object::File::parse(file).expect("an ELF file");
    let functions: Vec<_> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .collect();
    let mut random = fastrand::Rng::with_seed(1);
    let mut picked: Vec<u64> = (0..count)
        .filter_map(|_| {
            let function = random.choice(&functions)?;
            // Bit 0 of a function of 32-bit ARM marks Thumb.
            let start = match file.architecture() {
                object::Architecture::Arm => function.address() & !1,
                _ => function.address(),
            };
            Some(start + random.u64(0..function.size()))
        })
        .collect();
    picked.sort_unstable();
    picked.dedup();
    picked
}

fn theirs(llvm: &str, path: &Path, addresses: &[u64]) -> Vec<Vec<Frame>> {
    let mut child = Command::new(llvm)
        .args(["--inlines", "--output-style=JSON", "--no-demangle"])
        .arg(format!("--obj={}", path.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("llvm-symbolizer runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let asked: String = addresses.iter().map(|a| format!("{a:#x}\n")).collect();
    let writer = std::thread::spawn(move || stdin.write_all(asked.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("a thread").expect("it reads all");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    lines.lines().map(frames).collect()
}

fn frames(line: &str) -> Vec<Frame> {
    let answer: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let symbols = answer["Symbol"].as_array().expect("a list of frames");
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    symbols
        .iter()
        .map(|frame| {
            let line = frame["Line"].as_u64().expect("a number");
            (text(&frame["FunctionName"]), text(&frame["FileName"]), line)
        })
        .filter(|frame| *frame != Frame::default())
        .collect()
}

fn ours(path: &Path, addresses: &[u64]) -> Vec<Vec<Frame>> {
    let bytes = Bytes::map(path).expect("a file");
    let file = SymbolFile::open(bytes, Arc::new(SiblingFiles::new(path))).expect("a symbol file");
    let mut found = vec![Vec::new(); addresses.len()];
    let threads = NonZero::new(2).expect("2 is not 0");
    file.lookup(addresses, threads, &mut |at, lines| {
        let frame = |line: &heaptap_symbols::symbolize::file::SourceLine<'_>| {
            (
                line.linkage.to_owned(),
                line.file.to_owned(),
                line.line.into(),
            )
        };
        found[at] = lines.iter().map(frame).collect();
    });
    found
}

/// Number of frames, number of equal frames, and the differences.
fn compare(llvm: &str, path: &Path, count: usize) -> (usize, usize, Vec<String>) {
    let addresses = addresses(&std::fs::read(path).expect("a file"), count);
    assert!(!addresses.is_empty(), "{} has no functions", path.display());
    let (theirs, ours) = (theirs(llvm, path, &addresses), ours(path, &addresses));
    assert_eq!(theirs.len(), addresses.len());
    let (mut all, mut same, mut differences) = (0, 0, Vec::new());
    for ((address, theirs), ours) in addresses.iter().zip(theirs).zip(ours) {
        all += theirs.len().max(ours.len());
        same += theirs.iter().zip(&ours).filter(|(a, b)| a == b).count();
        if theirs != ours {
            differences.push(format!(
                "{address:#x}\n  {llvm} {theirs:?}\n  ours {ours:?}"
            ));
        }
    }
    (all, same, differences)
}

fn agrees(path: &Path, count: usize) {
    let (all, same, differences) = compare(&crate::judge::llvm_symbolizer(), path, count);
    assert!(
        same * 1000 >= all * 999,
        "{same} of {all} frames agree\n{}",
        differences.join("\n")
    );
}

#[test]
#[ignore = "needs llvm-symbolizer and libc's debug file: tests/run.sh runs it"]
fn judged_by_llvm_and_libc_frames_of_libc_are_the_same() {
    let libc = libc_debug_file().expect("libc's debug file (libc6-dbg) is installed");
    agrees(&libc, 1000);
}

/// This program: units of Rust, many in one file.
#[test]
#[ignore = "needs llvm-symbolizer: tests/run.sh runs it"]
#[cfg(target_os = "linux")]
fn judged_by_llvm_frames_of_this_program_are_the_same() {
    agrees(&std::env::current_exe().expect("this program"), 300);
}

/// Mangled names of C++ in the libraries of a directory: up to a number of each, to have many.
fn mangled_names(directory: &str, most_of_each: usize) -> Vec<String> {
    let paths = std::fs::read_dir(directory).expect("a directory").flatten();
    let paths = paths
        .map(|entry| entry.path())
        .filter(|path| path.is_file());
    let mut names = std::collections::BTreeSet::new();
    for path in paths {
        let Ok(bytes) = Bytes::map(&path) else {
            continue;
        };
        let Ok(file) = object::File::parse(bytes.as_ref()) else {
            continue;
        };
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let mangled = symbols.filter_map(|symbol| symbol.name().ok());
        let mangled = mangled.filter(|name| name.starts_with("_Z") && !name.contains("17h"));
        names.extend(mangled.take(most_of_each).map(str::to_owned));
    }
    names.into_iter().collect()
}

#[test]
#[ignore = "needs llvm-cxxfilt: tests/run.sh runs it"]
#[cfg(target_os = "linux")]
fn judged_by_llvm_cxxfilt_names_of_libraries_are_the_same() {
    let names = mangled_names("/usr/lib/x86_64-linux-gnu", 20_000).join("\n");
    let mut list = tempfile::NamedTempFile::new().expect("a temporary file");
    writeln!(list, "{names}").expect("the names");
    let output = Command::new(crate::judge::llvm_cxxfilt())
        .stdin(list.reopen().expect("the names"))
        .output()
        .expect("llvm-cxxfilt runs");
    let theirs = String::from_utf8(output.stdout).expect("text");
    let pairs: Vec<_> = names.lines().zip(theirs.lines()).collect();
    let differ = |&&(name, shown): &&(&str, &str)| heaptap_model::names::demangle(name) != shown;
    let different: Vec<_> = pairs.iter().filter(differ).take(1_000).collect();
    println!("{} of {} names differ", different.len(), pairs.len());
    assert!(pairs.len() > 5_000, "only {} names", pairs.len());
    assert!(different.len() * 1_000 <= pairs.len(), "{different:#?}");
}
