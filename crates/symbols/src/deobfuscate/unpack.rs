//! Decompression of mapping files: plain, gzip, zstd, or a member of a ZIP, such as an app bundle
//! or a download from Play. Sizes are bounded: nothing is allocated by a size in the file, and
//! names in an archive never become paths.

use super::error::MapError;
use super::index::MAX_SIZE;
use heaptap_base::bytes::Bytes;
use heaptap_base::units::ByteSize;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

/// Limits for the decompressed size: a constant plus a multiple of the file size. Text of this kind
/// compresses about 15:1.
const SLACK: u64 = 64 << 20;
const RATIO: u64 = 60;
/// Maximum nesting: gzip in a ZIP.
const MAX_DEPTH: u32 = 2;
/// Maximum number of archive members examined.
const MAX_MEMBERS: usize = 100_000;
/// Maximum number of members listed in an error.
const NAMED: usize = 5;

/// Path of the R8 mapping in Android app bundles.
const IN_BUNDLE: &str = "BUNDLE-METADATA/com.android.tools.build.obfuscation/proguard.map";

/// Method of reading a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Maps it; a pipe, such as a process substitution of a shell, is read to its end.
    Mapped,
    /// Reads it into memory unless it is too large, so that a build can write it meanwhile. Only
    /// for regular files: reading never blocks.
    Copied,
}

/// Larger files are mapped with either method.
const COPIED: u64 = 256 << 20;

/// Reads a file.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub(super) fn read(path: &Path, reading: Reading) -> Result<Bytes, MapError> {
    let unreadable = |source| MapError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(unreadable(io::Error::other("is a directory")));
    }
    match reading {
        Reading::Copied => Bytes::read(path, COPIED).map_err(unreadable),
        Reading::Mapped if metadata.is_file() => Bytes::map(path).map_err(unreadable),
        Reading::Mapped => {
            let file = File::open(path).map_err(unreadable)?;
            read_bounded(file, MAX_SIZE as u64, path)?.map_err(unreadable)
        }
    }
}

/// Decompresses the mapping file in some bytes, or returns them if they are not compressed.
///
/// # Errors
/// Returns an error if decompression fails, there is no mapping file, or it is too large.
pub(super) fn unpack(bytes: Bytes, path: &Path) -> Result<Bytes, MapError> {
    unpack_at(bytes, path, 0)
}

fn unpack_at(bytes: Bytes, path: &Path, depth: u32) -> Result<Bytes, MapError> {
    let most = (MAX_SIZE as u64).min(SLACK + RATIO * bytes.len() as u64);
    let damaged = |what: String| MapError::Damaged {
        path: path.to_owned(),
        what,
    };
    let unpacked = match &bytes[..] {
        [0x1f, 0x8b, ..] => {
            let reader = flate2::bufread::MultiGzDecoder::new(&bytes[..]);
            read_bounded(reader, most, path)?.map_err(|error| damaged(error.to_string()))?
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let reader = zstd::stream::read::Decoder::with_buffer(&bytes[..])
                .map_err(|error| damaged(error.to_string()))?;
            read_bounded(reader, most, path)?.map_err(|error| damaged(error.to_string()))?
        }
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => member(&bytes, most, path)?,
        _ if bytes.len() > MAX_SIZE => {
            return Err(MapError::TooLarge {
                path: path.to_owned(),
                most: ByteSize(MAX_SIZE as u64),
            });
        }
        _ => return Ok(bytes),
    };
    if depth + 1 >= MAX_DEPTH {
        return Ok(unpacked);
    }
    unpack_at(unpacked, path, depth + 1)
}

/// Reads a stream to its end. The outer error means that the stream exceeds the limit.
fn read_bounded(reader: impl Read, most: u64, path: &Path) -> Result<io::Result<Bytes>, MapError> {
    let mut all = Vec::new();
    let outcome = reader.take(most + 1).read_to_end(&mut all);
    if all.len() as u64 > most {
        return Err(MapError::TooLarge {
            path: path.to_owned(),
            most: ByteSize(most),
        });
    }
    Ok(outcome.map(|_| Bytes::from(all)))
}

