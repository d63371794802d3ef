//! Texts in every compression and encoding: whole, truncated and too large.

use super::*;
use crate::codec::MAX_DEPTH;
use crate::detect::KnownText;
use proptest::prelude::*;
use std::io::Write;

const TEXT: &str = "--------- beginning of main\nI/art     ( 2345): a line\n";

/// `TEXT`, compressed by `xz -0 --check=crc32`.
const XZ: &[u8] = b"\
    \xfd\x37\x7a\x58\x5a\x00\x00\x01\x69\x22\xde\x36\x02\x00\x21\x01\x0c\x00\x00\x00\
    \x8f\x98\x41\x9c\xe0\x00\x35\x00\x31\x5d\x00\x16\xeb\x04\x0c\x46\x53\x64\xd2\xcb\
    \xec\xe2\xaa\xbc\x3f\xbf\xeb\xbd\x46\x7c\x8a\x89\x79\xa8\x95\x90\x20\xbc\xed\x89\
    \xeb\x56\xe8\x63\xf2\xdc\xdb\xae\x89\x8e\x2e\x7f\xbf\x4f\xad\x22\x42\x70\xa4\xa0\
    \x00\x00\x00\x00\x5b\x24\x28\x1c\x00\x01\x49\x36\xfe\xd4\x87\xce\x90\x42\x99\x0d\
    \x01\x00\x00\x00\x00\x01\x59\x5a";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).unwrap()
}

fn zip_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = zip::write::SimpleFileOptions::default();
        out.start_file(*name, options).unwrap();
        out.write_all(bytes).unwrap();
    }
    out.finish().unwrap().into_inner()
}

/// Returns a text that compresses badly, so that part of it remains after a cut.
fn noise() -> String {
    (0..20_000_u64)
        .map(|n| format!("{:x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect()
}

/// A pipe that returns one byte at a time.
struct Pipe<'a>(&'a [u8]);

impl Read for Pipe<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = out.len().min(1);
        self.0.read(&mut out[..most])
    }
}

fn open(bytes: &[u8]) -> TextInput<'_> {
    TextInput::of_stream(Pipe(bytes), "input").unwrap()
}

/// Reads a text with at most `most` unpacked bytes. Returns the text, its damage, and whether more
/// would follow.
fn read(bytes: &[u8], most: u64) -> (String, Option<String>, bool) {
    let mut input = open(bytes);
    let mut text = input.text(most).unwrap().unwrap();
    let mut all = String::new();
    text.read_to_string(&mut all).unwrap();
    (all, text.damage(), text.is_cut())
}

fn in_zip(members: &[(&str, &[u8])]) -> Option<String> {
    let zip = zip_of(members);
    let mut input = open(&zip);
    assert_eq!(input.kind(), Kind::Zip);
    let mut all = String::new();
    let text = input.text(u64::MAX).unwrap();
    text.map(|mut text| text.read_to_string(&mut all).unwrap())?;
    Some(all)
}

#[test]
fn a_text_comes_out_of_any_codec_and_looking_consumes_nothing() {
    let plain = TEXT.as_bytes();
    for packed in [
        plain.to_vec(),
        gzip(plain),
        zstd(plain),
        XZ.to_vec(),
        gzip(&zstd(XZ)),
    ] {
        let input = open(&packed);
        assert_eq!(input.name(), "input");
        assert_eq!(input.kind(), Kind::Known(KnownText::Log));
        assert_eq!(input.head(), plain);
        let mut same = Vec::new();
        input.into_stream().read_to_end(&mut same).unwrap();
        assert_eq!(same, packed);
        assert_eq!(read(&packed, u64::MAX), (TEXT.to_owned(), None, false));
        let whole = open(&packed).whole(plain.len() as u64).unwrap();
        assert_eq!((&whole.bytes[..], whole.damage), (plain, None));
    }
    let twice = [gzip(plain), gzip(plain)].concat();
    assert_eq!(read(&twice, u64::MAX).0, TEXT.repeat(2));
}

