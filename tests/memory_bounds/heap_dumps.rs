//! HPROFs.

use super::wire::many;
use super::{MIB, Shapes};
use android_hprof::{Options, histogram, read};
use heaptap_base::bytes::Bytes;

const SIZE: usize = 8 * MIB;

/// Numbers of four bytes, as ids are here.
fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
}

fn record(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &words(&[0, body.len() as u32]), body].concat()
}

fn dump(records: &[Vec<u8>]) -> Vec<u8> {
    let header = [&b"JAVA PROFILE 1.0.3\0"[..], &words(&[4, 0, 0])].concat();
    [&header, &records.concat()[..]].concat()
}

fn segment(content: &[u8]) -> Vec<u8> {
    dump(&[
        record(0x01, &[&words(&[1])[..], b"a.Name"].concat()),
        record(0x02, &words(&[1, 0x100, 0, 1])),
        record(0x1c, content),
    ])
}

/// A class with fields and statics, each with a name and a type.
fn class(id: u32, statics: &[u8], fields: &[u8]) -> Vec<u8> {
    let mut class = vec![0x20];
    class.extend(words(&[id, 0, 0, 0, 0, 0, 0, 0, 16]));
    class.extend([0, 0]);
    class.extend((statics.len() as u16).to_be_bytes());
    for &basic in statics {
        class.extend([0, 0, 0, 1, basic]);
        class.extend(vec![0; if basic == 2 { 4 } else { 1 }]);
    }
    class.extend((fields.len() as u16).to_be_bytes());
    fields
        .iter()
        .for_each(|&basic| class.extend([0, 0, 0, 1, basic]));
    class
}

fn id(n: u64) -> u32 {
    (n as u32 + 1) * 8
}

#[test]
fn heap_dumps() {
    let mut all = Shapes::of("an HPROF");
    let tagged = |tag: u8, numbers: &[u32]| [&[tag][..], &words(numbers)].concat();
    let chain = |n: u64| tagged(0x21, &[id(n), 0, 0x100, 4, id(n + 1)]);
    let shapes = vec![
        (
            "strings",
            dump(&[many(SIZE, |n| record(1, &words(&[n as u32])))]),
        ),
        (
            "loaded classes",
            dump(&[many(SIZE, |n| record(2, &words(&[n as u32, id(n), 0, 1])))]),
        ),
        (
            "frames",
            dump(&[many(SIZE, |n| {
                record(4, &words(&[n as u32, 1, 1, 1, 1, 1]))
            })]),
        ),
        (
            "stacks",
            dump(&[many(SIZE, |n| record(5, &words(&[n as u32, 1, 0])))]),
        ),
        (
            "threads",
            dump(&[many(SIZE, |n| {
                record(10, &words(&[n as u32, 1, 1, 1, 1, 1]))
            })]),
        ),
        (
            "segments",
            dump(&[many(SIZE, |n| record(0x1c, &tagged(0xff, &[id(n)])))]),
        ),
        ("empty segments", dump(&[many(SIZE, |_| record(0x1c, &[]))])),
        (
            "unknown records",
            dump(&[many(SIZE, |_| record(0x77, &[]))]),
        ),
        ("roots", segment(&many(SIZE, |n| tagged(0xff, &[id(n)])))),
        (
            "threads among the roots",
            segment(&many(SIZE, |n| tagged(8, &[id(n), n as u32, 1]))),
        ),
        (
            "heaps",
            segment(&many(SIZE, |n| tagged(0xfe, &[n as u32 % 90, 1]))),
        ),
        (
            "empty arrays",
            segment(&many(SIZE, |n| {
                let mut array = tagged(0x23, &[id(n), 0, 0]);
                array.push(8);
                array
            })),
        ),
        (
            "one array again and again",
            segment(&many(SIZE, |_| {
                let mut array = tagged(0x23, &[8, 0, 0]);
                array.push(8);
                array
            })),
        ),
        (
            "empty arrays of objects",
            segment(&many(SIZE, |n| tagged(0x22, &[id(n), 0, 0, 0x100]))),
        ),
        (
            "one array of references",
            segment(
                &[
                    tagged(0x22, &[8, 0, SIZE as u32 / 4, 0x100]),
                    words(&vec![8; SIZE / 4]),
                ]
                .concat(),
            ),
        ),
        (
            "instances",
            segment(&many(SIZE, |n| tagged(0x21, &[id(n), 0, 0x100, 0]))),
        ),
        (
            "instances of scattered ids",
            segment(&many(SIZE, |n| {
                let id = (n as u32).wrapping_mul(0x9e37_79b9) & !7;
                tagged(0x21, &[id, 0, 0x100, 0])
            })),
        ),
        (
            "a chain of instances",
            segment(&[class(0x100, &[], &[2]), many(SIZE, chain)].concat()),
        ),
        (
            "instances of classes that are not there",
            segment(&many(SIZE, |n| tagged(0x21, &[id(n), 0, id(n) + 4, 0]))),
        ),
        ("classes", segment(&many(SIZE, |n| class(id(n), &[], &[])))),
        (
            "classes that each extend the next",
            segment(&many(SIZE / 2, |n| {
                let mut class = class(id(n), &[], &[]);
                class[9..13].copy_from_slice(&words(&[id(n) + 8]));
                class
            })),
        ),
        (
            "classes with fields",
            segment(&many(SIZE, |n| class(id(n), &[], &[8; 500]))),
        ),
        (
            "classes with statics",
            segment(&many(SIZE, |n| class(id(n), &[8; 500], &[]))),
        ),
        (
            "one class with many names",
            dump(&[
                record(1, &[&words(&[1])[..], &b"a.".repeat(20_000)].concat()),
                record(0x1c, &many(SIZE, |n| class(id(n), &[2; 10], &[2; 10]))),
                many(MIB, |n| record(2, &words(&[n as u32, id(n), 0, 1]))),
            ]),
        ),
        (
            "loaded classes of one long name",
            dump(&[
                record(1, &[&words(&[1])[..], &b"[".repeat(20_000)].concat()),
                many(MIB, |n| record(2, &words(&[n as u32, id(n), 0, 1]))),
                record(0x1c, &many(MIB, |n| class(id(n), &[], &[]))),
            ]),
        ),
        (
            "overheads of classes",
            dump(&[
                record(1, &[&words(&[1])[..], b"$classOverhead"].concat()),
                record(
                    0x1c,
                    &many(SIZE, |n| {
                        let mut array = tagged(0x23, &[id(n) + 1, 0, 0]);
                        array.push(8);
                        [class(id(n), &[2], &[]), array].concat()
                    }),
                ),
            ]),
        ),
    ];
    for (shape, file) in shapes {
        let size = file.len();
        let file = Bytes::from(file);
        all.read(shape, size, || {
            let heap = read(file.clone(), &Options::default());
            if let Ok(heap) = &heap {
                super::tables_of(heap);
            }
            heap
        });
        all.read(shape, size, || histogram(&file, &Options::default()));
    }
    all.hold();
}
