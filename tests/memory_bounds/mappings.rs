//! Mapping files of R8.

use super::wire::many;
use super::{MIB, Shapes};
use heaptap_base::bytes::Bytes;
use heaptap_symbols::deobfuscate::{MapFile, Retracer};
use std::convert::Infallible;
use std::path::Path;

const SIZE: usize = 8 * MIB;

#[test]
fn mapping_files() {
    let mut all = Shapes::of("a mapping file");
    let line = |text: String| text.into_bytes();
    let with_class = |rest: &[u8]| [b"x.A -> a:\n", rest].concat();
    let shapes = vec![
        ("empty lines", with_class(&b"\n".repeat(SIZE))),
        ("bad lines", with_class(&b"?\n".repeat(SIZE / 2))),
        ("comments", with_class(&b"#\n".repeat(SIZE / 2))),
        ("classes", many(SIZE, |n| line(format!("x->{n:x}:\n")))),
        ("one class again and again", b"x->a:\n".repeat(SIZE / 6)),
        (
            "fields of one class",
            with_class(&many(SIZE, |n| line(format!(" I x->{n:x}\n")))),
        ),
        (
            "methods of one class",
            with_class(&many(SIZE, |_| line(" I x()->a\n".to_owned()))),
        ),
        (
            "methods with lines",
            with_class(&many(SIZE, |n| line(format!(" {n}:{n}:I x()->a\n")))),
        ),
        (
            "inlined methods",
            with_class(&many(SIZE, |_| line(" 1:1:I x():1:1->a\n".to_owned()))),
        ),
        (
            "a method with many parameters",
            with_class(&line(format!(" I x({}I)->a\n", "I,".repeat(SIZE / 2)))),
        ),
        ("one long line", with_class(&b"x".repeat(SIZE))),
        (
            "one long class",
            [&b"x".repeat(SIZE)[..], b" -> a:\n"].concat(),
        ),
        (
            "versions",
            with_class(&b"# {\"id\":\"com.android.tools.r8.mapping\",\"version\":\"2.0\"}\n".repeat(SIZE / 64)),
        ),
        (
            "a deep remark",
            with_class(&[&b"# "[..], &b"{\"a\":".repeat(SIZE / 5), b"\n"].concat()),
        ),
        (
            "a wide remark",
            with_class(&[&b"# {\"id\":["[..], &b"0,".repeat(SIZE / 2), b"0]}\n"].concat()),
        ),
        (
            "an array in metadata",
            with_class(
                &[
                    &b" 1:1:I x():1:1->a\n# {\"id\":\"com.android.tools.r8.rewriteFrame\",\"conditions\":["[..],
                    &b"\"\",".repeat(SIZE / 3),
                    b"\"\"],\"actions\":[]}\n",
                ]
                .concat(),
            ),
        ),
    ];
    for (shape, file) in shapes {
        let size = file.len();
        let file = Bytes::from(file);
        all.read(shape, size, || {
            let map = MapFile::from_bytes(file.clone(), Path::new("mapping.txt"));
            let map = map.expect("it has a class");
            let retracer = Retracer::new(&map);
            drop(retracer.frame("a", "a", Some(1), None));
            drop(retracer.type_name("a[]"));
            let Ok(()) = map.entries(|_| Ok::<_, Infallible>(()));
            drop(retracer);
            map
        });
    }
    all.hold();
}