#[test]
fn a_file_is_read_from_its_begin() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("text");
    for bytes in [TEXT.as_bytes().to_vec(), gzip(TEXT.as_bytes())] {
        std::fs::write(&path, &bytes).unwrap();
        let mut input = TextInput::open(&path).unwrap();
        assert_eq!(input.head(), TEXT.as_bytes());
        let mut all = String::new();
        let mut text = input.text(u64::MAX).unwrap().unwrap();
        text.read_to_string(&mut all).unwrap();
        assert_eq!(all, TEXT);
    }
    let missing = TextInput::open(&directory.path().join("other")).err();
    assert!(matches!(missing, Some(ImportError::Unreadable { .. })));
    let is_directory = TextInput::open(directory.path()).err();
    assert!(matches!(is_directory, Some(ImportError::Unreadable { .. })));
}

#[test]
fn what_is_no_text_has_its_kind_and_an_empty_one_is_empty() {
    for (bytes, kind) in [
        (&b""[..], Kind::Empty),
        (b"\x7fELF\x02\x01", Kind::Elf),
        (b"{\"a\":1}", Kind::Json),
    ] {
        assert_eq!(open(bytes).kind(), kind);
        for packed in [gzip(bytes), zstd(bytes)] {
            assert_eq!(open(&packed).kind(), kind);
            assert!(open(&packed).text(9).is_ok());
        }
    }
}

#[test]
fn a_torn_packing_keeps_what_came_before() {
    let text = noise();
    let plain = text.as_bytes();
    let torn = |packed: Vec<u8>| packed[..packed.len() / 5 * 4].to_vec();
    for (packing, cut, is_innermost) in [
        ("gzip", torn(gzip(plain)), true),
        ("zstd", torn(zstd(plain)), true),
        ("gzip", zstd(&torn(gzip(plain))), true),
        ("zstd", torn(zstd(&gzip(plain))), false),
    ] {
        let (before, damage, is_cut) = read(&cut, u64::MAX);
        assert!(before.len() > 1000 && text.starts_with(&before));
        assert!(!is_cut);
        let damage = damage.unwrap();
        let told = format!("its {packing} stream breaks off after ");
        assert!(damage.starts_with(&told), "{damage}");
        if is_innermost {
            let size = format!("{told}{} bytes: ", before.len());
            assert!(damage.starts_with(&size), "{damage}");
        }
        let whole = open(&cut).whole(u64::MAX).unwrap();
        assert_eq!(&*whole.bytes, before.as_bytes());
        assert_eq!(whole.damage, Some(damage));
    }
}

/// Returns an xz whose second of two chunks is cut. The chunks are stored uncompressed.
fn torn_xz(text: &[u8], whole: usize) -> Vec<u8> {
    let with_sum = |part: &[u8]| {
        let mut sum = flate2::Crc::new();
        sum.update(part);
        [part, &sum.sum().to_le_bytes()].concat()
    };
    let mut xz = b"\xfd7zXZ\0".to_vec();
    xz.extend(with_sum(&[0, 1]));
    xz.extend(with_sum(&[2, 0, 0x21, 1, 0x16, 0, 0, 0]));
    for (control, chunk) in [(1, &text[..whole]), (2, &text[whole..][..60_000])] {
        xz.push(control);
        xz.extend(((chunk.len() - 1) as u16).to_be_bytes());
        xz.extend(chunk);
    }
    xz.truncate(xz.len() - 50_000);
    xz
}

#[test]
fn a_codec_that_fails_inside_a_request_loses_less_than_a_step() {
    let text = noise();
    let whole = 40_000;
    let mut flipped = gzip(text.as_bytes());
    let middle = flipped.len() / 2;
    flipped[middle..middle + 64].fill(0xff);
    for (packing, cut, least) in [
        ("xz", torn_xz(text.as_bytes(), whole), whole - STEP),
        ("gzip", flipped, text.len() / 4),
    ] {
        let (before, damage, _) = read(&cut, u64::MAX);
        let told = format!(
            "its {packing} stream breaks off after {} bytes",
            before.len()
        );
        let damage = damage.unwrap();
        assert!(damage.starts_with(&told), "{damage}");
        assert!(before.len() > least, "{}", before.len());
        assert!(text.starts_with(&before[..least]));
    }
}

