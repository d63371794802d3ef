//! Traces of Perfetto.

use super::wire::{bytes, many, number, varint};
use super::{MIB, Shapes};
use heaptap::heaps::input::{self, DumpScope, LookOptions, NativeFile};
use heaptap::heaps::java::ProgressReporter;
use heaptap::names::options::NameOptions;
use heaptap::names::r8_mappings::R8Mappings;
use heaptap_export::pprof::{Pprof, PprofOptions};
use perfetto_heap::{MemoryWanted, Surveyed, Trace, TraceError};
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

const SIZE: usize = 4 * MIB;

/// `TracePacket` on sequence 1.
fn packet(payloads: &[Vec<u8>]) -> Vec<u8> {
    bytes(1, &[payloads.concat(), number(10, 1)].concat())
}

fn interned(content: &[u8]) -> Vec<u8> {
    packet(&[bytes(12, content)])
}

/// A packet with its own time and number, which ends a chain, with these dumps.
fn profile(at: u64, dumps: &[u8]) -> Vec<u8> {
    packet(&[
        number(8, at),
        bytes(37, &[dumps, &number(7, at)[..]].concat()),
    ])
}

fn sample(callstack: u64) -> Vec<u8> {
    let figures = [number(1, callstack), number(2, 100), number(5, 1)];
    bytes(2, &figures.concat())
}

/// Reads everything in a trace, as `convert` does.
fn read(file: &Arc<[u8]>) -> Trace {
    let mut surveyed = Surveyed::read(Box::new(Cursor::new(Arc::clone(file)))).expect("memory");
    let maps = R8Mappings::open_what_opens(&NameOptions::default());
    let mut renamed = maps.name(&mut surveyed).expect("names");
    let mut trace = surveyed.seal();
    let recording = Arc::clone(trace.recording());
    let pprof = Pprof::new(Arc::clone(&recording), PprofOptions::default());
    trace
        .read_dumps(|dump| -> Result<(), TraceError> {
            drop(pprof.encode(&dump, &[]));
            Ok(())
        })
        .expect("memory");
    drop(pprof);
    let wanted = MemoryWanted::default();
    drop(trace.memory(&wanted).expect("memory"));
    drop(trace.counters(&wanted).expect("memory"));
    for at in 0..trace.java_dumps().len() {
        let mut graph = trace.read_java_dump(at).expect("memory");
        renamed.heaps.name(&mut graph, &recording);
        super::tables_of(&graph);
        // Larger than any heap of ART, it is refused.
        let _ = android_hprof::write(&graph, 0, &mut std::io::sink());
    }
    for at in 0..trace.smaps().len() {
        drop(trace.read_smaps(at).expect("memory"));
    }
    trace
}

