//! Archives and compression of inputs. The bytes read are those of the archive: its contents go to
//! files, or have their own bound.

use super::wire::many;
use super::{MIB, Shapes};
use heaptap_base::bytes::Bytes;
use heaptap_input::{TextInput, open, open_hprofs};
use heaptap_symbols::symbolize::find::libraries_in;
use std::io::{Cursor, Read, Write as _, repeat};

fn gzip(mut stream: impl Read) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::copy(&mut stream, &mut out).expect("memory");
    out.finish().expect("memory")
}

fn zstd_of(mut stream: impl Read) -> Vec<u8> {
    let mut out = zstd::stream::Encoder::new(Vec::new(), 1).expect("memory");
    std::io::copy(&mut stream, &mut out).expect("memory");
    out.finish().expect("memory")
}

fn header(kind: u8, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::new(kind));
    header.set_size(size);
    header.set_path("name").expect("a short name");
    header.set_cksum();
    header
}

/// A TAR whose first entry has the given kind and size, followed by a small file.
fn tar_with(kind: u8, size: u64, content: u8) -> impl Read {
    let first = Cursor::new(header(kind, size).as_bytes().to_vec());
    let last = [header(b'0', 0).as_bytes().to_vec(), vec![0; 1024]].concat();
    first
        .chain(repeat(content).take(size))
        .chain(Cursor::new(last))
}

/// An xz that declares a dictionary of some size, and ends after its first bytes.
fn xz(dictionary: u8) -> Vec<u8> {
    let with_sum = |part: &[u8]| {
        let mut sum = flate2::Crc::new();
        sum.update(part);
        [part, &sum.sum().to_le_bytes()].concat()
    };
    let block = [2, 0, 0x21, 1, dictionary, 0, 0, 0];
    let stored = [&[1, 0xff, 0xff][..], &[b'a'; 0x1_0000]].concat();
    let header = [&b"\xfd7zXZ\0"[..], &with_sum(&[0, 1])].concat();
    [header, with_sum(&block), stored].concat()
}

pub(super) fn zip_of(members: u64, name: impl Fn(u64) -> String, content: &[u8]) -> Vec<u8> {
    let mut out = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for n in 0..members {
        out.start_file(name(n), options).expect("memory");
        out.write_all(content).expect("memory");
    }
    out.finish().expect("memory").into_inner()
}

/// A trace of that many bytes; each of its packets contains zeros.
fn trace(size: usize) -> Vec<u8> {
    let packet = [&[0x0a, 0x66, 0x50, 1, 0x7a, 98][..], &[0; 98]].concat();
    packet.repeat(size / packet.len())
}

#[test]
fn archives() {
    let mut all = Shapes::of("an archive");
    const LONG: u64 = 100 << 20;
    let traces = |n: u64, size: usize| zip_of(n, |n| format!("{n}.pftrace"), &trace(size));
    let shapes = vec![
        ("a long name in a TAR", gzip(tar_with(b'L', LONG, b'a'))),
        ("a long link in a TAR", gzip(tar_with(b'K', LONG, b'a'))),
        (
            "a long extension of a TAR",
            gzip(tar_with(b'x', LONG, b'a')),
        ),
        (
            "a long global extension of a TAR",
            gzip(tar_with(b'g', LONG, b'a')),
        ),
        (
            "a long name in a TAR in zstd",
            zstd_of(tar_with(b'L', LONG, b'a')),
        ),
        ("a large file in a TAR", gzip(tar_with(b'0', LONG, b'a'))),
        (
            "many names in a TAR",
            gzip(Cursor::new(many(16 * MIB, |_| {
                header(b'0', 0).as_bytes().to_vec()
            }))),
        ),
        (
            "many sparse parts in a TAR",
            gzip(Cursor::new({
                let mut first = header(b'S', 0).as_bytes().to_vec();
                // The GNU header announces a block with more parts.
                first[482] = 1;
                let sum: u32 = first
                    .iter()
                    .enumerate()
                    .map(|(at, &byte)| match at {
                        148..156 => 32,
                        _ => u32::from(byte),
                    })
                    .sum();
                first[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
                let mut more = vec![0; 512];
                for part in more[..504].chunks_exact_mut(24) {
                    part.copy_from_slice(b"00000000000\x0000000000000\0");
                }
                more[504] = 1;
                [first, more.repeat(300_000)].concat()
            })),
        ),
        ("a large file", gzip(repeat(b'a').take(LONG))),
        ("a large trace", gzip(Cursor::new(trace(64 * MIB)))),
        ("a large file in zstd", zstd_of(repeat(b'a').take(LONG))),
        ("members of a ZIP", zip_of(60_000, |n| format!("{n}"), b"")),
        (
            "long names in a ZIP",
            zip_of(200, |n| format!("{n}{}", "a".repeat(60_000)), b""),
        ),
        ("traces in a ZIP", traces(60, 5 * MIB)),
        ("small traces in a ZIP", traces(9000, 208)),
        (
            "gzip in gzip",
            gzip(Cursor::new(gzip(Cursor::new(gzip(repeat(0).take(LONG)))))),
        ),
        ("frames of zstd", zstd_of(repeat(0).take(1)).repeat(100_000)),
        ("members of gzip", gzip(repeat(0).take(1)).repeat(100_000)),
        ("a window of zstd", {
            // A frame with a window of 2 GiB, and a block of one byte that is repeated.
            let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8];
            let block = [0x02u8, 0x00, 0x10, b'a'];
            frame.extend(block.repeat(4000));
            frame.extend([1, 0, 0]);
            frame
        }),
        ("an xz with a dictionary of 64 MiB", xz(0x1c)),
        ("an xz with a dictionary of 4 GiB", xz(0x28)),
    ];
    let directory = tempfile::tempdir().expect("a folder");
    let path = directory.path().join("input");
    for (shape, file) in shapes {
        std::fs::write(&path, &file).expect("a file");
        let size = file.len();
        all.read(shape, size, || open(&path).is_ok());
        all.read(shape, size, || open_hprofs(&path));
        all.read(shape, size, || {
            TextInput::open(&path).is_ok_and(|input| input.whole(LONG).is_ok())
        });
        all.read(shape, size, || {
            let mut input = TextInput::open(&path).ok()?;
            let mut text = input.text(LONG).ok()??;
            std::io::copy(&mut text, &mut std::io::sink()).ok()
        });
        let file = Bytes::from(file);
        all.read(shape, size, || libraries_in(&file).is_ok());
    }
    all.hold();
}