/// Returns the likelihood that a member of an archive is the R8 mapping; 0 means that it is not.
fn likelihood(name: &str) -> u32 {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let unpacked = file
        .strip_suffix(".gz")
        .or_else(|| file.strip_suffix(".zst"))
        .unwrap_or(file);
    if name == IN_BUNDLE {
        4
    } else if unpacked == "mapping.txt" || unpacked == "proguard.map" {
        3
    } else if unpacked.ends_with(".map") || unpacked.contains("mapping") {
        2
    } else {
        u32::from(unpacked.ends_with(".txt"))
    }
}

/// Returns the mapping file in a ZIP.
fn member(bytes: &Bytes, most: u64, path: &Path) -> Result<Bytes, MapError> {
    let damaged = |what: String| MapError::Damaged {
        path: path.to_owned(),
        what,
    };
    let mut archive = zip::ZipArchive::new(Cursor::new(&bytes[..]))
        .map_err(|error| damaged(error.to_string()))?;
    let mut best: Vec<(usize, String)> = Vec::new();
    let mut likeliest = 1;
    for at in 0..archive.len().min(MAX_MEMBERS) {
        let Some(Ok(name)) = archive.name_for_index(at) else {
            continue;
        };
        let name = name.into_owned();
        let likelihood = likelihood(&name);
        if likelihood > likeliest {
            likeliest = likelihood;
            best.clear();
        }
        if likelihood == likeliest {
            best.push((at, name));
        }
    }
    let listed = |all: &[(usize, String)]| {
        let names: Vec<&str> = all.iter().take(NAMED).map(|(_, name)| &**name).collect();
        names.join(", ")
    };
    let &(at, _) = match &best[..] {
        [one] => one,
        [] => {
            return Err(MapError::Archive {
                path: path.to_owned(),
                what: "no mapping file".to_owned(),
            });
        }
        several => {
            return Err(MapError::Archive {
                path: path.to_owned(),
                what: format!("several possible mapping files: {}", listed(several)),
            });
        }
    };
    let file = archive
        .by_index(at)
        .map_err(|error| damaged(error.to_string()))?;
    read_bounded(file, most, path)?.map_err(|error| damaged(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    const MAP: &[u8] = b"x.A -> a:\n";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
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

    fn open_bytes(bytes: &[u8]) -> Result<Bytes, MapError> {
        unpack(Bytes::from(bytes.to_vec()), Path::new("file"))
    }

    #[test]
    fn every_packing_gives_the_map() {
        let bundle = zip_of(&[
            ("base/dex/classes.dex", b"x"),
            (IN_BUNDLE, MAP),
            ("mapping.txt", b""),
        ]);
        let play = zip_of(&[("release/mapping.txt", MAP), ("notes.txt", b"")]);
        let other = zip_of(&[
            ("mapping/release/app-1.2.map.gz", &gzip(MAP)),
            ("a.png", b""),
        ]);
        let zstd = zstd::encode_all(MAP, 1).unwrap();
        for packed in [MAP, &gzip(MAP), &zstd, &bundle, &play, &other] {
            assert_eq!(*open_bytes(packed).unwrap(), *MAP);
        }
    }

    #[test]
    fn an_archive_must_hold_one_map() {
        let none = zip_of(&[("classes.dex", b"x")]);
        let message = open_bytes(&none).unwrap_err().to_string();
        assert!(message.ends_with("contains no mapping file"), "{message}");
        let two = zip_of(&[("a/mapping.txt", MAP), ("b/mapping.txt", MAP)]);
        let message = open_bytes(&two).unwrap_err().to_string();
        assert!(
            message.contains("a/mapping.txt, b/mapping.txt"),
            "{message}"
        );
    }

    #[test]
    fn damage_and_bombs_are_refused() {
        let whole = gzip(&MAP.repeat(1000));
        let cut = open_bytes(&whole[..whole.len() - 20]).unwrap_err();
        assert!(matches!(cut, MapError::Damaged { .. }), "{cut}");
        let bomb = gzip(&vec![b'\n'; (SLACK + (16 << 20)) as usize]);
        let error = open_bytes(&bomb).unwrap_err();
        assert!(matches!(error, MapError::TooLarge { .. }), "{error}");
        let error = open_bytes(b"PK\x03\x04garbage").unwrap_err();
        assert!(matches!(error, MapError::Damaged { .. }), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let error = read(directory.path(), Reading::Mapped).unwrap_err();
        assert!(matches!(error, MapError::Unreadable { .. }), "{error}");
    }
}