fn hold(mut all: Shapes, shapes: Vec<(&'static str, Vec<u8>)>) {
    for (shape, file) in shapes {
        both(&mut all, shape, file);
    }
    all.hold();
}

fn both(all: &mut Shapes, shape: &str, file: Vec<u8>) {
    let directory = tempfile::tempdir().expect("a folder");
    let path = directory.path().join("raw-trace");
    std::fs::write(&path, &file).expect("a file");
    all.read(&format!("{shape}, looked at"), file.len(), || look(&path));
    let file: Arc<[u8]> = file.into();
    all.read(shape, file.len(), || read(&file));
}

/// The last dumps of a file, as kept by `top`.
fn look(path: &Path) -> Option<NativeFile> {
    input::native(
        path,
        &DumpScope::Default,
        &LookOptions::default(),
        &ProgressReporter::default(),
    )
    .ok()
}

#[test]
fn packets_that_hold_little() {
    let all = Shapes::of("a trace");
    let of = |content: &[u8]| many(SIZE, |_| packet(&[content.to_vec()]));
    let shapes = vec![
        ("empty packets", many(SIZE, |_| vec![0x0a, 0])),
        ("packets of a sequence alone", of(&[])),
        (
            "cleared states",
            of(&[number(41, 1), bytes(12, &[])].concat()),
        ),
        (
            "sequences",
            many(SIZE, |n| {
                let empty = [number(10, n + 1), bytes(12, &[])];
                bytes(1, &empty.concat())
            }),
        ),
        (
            "empty payloads of one packet",
            packet(&[many(SIZE, |_| bytes(12, &[]))]),
        ),
        (
            "small payloads of one packet",
            packet(&[many(SIZE, |_| bytes(9, &[0x38, 0]))]),
        ),
        (
            "clocks",
            of(&bytes(6, &bytes(1, &[number(1, 6), number(2, 9)].concat()))),
        ),
        (
            "clocks of one packet",
            packet(&[many(SIZE, |_| bytes(6, &bytes(1, &number(2, 9))))]),
        ),
        (
            "clocks of one snapshot",
            packet(&[bytes(6, &many(SIZE, |_| bytes(1, &number(2, 9))))]),
        ),
    ];
    hold(all, shapes);
}

#[test]
fn interned_data() {
    let all = Shapes::of("a trace");
    let id = |n: u64| number(1, n + 1);
    let shapes = vec![
        ("empty strings", interned(&many(SIZE, |n| bytes(5, &id(n))))),
        (
            "strings",
            interned(&many(SIZE, |n| {
                bytes(5, &[id(n), bytes(2, &n.to_le_bytes()[..4])].concat())
            })),
        ),
        (
            "strings of scattered ids",
            interned(&many(SIZE, |n| {
                bytes(5, &id(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            })),
        ),
        (
            "mappings",
            interned(&many(SIZE, |n| bytes(19, &[id(n), number(4, n)].concat()))),
        ),
        (
            "mappings with long paths",
            interned(
                &[
                    bytes(17, &[id(0), bytes(2, &[b'a'; 4000])].concat()),
                    many(MIB, |n| {
                        bytes(
                            19,
                            &[id(n), number(4, n), number(7, 1).repeat(100)].concat(),
                        )
                    }),
                ]
                .concat(),
            ),
        ),
        (
            "mappings of unknown paths",
            interned(&many(SIZE, |n| bytes(19, &[id(n), number(7, 99)].concat()))),
        ),
        (
            "frames",
            interned(&many(SIZE, |n| bytes(6, &[id(n), number(4, n)].concat()))),
        ),
        (
            "frames of unknown mappings",
            interned(&many(SIZE, |n| bytes(6, &[id(n), number(3, 1)].concat()))),
        ),
        (
            "empty callstacks",
            interned(&many(SIZE, |n| bytes(7, &id(n)))),
        ),
        (
            "callstacks of unknown frames",
            interned(&many(SIZE, |n| bytes(7, &[id(n), number(2, 9)].concat()))),
        ),
        (
            "tables of Android 10",
            packet(&[bytes(
                37,
                &many(SIZE, |n| bytes(2, &[id(n), number(4, n)].concat())),
            )]),
        ),
        (
            "packets with tables of Android 10",
            many(SIZE, |_| packet(&[bytes(37, &bytes(2, &number(1, 1)))])),
        ),
    ];
    hold(all, shapes);
}

/// Frames 1 to 127, and one callstack for each of `stacks`, as packed or single frames, with a dump
/// that has a sample of each.
fn stacks(stacks: &[Vec<u8>]) -> Vec<u8> {
    let frames: Vec<u8> = (1..128)
        .flat_map(|n| bytes(6, &[number(1, n), number(4, n)].concat()))
        .collect();
    let of = |(n, frames): (u64, &Vec<u8>)| bytes(7, &[&number(1, n)[..], frames].concat());
    let callstacks: Vec<u8> = (1..).zip(stacks).flat_map(of).collect();
    let samples: Vec<u8> = (1..=stacks.len() as u64).flat_map(sample).collect();
    [
        interned(&[frames, callstacks].concat()),
        profile(0, &bytes(5, &[number(1, 7), samples].concat())),
    ]
    .concat()
}

fn pseudo(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

#[test]
fn callstacks() {
    let all = Shapes::of("a trace");
    let packed = |size: usize, seed: u64| {
        let ids = (0..size as u64).map(|n| (pseudo(n + seed) % 127 + 1) as u8);
        bytes(2, &ids.collect::<Vec<_>>())
    };
    let shapes = vec![
        ("one callstack", stacks(&[packed(SIZE, 0)])),
        (
            "one callstack of single frames",
            stacks(&[many(SIZE, |n| number(2, n % 127 + 1))]),
        ),
        (
            "one callstack of unknown frames",
            stacks(&[bytes(2, &vec![0; SIZE])]),
        ),
        (
            "deep callstacks",
            stacks(
                &(0..128)
                    .map(|n| packed(SIZE / 128, n * 99991))
                    .collect::<Vec<_>>(),
            ),
        ),
        (
            "callstacks as deep as heapprofd's",
            stacks(
                &(0..8192)
                    .map(|n| packed(SIZE / 8192, n * 99991))
                    .collect::<Vec<_>>(),
            ),
        ),
        (
            "short callstacks",
            stacks(
                &(0..400_000)
                    .map(|n| packed(3, n * 99991))
                    .collect::<Vec<_>>(),
            ),
        ),
    ];
    hold(all, shapes);
}

#[test]
fn dumps() {
    let mut all = Shapes::of("a trace");
    let header = |n: u64| [number(1, n % 1000), number(9, n), bytes(11, b"h")].concat();
    let many_callstacks = |more: &[u8]| {
        let shared = stacks(
            &(0..2000)
                .map(|n| number(2, n % 127 + 1))
                .collect::<Vec<_>>(),
        );
        [&shared[..], more].concat()
    };
    // Each part has one sample, far from the other samples of its process.
    let scattered = {
        let callstacks: Vec<_> = (0..64_000).map(|n| number(2, n % 127 + 1)).collect();
        let part = |n: u64| {
            let (page, pid) = (n / 1000, n % 1000 + 1);
            bytes(5, &[number(1, pid), sample(64 * page + 1)].concat())
        };
        let parts: Vec<u8> = (0..600_000).flat_map(part).collect();
        [stacks(&callstacks), profile(1, &parts)].concat()
    };
    let shapes = vec![
        ("parts of one chain that scatter", scattered),
        (
            "empty dumps of one packet",
            profile(0, &many(4 * MIB, |_| bytes(5, &[]))),
        ),
        ("empty dumps", many(4 * MIB, |n| profile(n, &bytes(5, &[])))),
        ("packets without dumps", many(4 * MIB, |n| profile(n, &[]))),
        (
            "empty profiles of one packet",
            packet(&[many(4 * MIB, |_| bytes(37, &[]))]),
        ),
        (
            "dumps of many times",
            many(4 * MIB, |n| profile(n, &bytes(5, &number(9, n + 1)))),
        ),
        (
            "dumps of many times in one packet",
            profile(0, &many(4 * MIB, |n| bytes(5, &number(9, n + 1)))),
        ),
        (
            "dumps of many processes",
            many(4 * MIB, |n| profile(n, &bytes(5, &number(1, n + 1)))),
        ),
        (
            "dumps of many processes in one packet",
            profile(0, &many(4 * MIB, |n| bytes(5, &number(1, n + 1)))),
        ),
        (
            "dumps of many heaps",
            many(4 * MIB, |n| {
                profile(n, &bytes(5, &bytes(11, &n.to_le_bytes()[..3])))
            }),
        ),
        (
            "dumps",
            many(4 * MIB, |n| profile(n, &bytes(5, &header(n)))),
        ),
        (
            "dumps with a sample",
            many(4 * MIB, |n| {
                profile(n, &bytes(5, &[header(n), sample(1)].concat()))
            }),
        ),
        (
            "samples of unknown callstacks",
            profile(0, &bytes(5, &many(4 * MIB, sample))),
        ),
        (
            "samples of one callstack in many processes",
            profile(
                0,
                &many(4 * MIB, |n| bytes(5, &[number(1, n), sample(1)].concat())),
            ),
        ),
        (
            "dumps behind one of many callstacks",
            many_callstacks(&many(MIB, |n| {
                profile(n + 1, &bytes(5, &[number(1, 7), number(9, n + 1)].concat()))
            })),
        ),
    ];
    for (shape, file) in shapes {
        both(&mut all, shape, file);
    }
    all.hold();
}

fn heap_graph(content: &[u8]) -> Vec<u8> {
    packet(&[bytes(56, content)])
}

#[test]
fn java_heaps() {
    let all = Shapes::of("a Java heap");
    let object = |n: u64| bytes(2, &[number(7, 1), number(2, n % 100 + 1)].concat());
    let packed_ids = |size: usize, step: u64| {
        let mut ids = Vec::new();
        for n in 0.. {
            if ids.len() >= size {
                break;
            }
            varint(n * step + 1, &mut ids);
        }
        ids
    };
    let shapes = vec![
        ("processes", many(SIZE, |n| heap_graph(&number(1, n + 1)))),
        (
            "processes at many times",
            many(SIZE, |n| {
                packet(&[number(8, n), bytes(56, &number(1, n + 1))])
            }),
        ),
        (
            "empty packets of one dump",
            many(SIZE, |n| heap_graph(&[number(5, 1), number(6, n)].concat())),
        ),
        (
            "graphs of one packet",
            packet(&[many(20_000, |n| {
                bytes(56, &[number(5, 1), number(6, n), object(n)].concat())
            })]),
        ),
        ("empty objects", heap_graph(&many(SIZE, |_| vec![0x12, 0]))),
        ("objects", heap_graph(&many(SIZE, object))),
        (
            "empty objects with ids",
            heap_graph(&many(2 * SIZE, |n| bytes(2, &number(1, n + 1)))),
        ),
        (
            "objects of scattered ids",
            heap_graph(&many(SIZE, |n| bytes(2, &number(1, pseudo(n) << 4)))),
        ),
        (
            "objects of many types",
            heap_graph(&many(SIZE, |n| {
                bytes(2, &[number(7, 1), number(2, n + 1)].concat())
            })),
        ),
        (
            "objects that name their fields",
            heap_graph(&many(SIZE, |n| {
                let mut field = Vec::new();
                varint(n + 1, &mut field);
                let names = [number(7, 1), bytes(4, &field), bytes(5, &[1])];
                bytes(2, &names.concat())
            })),
        ),
        (
            "objects with sizes of registries",
            heap_graph(&many(SIZE, |_| {
                bytes(2, &[number(7, 1), number(8, 2)].concat())
            })),
        ),
        (
            "references of one object",
            heap_graph(&bytes(
                2,
                &[number(1, 1), bytes(5, &vec![1; SIZE])].concat(),
            )),
        ),
        (
            "single references of one object",
            heap_graph(&bytes(
                2,
                &[number(1, 1), many(SIZE, |_| number(5, 1))].concat(),
            )),
        ),
        (
            "references to objects that are not there",
            heap_graph(&bytes(
                2,
                &[number(1, 1), bytes(5, &packed_ids(SIZE, 8))].concat(),
            )),
        ),
        (
            "roots",
            heap_graph(&bytes(7, &bytes(1, &packed_ids(SIZE, 8)))),
        ),
        ("empty types", heap_graph(&many(SIZE, |_| bytes(9, &[])))),
        (
            "types",
            heap_graph(&many(SIZE, |n| bytes(9, &number(1, n + 1)))),
        ),
        (
            "types with names",
            heap_graph(&many(SIZE, |n| {
                bytes(9, &[number(1, n + 1), bytes(3, b"a")].concat())
            })),
        ),
        (
            "a large type for each object",
            heap_graph(&many(MIB, |n| {
                let size = number(4, 60_000);
                let class = bytes(9, &[number(1, n + 1), bytes(3, b"a"), size].concat());
                let object = [number(1, (n + 1) << 3), number(2, n + 1), number(3, 60_000)];
                [class, bytes(2, &object.concat())].concat()
            })),
        ),
        (
            "arrays of a gigabyte",
            heap_graph(
                &[
                    bytes(
                        9,
                        &[number(1, 1), bytes(3, b"int[]"), number(7, 3)].concat(),
                    ),
                    bytes(
                        2,
                        &[number(1, 8), number(2, 1), number(3, 1 << 30)].concat(),
                    ),
                    bytes(
                        2,
                        &[number(1, 16), number(2, 1), number(3, 1 << 30)].concat(),
                    ),
                ]
                .concat(),
            ),
        ),
        (
            "types of one long location",
            heap_graph(
                &[
                    bytes(8, &[number(1, 1), bytes(2, &[b'l'; 4000])].concat()),
                    many(MIB, |n| {
                        bytes(9, &[number(1, n + 1), number(2, 1)].concat())
                    }),
                ]
                .concat(),
            ),
        ),
        (
            "fields of one type",
            heap_graph(
                &[
                    bytes(4, &[number(1, 1), bytes(2, b"int a.b.c")].concat()),
                    bytes(9, &[number(1, 1), bytes(6, &vec![1; SIZE])].concat()),
                ]
                .concat(),
            ),
        ),
        (
            "field names",
            heap_graph(&many(SIZE, |n| bytes(4, &number(1, n + 1)))),
        ),
        (
            "empty field names",
            heap_graph(&many(SIZE, |_| bytes(4, &[]))),
        ),
        (
            "locations",
            heap_graph(&many(SIZE, |n| bytes(8, &number(1, n + 1)))),
        ),
        (
            "processes that ran out of memory",
            many(SIZE, |n| {
                packet(&[bytes(131, &[number(1, n), number(5, 1)].concat())])
            }),
        ),
        (
            "frames of one that ran out of memory",
            packet(&[bytes(
                131,
                &[number(5, 1), bytes(8, &many(SIZE, |_| bytes(1, &[])))].concat(),
            )]),
        ),
    ];
    hold(all, shapes);
}

#[test]
fn what_stands_beside_heaps() {
    let all = Shapes::of("a trace");
    let shapes = vec![
        (
            "processes",
            packet(&[bytes(
                2,
                &many(SIZE, |n| bytes(1, &[number(1, n), bytes(3, &[])].concat())),
            )]),
        ),
        (
            "words of one command",
            packet(&[bytes(2, &bytes(1, &many(SIZE, |_| bytes(3, &[]))))]),
        ),
        (
            "packages",
            packet(&[bytes(47, &many(SIZE, |_| bytes(1, &[])))]),
        ),
        (
            "packages by processes",
            many(SIZE, |n| {
                let name = bytes(4, &n.to_string().into_bytes());
                packet(&[bytes(131, &name)])
            }),
        ),
        (
            "data sources of the config",
            packet(&[bytes(33, &many(SIZE, |_| bytes(2, &bytes(1, &[]))))]),
        ),
        (
            "processes of the config",
            packet(&[bytes(
                33,
                &bytes(
                    2,
                    &bytes(
                        1,
                        &[
                            bytes(1, b"android.heapprofd"),
                            bytes(105, &many(SIZE, |_| bytes(2, &[]))),
                        ]
                        .concat(),
                    ),
                ),
            )]),
        ),
        (
            "counters of the service",
            packet(&[bytes(35, &bytes(1, &many(SIZE, |_| number(2, 1))))]),
        ),
        (
            "addresses of one module",
            packet(&[bytes(
                61,
                &many(SIZE, |n| bytes(3, &[number(1, n), bytes(2, &[])].concat())),
            )]),
        ),
        (
            "lines of modules",
            packet(&[bytes(
                61,
                &many(SIZE, |_| bytes(3, &bytes(2, &[]).repeat(200))),
            )]),
        ),
        (
            "modules",
            many(SIZE, |n| {
                packet(&[bytes(61, &bytes(2, &n.to_le_bytes()[..3]))])
            }),
        ),
        (
            "classes of a map",
            packet(&[bytes(64, &many(SIZE, |_| bytes(3, &[])))]),
        ),
        (
            "members of a map",
            packet(&[bytes(64, &bytes(3, &many(SIZE, |_| bytes(4, &[]))))]),
        ),
        (
            "maps of packages",
            many(SIZE, |n| {
                packet(&[bytes(64, &bytes(1, &n.to_le_bytes()[..3]))])
            }),
        ),
        (
            "mappings of processes",
            packet(&[many(20_000, |n| bytes(68, &number(1, n)))]),
        ),
        (
            "packets of mappings",
            many(SIZE, |n| packet(&[bytes(68, &number(1, n))])),
        ),
        (
            "mappings of one process",
            packet(&[bytes(68, &many(SIZE, |_| bytes(2, &[])))]),
        ),
        (
            "figures of processes",
            many(SIZE, |n| {
                let figures = bytes(1, &[number(1, n), number(3, n)].concat());
                packet(&[number(8, n), bytes(9, &figures)])
            }),
        ),
        (
            "figures of processes in one packet",
            packet(&[
                number(8, 5),
                bytes(
                    9,
                    &many(SIZE, |n| bytes(1, &[number(1, n), number(3, n)].concat())),
                ),
            ]),
        ),
        (
            "figures of the phone",
            packet(&[
                number(8, 5),
                bytes(
                    7,
                    &many(SIZE, |_| bytes(1, &[number(1, 1), number(2, 1)].concat())),
                ),
            ]),
        ),
        (
            "events of the kernel",
            packet(&[bytes(
                1,
                &[
                    number(1, 1),
                    many(SIZE, |n| {
                        let text = bytes(2, b"B|9|a\n");
                        bytes(2, &[number(1, n), number(2, n), bytes(3, &text)].concat())
                    }),
                ]
                .concat(),
            )]),
        ),
        (
            "begins of collections",
            packet(&[bytes(
                1,
                &[
                    number(1, 1),
                    many(SIZE, |n| {
                        let text = bytes(2, format!("B|{n}|A b GC\n").as_bytes());
                        bytes(2, &[number(1, n), number(2, n), bytes(3, &text)].concat())
                    }),
                ]
                .concat(),
            )]),
        ),
    ];
    hold(all, shapes);
}
