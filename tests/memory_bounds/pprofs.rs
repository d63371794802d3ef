//! Profiles of any tool.

use super::wire::{bytes, many, number};
use super::{MIB, Shapes};
use heaptap_input::read_pprof;

const SIZE: usize = 8 * MIB;

fn profile(content: &[u8]) -> Vec<u8> {
    let types = bytes(1, &[number(1, 1), number(2, 2)].concat());
    let strings = [&b""[..], b"space", b"bytes"].map(|text| bytes(6, text));
    [&types, &strings.concat()[..], content].concat()
}

#[test]
fn pprofs() {
    let mut all = Shapes::of("a pprof");
    let id = |n: u64| number(1, n + 1);
    let packed = |size: usize| vec![1u8; size];
    let shapes = vec![
        ("empty locations", profile(&many(SIZE, |_| bytes(4, &[])))),
        ("locations", profile(&many(SIZE, |n| bytes(4, &id(n))))),
        (
            "locations with empty lines",
            profile(&many(SIZE, |n| bytes(4, &[id(n), bytes(4, &[])].concat()))),
        ),
        (
            "lines of one location",
            profile(
                &[
                    bytes(2, &number(1, 1)),
                    bytes(4, &[id(0), many(SIZE, |_| bytes(4, &[]))].concat()),
                ]
                .concat(),
            ),
        ),
        ("empty functions", profile(&many(SIZE, |_| bytes(5, &[])))),
        ("functions", profile(&many(SIZE, |n| bytes(5, &id(n))))),
        ("empty mappings", profile(&many(SIZE, |_| bytes(3, &[])))),
        ("mappings", profile(&many(SIZE, |n| bytes(3, &id(n))))),
        ("empty strings", profile(&many(SIZE, |_| bytes(6, &[])))),
        (
            "strings",
            profile(&many(SIZE, |n| bytes(6, &n.to_le_bytes()[..3]))),
        ),
        ("empty samples", profile(&many(SIZE, |_| bytes(2, &[])))),
        (
            "samples",
            profile(&many(SIZE, |_| {
                bytes(2, &[number(1, 1), number(2, 1)].concat())
            })),
        ),
        ("sample types", profile(&many(SIZE, |_| bytes(1, &[])))),
        (
            "samples of many columns",
            [
                many(1000, |_| bytes(1, &number(1, 1))),
                // Each has its own stack, lacks a value for every column, and is long enough that
                // the list of samples alone does not use up the limit.
                profile(&many(SIZE, |n| {
                    let sample = [number(1, n + 1), bytes(15, &[0; 100])].concat();
                    [bytes(4, &id(n)), bytes(2, &sample)].concat()
                })),
            ]
            .concat(),
        ),
        ("comments", profile(&many(SIZE, |_| number(13, 1)))),
        ("packed comments", profile(&bytes(13, &packed(SIZE)))),
        (
            "one stack",
            profile(
                &[
                    many(1000, |n| {
                        bytes(4, &[id(n % 127), number(3, n + 1)].concat())
                    }),
                    bytes(2, &bytes(1, &many(SIZE, |n| vec![(n % 127 + 1) as u8]))),
                ]
                .concat(),
            ),
        ),
        (
            "one stack of locations that are not there",
            profile(&bytes(2, &bytes(1, &packed(SIZE)))),
        ),
        (
            "stacks of one deep location",
            profile(
                &[
                    bytes(4, &[id(0), bytes(4, &number(1, 1)).repeat(1000)].concat()),
                    bytes(5, &[id(0), number(2, 1)].concat()),
                    many(SIZE, |_| bytes(2, &bytes(1, &[1; 100]))),
                ]
                .concat(),
            ),
        ),
        (
            "threads",
            profile(
                &[
                    bytes(6, b"thread"),
                    many(SIZE, |n| {
                        let label = [number(1, 3), number(3, n)].concat();
                        bytes(2, &[number(2, 1), bytes(3, &label)].concat())
                    }),
                ]
                .concat(),
            ),
        ),
        (
            "locations in use",
            profile(
                &[
                    many(SIZE / 2, |n| bytes(4, &[id(n), number(3, n + 1)].concat())),
                    many(SIZE / 2, |n| bytes(2, &number(1, n + 1))),
                ]
                .concat(),
            ),
        ),
        (
            "one long name of many functions",
            profile(
                &[
                    bytes(6, &[b"_ZN", &b"3foo".repeat(10_000)[..], b"E"].concat()),
                    many(MIB, |n| bytes(5, &[id(n), number(2, 3)].concat())),
                    many(MIB, |n| {
                        let line = bytes(4, &number(1, n + 1));
                        bytes(4, &[id(n), line].concat())
                    }),
                    many(MIB, |n| bytes(2, &number(1, n + 1))),
                ]
                .concat(),
            ),
        ),
    ];
    for (shape, file) in shapes {
        all.read(shape, file.len(), || read_pprof(&file));
    }
    all.hold();
}