#[test]
fn damage_around_a_zip_is_told() {
    let zip = zip_of(&[("bugreport.txt", noise().as_bytes())]);
    let packed = gzip(&zip);
    let cut = &packed[..packed.len() / 2];
    let Err(error) = open(cut).text(u64::MAX).map(|_| ()) else {
        panic!("the end of the ZIP is missing")
    };
    let told = error.to_string();
    assert!(told.contains("its gzip stream breaks off after "), "{told}");
    let Err(error) = open(&zip[..zip.len() / 2]).text(u64::MAX).map(|_| ()) else {
        panic!("the end of the ZIP is missing")
    };
    let told = error.to_string();
    assert!(
        told.contains("the directory at the end of the ZIP is missing"),
        "{told}"
    );
    // The ZIP is whole, but the checksum of the gzip around it is wrong.
    let mut wrong = packed.clone();
    let sum = wrong.len() - 8;
    wrong[sum] ^= 1;
    let (text, damage, _) = read(&wrong, u64::MAX);
    assert_eq!(text, noise());
    assert!(damage.unwrap().starts_with("its gzip stream breaks off"));
}

#[test]
fn a_packing_out_of_which_nothing_comes_is_an_error() {
    for packed in [&gzip(TEXT.as_bytes())[..11], &XZ[..24]] {
        let mut input = open(packed);
        assert!(matches!(input.kind(), Kind::Gzip | Kind::Xz));
        assert_eq!(input.head(), b"");
        assert!(matches!(
            input.text(u64::MAX).err(),
            Some(ImportError::Damaged { .. })
        ));
        assert!(matches!(
            open(packed).whole(u64::MAX).err(),
            Some(ImportError::Damaged { .. })
        ));
    }
}

#[test]
fn what_is_packed_too_deep_is_refused() {
    let mut packed = TEXT.as_bytes().to_vec();
    for _ in 0..MAX_DEPTH {
        packed = gzip(&packed);
    }
    assert_eq!(read(&packed, u64::MAX).0, TEXT);
    let deeper = gzip(&packed);
    let error = TextInput::of_stream(&deeper[..], "input").err().unwrap();
    assert!(error.to_string().contains("packed more than"), "{error}");
}

#[test]
fn what_comes_out_is_bounded() {
    let text = noise();
    let size = text.len() as u64;
    for bytes in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
        assert!(open(&bytes).whole(size).is_ok());
        let error = open(&bytes).whole(size - 1).err().unwrap();
        let most = ByteSize(size - 1);
        assert!(error.to_string().ends_with(&format!("more than {most}")));
    }
    let packed = gzip(text.as_bytes());
    assert_eq!(read(&packed, size), (text.clone(), None, false));
    let half = text[..text.len() / 2].to_owned();
    assert_eq!(read(&packed, size / 2), (half, None, true));
    // An uncompressed text has the size of its input.
    assert_eq!(read(text.as_bytes(), 1), (text.clone(), None, false));
}

#[test]
fn a_zip_stands_for_one_text() {
    let text = TEXT.as_bytes();
    let other: &[u8] = b"?";
    let zip = zip_of(&[("a.txt", text)]);
    let found = Some(TEXT.to_owned());
    assert_eq!(in_zip(&[("a.txt", text)]), found);
    assert_eq!(in_zip(&[("a.log", text), ("a.bin", other)]), found);
    assert_eq!(in_zip(&[("a.txt", text), ("b.txt", other)]), None);
    assert_eq!(in_zip(&[("a.bin", text)]), None);
    assert_eq!(
        in_zip(&[("a.txt", other), ("x/bugreport-1.txt", text)]),
        found
    );
    assert_eq!(
        in_zip(&[
            ("bugreport-1.txt", other),
            ("main_entry.txt", &b"other.txt\n"[..]),
            ("other.txt", text)
        ]),
        found
    );
    assert_eq!(in_zip(&[("a.txt", &gzip(text)[..])]), found);
    // The same ZIP in a file, and compressed.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("input");
    for bytes in [zip.clone(), gzip(&zip)] {
        std::fs::write(&path, &bytes).unwrap();
        let mut input = TextInput::open(&path).unwrap();
        let mut all = String::new();
        let mut text = input.text(u64::MAX).unwrap().unwrap();
        text.read_to_string(&mut all).unwrap();
        assert_eq!(all, TEXT);
        let mut input = TextInput::open(&path).unwrap();
        let mut text = input.text(1 << 20).unwrap().unwrap();
        io::copy(&mut text, &mut io::sink()).unwrap();
        assert!(!text.is_cut());
    }
    std::fs::write(&path, &zip).unwrap();
    let mut input = TextInput::open(&path).unwrap();
    let mut text = input.text(10).unwrap().unwrap();
    assert_eq!(io::copy(&mut text, &mut io::sink()).unwrap(), 10);
    assert!(text.is_cut());
    let cut = &zip[..zip.len() / 2];
    let error = open(cut).text(u64::MAX).err();
    assert!(matches!(error, Some(ImportError::Damaged { .. })));
    // Its bytes are still there for another reader.
    let mut input = open(cut);
    assert!(!input.is_bugreport() && input.text_head().is_err());
    let mut all = Vec::new();
    input.into_stream().read_to_end(&mut all).unwrap();
    assert_eq!(all, cut);
}

