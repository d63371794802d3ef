//! Compares symbols with Perfetto's own `symbolize` (llvm-symbolizer 19): the same packets for the
//! same library, the same profiles for the same recording.

use super::{fixtures, pprof};
use crate::judge;
use heaptap::names::frames::LookupControl;
use heaptap::names::options::NameOptions;
use heaptap::recording::conversion::convert::{self, Input, Request};
use heaptap::recording::conversion::packet_output::PacketScope;
use heaptap::recording::conversion::symbolize::{NameKind, symbolize};
use heaptap_results::destination::Destination;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Function, file and line.
type Line = (String, String, u64);

/// Lines by module (path and build ID) and address.
type Modules = BTreeMap<(String, Vec<u8>), BTreeMap<u64, Vec<Line>>>;

/// Symbol sources limited to these places, with a separate cache.
fn names(symbols: &Path, cache: &Path) -> NameOptions {
    NameOptions {
        symbols: vec![symbols.to_owned()],
        discover: false,
        cache: Some(cache.to_owned()),
        ..NameOptions::default()
    }
}

/// The fields of a message: number, value or length, bytes.
fn fields(mut message: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = bytes.split_first().expect("a number");
            *bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return number;
            }
        }
        panic!("a number of more than 64 bits");
    }
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let number = varint(&mut message);
        let mut bytes = &[][..];
        match tag & 7 {
            0 => {}
            2 => (bytes, message) = message.split_at(number as usize),
            other => panic!("wire type {other}"),
        }
        found.push((tag >> 3, number, bytes));
    }
    found
}

/// The symbols in a trace's packets.
fn modules(trace: &[u8]) -> Modules {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let mut modules = Modules::new();
    for (_, _, packet) in fields(trace) {
        for (_, _, module) in fields(packet).into_iter().filter(|f| f.0 == 61) {
            let (mut path, mut build_id) = (String::new(), Vec::new());
            let mut addresses = BTreeMap::new();
            for (number, _, bytes) in fields(module) {
                match number {
                    1 => path = text(bytes),
                    2 => build_id = bytes.to_vec(),
                    _ => {
                        let (mut address, mut lines) = (0, Vec::new());
                        for (number, value, line) in fields(bytes) {
                            if number == 1 {
                                address = value;
                                continue;
                            }
                            let (mut function, mut file, mut at) = Default::default();
                            for (number, value, bytes) in fields(line) {
                                match number {
                                    1 => function = text(bytes),
                                    2 => file = text(bytes),
                                    _ => at = value,
                                }
                            }
                            lines.push((plain(&function), file, at));
                        }
                        addresses.insert(address, lines);
                    }
                }
            }
            modules
                .entry((path, build_id))
                .or_default()
                .extend(addresses);
        }
    }
    modules
}

/// A function without the parts on which demanglers differ. LLVM parses Rust's legacy mangling as
/// C++ and keeps its escapes and hash; this undoes them.
fn plain(function: &str) -> String {
    let name = function.split(" (.llvm.").next().unwrap_or(function);
    let is_hash = |part: &str| {
        part.len() == 17
            && part.starts_with('h')
            && part[1..].bytes().all(|b| b.is_ascii_hexdigit())
    };
    if !name.rsplit("::").next().is_some_and(is_hash) {
        return function.to_owned();
    }
    let parts = name.split("::").map(|part| format!("{}{part}", part.len()));
    let mangled = format!("_ZN{}E", parts.collect::<String>());
    heaptap_model::names::demangle(&mangled).into_owned()
}

fn packets(trace: &Path, symbols: &Path) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary folder");
    let goal = directory.path().join("symbols");
    symbolize(
        &Input::Path(trace.to_owned()),
        PacketScope::Packets,
        Destination::File {
            path: goal.clone(),
            force: false,
        },
        names(symbols, directory.path()),
        NameKind::All,
        LookupControl::default(),
    )
    .expect("a trace");
    std::fs::read(goal).expect("symbols")
}

#[test]
fn packets_say_what_perfettos_say() {
    let symbolize = fixtures().join("../symbolize");
    let ours = packets(&fixtures().join("c_cont.pftrace"), &symbolize);
    let theirs = std::fs::read(symbolize.join("alloc_test.symbols")).expect("a fixture");
    assert_eq!(modules(&ours), modules(&theirs));
}

/// Returns every address named by Perfetto in a recording, for libraries for which `is_there`.
fn assert_packets(trace: &Path, symbols: &Path, theirs: &[u8], is_there: impl Fn(&str) -> bool) {
    let ours = modules(&packets(trace, symbols));
    let mut theirs = modules(theirs);
    theirs.retain(|(path, _), _| is_there(path));
    assert_eq!(
        ours.keys().collect::<Vec<_>>(),
        theirs.keys().collect::<Vec<_>>()
    );
    assert!(!theirs.is_empty(), "{}", trace.display());
    for (module, addresses) in &theirs {
        for (address, lines) in addresses {
            let own = ours[module].get(address);
            assert_eq!(own, Some(lines), "{} {address:#x}", module.0);
        }
    }
}