#[test]
fn a_stream_that_fails_is_no_torn_packing() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("gone"))
        }
    }
    let error = TextInput::of_stream(Failing, "input").err();
    assert!(matches!(error, Some(ImportError::Unreadable { .. })));
    let long = "a line\n".repeat(HEAD);
    let mut input = TextInput::of_stream(long.as_bytes().chain(Failing), "input").unwrap();
    let mut text = input.text(u64::MAX).unwrap().unwrap();
    assert!(io::copy(&mut text, &mut io::sink()).is_err());
}

fn wide(text: &str, to: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let marked = format!("\u{feff}{text}");
    marked.encode_utf16().flat_map(to).collect()
}

#[test]
fn utf_16_and_a_mark_of_utf_8_come_as_utf_8() {
    // Long enough that surrogate pairs cross the boundaries between reads.
    let text = format!("{TEXT}{}", "\u{1f600}x".repeat(30_000));
    for bytes in [
        wide(&text, u16::to_le_bytes),
        wide(&text, u16::to_be_bytes),
        [b"\xef\xbb\xbf", text.as_bytes()].concat(),
    ] {
        let input = open(&bytes);
        assert_eq!(input.kind(), Kind::Known(KnownText::Log));
        assert!(text.as_bytes().starts_with(input.head()));
        assert!(input.head().starts_with(TEXT.as_bytes()));
        assert_eq!(read(&bytes, u64::MAX), (text.clone(), None, false));
        assert_eq!(read(&gzip(&bytes), u64::MAX).0, text);
        assert_eq!(&*input.whole(1 << 20).unwrap().bytes, text.as_bytes());
    }
    // A text that ends inside a character ends with a replacement character.
    for end in [&b"\x41"[..], b"\x3d\xd8"] {
        let cut = [&wide(TEXT, u16::to_le_bytes), end].concat();
        assert_eq!(read(&cut, u64::MAX).0, format!("{TEXT}{HALF}"));
    }
}

proptest! {
    #[test]
    // UTF-16 with several NULs is a binary file that PowerShell wrote as text.
    fn any_text_comes_back(text in "[^\u{feff}\\x00]{0,200}", packing in 0..3) {
        for bytes in [wide(&text, u16::to_le_bytes), wide(&text, u16::to_be_bytes)] {
            let packed = match packing {
                0 => bytes,
                1 => gzip(&bytes),
                _ => zstd(&bytes),
            };
            prop_assume!(open(&packed).kind() != Kind::Zip);
            prop_assert_eq!(read(&packed, u64::MAX).0, heaptap_base::text::plain_str(&text));
        }
    }

    #[test]
    fn any_bytes_are_read_as_far_as_they_go(bytes: Vec<u8>) {
        let Ok(mut input) = TextInput::of_stream(&bytes[..], "input") else {
            return Ok(());
        };
        if let Ok(Some(mut text)) = input.text(1 << 20) {
            io::copy(&mut text, &mut io::sink()).unwrap();
        }
    }
}