/// Of the fixture's three programs, the Rust one is too large for the repository.
#[test]
fn a_recording_has_the_packets_of_perfettos_symbolize() {
    let symbolize = fixtures().join("../symbolize");
    let theirs = std::fs::read(symbolize.join("multi_symbolized.pftrace.zst")).expect("a fixture");
    let theirs = zstd::decode_all(&*theirs).expect("zstd");
    let trace = symbolize.join("multi.pftrace");
    assert_packets(&trace, &symbolize, &theirs, |path| {
        !path.ends_with("rustalloc")
    });
}

#[test]
#[ignore = "needs HEAPTAP_RECORDINGS, a folder of recordings and programs"]
fn given_recordings_have_the_packets_of_perfettos_symbolize() {
    let directory = judge::given("HEAPTAP_RECORDINGS");
    let (native, binaries) = (directory.join("native"), directory.join("binaries"));
    for name in ["rust_cont", "multi"] {
        let theirs = std::fs::read(native.join(format!("{name}_symbolized.pftrace")));
        let trace = native.join(format!("{name}.pftrace"));
        assert_packets(&trace, &binaries, &theirs.expect("a recording"), |_| true);
    }
}

/// A stack, leaf first, and its values by sample type.
type Sample = (Vec<Line>, BTreeMap<&'static str, i64>);

fn samples(bytes: &[u8]) -> Vec<Sample> {
    let profile = pprof::read(bytes);
    let text = |id: i64| profile.string_table[id as usize].as_str();
    let functions: BTreeMap<u64, _> = profile.function.iter().map(|f| (f.id, f)).collect();
    let locations: BTreeMap<u64, _> = profile.location.iter().map(|l| (l.id, l)).collect();
    let types = profile
        .sample_type
        .iter()
        .map(|t| pprof::column(text(t.r#type)));
    let types: Vec<&str> = types.collect();
    let mut samples: Vec<Sample> = profile
        .sample
        .iter()
        .map(|sample| {
            let lines = sample.location_id.iter().flat_map(|id| &locations[id].line);
            let stack = lines.map(|line| {
                let function = functions[&line.function_id];
                let file = match text(function.filename) {
                    "??" => "",
                    file => file,
                };
                let name = match text(function.system_name) {
                    // Perfetto did not name it, so the display is not compared.
                    "" => String::new(),
                    _ => plain(text(function.name)),
                };
                (name, file.to_owned(), line.line as u64)
            });
            let values = types.iter().copied().zip(sample.value.iter().copied());
            (stack.collect(), values.collect())
        })
        .collect();
    samples.sort();
    samples
}

/// Returns the profiles of a directory, except those of a process.
fn profiles(directory: &Path, but: &str) -> Vec<Vec<Sample>> {
    let entries = std::fs::read_dir(directory).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_profile = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with(".pb.gz") && (but.is_empty() || !name.contains(but))
    };
    let mut profiles: Vec<_> = paths
        .filter(is_profile)
        .map(|path| samples(&std::fs::read(path).expect("a profile")))
        .filter(|samples| !samples.is_empty())
        .collect();
    profiles.sort();
    profiles
}

/// Compares heaptap's profiles of a recording and its programs with the converter's.
fn assert_profiles(trace: &Path, symbols: &Path, theirs: &Path, but: &str) {
    let output = tempfile::tempdir().expect("a temporary folder");
    let cache = tempfile::tempdir().expect("a temporary folder");
    let names = names(symbols, cache.path());
    let request = Request::new(Input::Path(trace.to_owned()), output.path(), names);
    convert::convert(&request).expect("a trace");
    let ours = profiles(output.path(), but);
    let theirs = profiles(theirs, but);
    assert!(
        ours.iter().any(|profile| profile.len() > 3),
        "{}",
        trace.display()
    );
    assert_eq!(ours.len(), theirs.len(), "{}", trace.display());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "{}", trace.display());
    }
}

/// The fixture's processes without the Rust one, whose program is too large for the repository.
#[test]
fn a_recording_that_we_symbolize_gives_the_profiles_of_one_that_perfetto_did() {
    let symbolize = fixtures().join("../symbolize");
    let trace = symbolize.join("multi.pftrace");
    assert_profiles(
        &trace,
        &symbolize,
        &symbolize.join("multi_symbolized"),
        ".18070.",
    );
}

#[test]
#[ignore = "needs HEAPTAP_RECORDINGS, a folder of recordings and programs"]
fn given_recordings_that_we_symbolize_give_the_profiles_of_those_that_perfetto_did() {
    let directory = judge::given("HEAPTAP_RECORDINGS");
    let (native, binaries) = (directory.join("native"), directory.join("binaries"));
    for name in ["rust_cont", "multi"] {
        let theirs = native.join(format!("{name}_symbolized"));
        assert_profiles(
            &native.join(format!("{name}.pftrace")),
            &binaries,
            &theirs,
            "",
        );
    }
}
