//! HPROF heap dumps as bytes in memory. A plain file is mapped. A packed file is unpacked to an
//! unnamed temporary file, which is mapped. This module owns the packing around an HPROF;
//! `android-hprof` decodes it.

use super::archive::{self, Members, Unread};
use super::codec::{innermost, unpack_all};
use super::detect::{HEAD, Kind, detect};
use super::directory::{NAMED, names_in_directory};
use super::error::ImportError;
use super::spool::{Budget, Spool};
use heaptap_base::bytes::Bytes;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

/// Maximum number of dumps unpacked from an archive, because each one uses space.
const MAX_DUMPS: usize = 64;

/// An HPROF found in an input.
#[derive(Debug, Clone)]
pub struct HprofInput {
    /// File name for display. The name of an archive member follows the name of its archive.
    pub name: String,
    /// Uncompressed bytes. Only the signature `JAVA PROFILE 1.0` at the start has been checked.
    pub bytes: Bytes,
    /// Damage to the compression or archive around the HPROF, if not everything could be unpacked.
    pub damage: Option<String>,
}

/// Opens the only HPROF in a file or directory: raw, or in gzip, zstd, xz, ZIP or TAR.
///
/// # Errors
/// Returns an error if there is not exactly one HPROF, or if it cannot be read.
pub fn open_hprof(path: &Path) -> Result<HprofInput, ImportError> {
    the_only(open_hprofs(path)?, &path.display().to_string())
}

/// Opens the only HPROF in a stream, for example stdin.
///
/// # Errors
/// Returns the same errors as [`open_hprof`].
pub fn open_hprof_stream(stream: impl Read, name: &str) -> Result<HprofInput, ImportError> {
    let (bytes, budget) = spool_stream(stream, name)?;
    the_only(hprofs_of_bytes(bytes, name, &budget)?, name)
}

/// Returns every HPROF in the bytes, packed or not.
pub(super) fn hprofs_of_bytes(
    bytes: Bytes,
    name: &str,
    budget: &Budget,
) -> Result<Vec<HprofInput>, ImportError> {
    let mut found = Vec::new();
    find(bytes, name, 0, budget, &mut found)?;
    Ok(found)
}

/// Opens every HPROF in a file or directory, at least one.
///
/// # Errors
/// Returns an error if there is no HPROF, or if one cannot be read.
pub fn open_hprofs(path: &Path) -> Result<Vec<HprofInput>, ImportError> {
    let name = path.display().to_string();
    let unreadable = ImportError::unreadable(&name);
    let mut found = Vec::new();
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        let files = hprofs_in_directory(path).map_err(unreadable)?;
        if files.is_empty() {
            let members = names_in_directory(path);
            return Err(ImportError::NoHprofInside { name, members });
        }
        for file in files {
            found.extend(open_hprofs(&file)?);
        }
    } else if metadata.is_file() {
        let bytes = Bytes::map(path).map_err(unreadable)?;
        find(
            bytes,
            &name,
            0,
            &Budget::from_packed(metadata.len()),
            &mut found,
        )?;
    } else {
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let (bytes, budget) = spool_stream(file, &name)?;
        find(bytes, &name, 0, &budget, &mut found)?;
    }
    Ok(found)
}

/// Returns the error of an input that has several HPROFs, which belong to no recording.
pub fn several_hprofs(name: &str, found: &[HprofInput]) -> ImportError {
    let members = found.iter().map(|dump| dump.name.clone());
    ImportError::SeveralHprofs {
        name: name.to_owned(),
        members: members.take(NAMED).collect(),
    }
}

/// Returns the HPROFs of a recording directory, sorted by name: `*.hprof`, packed or not.
///
/// # Errors
/// Returns an error if the directory cannot be read.
pub fn hprofs_in_directory(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut packed = [".gz", ".zst", ".xz"].iter();
        let stem = packed.find_map(|end| name.strip_suffix(end));
        let stem = stem.unwrap_or(&name);
        if stem.ends_with(".hprof") && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn the_only(mut found: Vec<HprofInput>, name: &str) -> Result<HprofInput, ImportError> {
    if found.len() > 1 {
        return Err(several_hprofs(name, &found));
    }
    match found.pop() {
        Some(only) => Ok(only),
        None => Err(ImportError::NoHprofInside {
            name: name.to_owned(),
            members: Vec::new(),
        }),
    }
}

pub(super) fn spool_stream(stream: impl Read, name: &str) -> Result<(Bytes, Budget), ImportError> {
    let budget = Budget::of_stream();
    let mut spool = Spool::new(name, &budget);
    if let Some(what) = spool.append(stream)? {
        return Err(ImportError::Damaged {
            name: name.to_owned(),
            what,
        });
    }
    let bytes = spool.into_bytes()?;
    let budget = Budget::from_packed(bytes.len() as u64);
    Ok((bytes, budget))
}

/// Finds HPROFs in bytes that can be packed.
fn find(
    bytes: Bytes,
    name: &str,
    depth: u32,
    budget: &Budget,
    found: &mut Vec<HprofInput>,
) -> Result<(), ImportError> {
    let (bytes, depth, damage) = unpack_all(bytes, name, depth, budget)?;
    let before = found.len();
    match detect(&bytes[..bytes.len().min(HEAD)]) {
        Kind::Hprof => found.push(HprofInput {
            name: name.to_owned(),
            bytes,
            damage: None,
        }),
        Kind::Zip => {
            let mut members = Hprofs::new(name, depth, budget, found);
            archive::each_in_zip(Cursor::new(&bytes[..]), name, &mut members)?;
            members.finish()?;
        }
        Kind::Tar => {
            let mut members = Hprofs::new(name, depth, budget, found);
            archive::each_in_tar(&bytes[..], &mut members)?;
            members.finish()?;
        }
        what => {
            return Err(ImportError::NotAnHprof {
                name: name.to_owned(),
                what,
            });
        }
    }
    if damage.is_some()
        && let Some(last) = found[before..].last_mut()
    {
        last.damage = damage;
    }
    Ok(())
}

/// HPROFs of an archive, identified by content, not by name. Members are only streamed: no path in
/// an archive becomes a path on the host.
struct Hprofs<'a> {
    archive: &'a str,
    depth: u32,
    budget: &'a Budget,
    found: &'a mut Vec<HprofInput>,
    before: usize,
    unread: Unread,
}

impl Members for Hprofs<'_> {
    /// Reads a member if it is an HPROF, packed or not.
    fn add(&mut self, name: String, head: Vec<u8>, rest: impl Read) -> Result<(), ImportError> {
        if !matches!(innermost(&head), Kind::Hprof | Kind::Zip | Kind::Tar) {
            self.unread.add(name);
            return Ok(());
        }
        if self.found.len() >= MAX_DUMPS {
            self.unread.damage = Some(format!("only the first {MAX_DUMPS} dumps were read"));
            return Ok(());
        }
        let mut spool = Spool::new(self.archive, self.budget);
        let damage = spool.append((&head[..]).chain(rest))?;
        let bytes = spool.into_bytes()?;
        let full = format!("{}:{name}", self.archive);
        let before = self.found.len();
        match find(bytes, &full, self.depth + 1, self.budget, self.found) {
            Ok(()) => {}
            Err(error @ (ImportError::Unwritable { .. } | ImportError::TooLarge { .. })) => {
                return Err(error);
            }
            // An inner archive without an HPROF.
            Err(_) => {
                self.unread.add(name);
                return Ok(());
            }
        }
        if let Some(what) = damage
            && let Some(last) = self.found[before..].last_mut()
        {
            last.damage = Some(format!("{name}: {what}"));
        }
        Ok(())
    }

    fn unread(&mut self) -> &mut Unread {
        &mut self.unread
    }
}

impl<'a> Hprofs<'a> {
    fn new(
        archive: &'a str,
        depth: u32,
        budget: &'a Budget,
        found: &'a mut Vec<HprofInput>,
    ) -> Self {
        let before = found.len();
        Hprofs {
            archive,
            depth,
            budget,
            found,
            before,
            unread: Unread::default(),
        }
    }

    fn finish(self) -> Result<(), ImportError> {
        let name = self.archive.to_owned();
        if let Some(last) = self.found[self.before..].last_mut() {
            last.damage = last.damage.take().or(self.unread.damage);
            return Ok(());
        }
        match self.unread.damage {
            Some(what) => Err(ImportError::Damaged { name, what }),
            None => Err(ImportError::NoHprofInside {
                name,
                members: self.unread.others,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HeapSource, open_java, open_java_stream};
    use std::io::Write as _;

    /// The dump below, compressed by `xz`.
    const XZ: &[u8] = b"\
        \xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x16\x00\x00\x00\
        \x74\x2f\xe5\xa3\xe4\xe2\x12\x00\x90\x5d\x00\x25\x10\x47\x11\x5c\xed\xda\x01\xc2\
        \x4f\xe5\x05\xa4\xd9\x61\x9f\xf6\x6f\xc8\x46\x2b\xc7\x5a\xb4\xb7\x7f\xd0\x37\xc7\
        \x48\x15\x63\x26\x52\x29\x34\xc1\xa7\x07\x73\x6b\xbf\x67\xcc\x7c\x06\x4e\x1e\xa6\
        \xe8\xe9\x44\xf9\x56\x23\x4f\x0d\xcd\x12\xe2\x2b\x58\x62\x36\xa1\xd0\x8e\x79\x12\
        \xc1\x14\x37\x19\x50\xf2\xb9\x7c\x20\x7e\xc5\x0a\x9d\x3d\x51\xa4\x49\x76\x1a\xc2\
        \x1f\xaa\xa8\x0f\x72\x3a\x6d\x1b\xec\xab\xf5\xb8\xcf\x13\x19\xa6\xb3\x43\x42\xfd\
        \xc9\x94\xa4\xe7\x67\xd2\x81\xa1\x25\x6c\x0d\x8f\x60\xd2\x83\x69\x59\xa4\x4c\x1f\
        \x47\xff\xfe\xad\x05\x61\xcd\x3f\x58\x30\x1f\xbf\x10\x96\x00\x00\xa8\xd6\xb5\xcb\
        \xbd\xdf\x5b\xb6\x00\x01\xac\x01\x93\xc4\x13\x00\xbc\x1d\x57\xc8\xb1\xc4\x67\xfb\
        \x02\x00\x00\x00\x00\x04\x59\x5a";

    fn dump(text: &str) -> Vec<u8> {
        [b"JAVA PROFILE 1.0.2\0", text.as_bytes()].concat()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut out = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in members {
            out.start_file(*name, zip::write::SimpleFileOptions::default())
                .unwrap();
            out.write_all(bytes).unwrap();
        }
        out.finish().unwrap().into_inner()
    }

    fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut out = tar::Builder::new(Vec::new());
        for (name, bytes) in members {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            out.append_data(&mut header, name, *bytes).unwrap();
        }
        out.into_inner().unwrap()
    }

    fn open(bytes: &[u8]) -> Result<HprofInput, ImportError> {
        open_hprof_stream(bytes, "x")
    }

    #[test]
    fn every_packing_gives_the_same_bytes() {
        let plain = dump(&"records ".repeat(40_000));
        for packed in [
            plain.clone(),
            gzip(&plain),
            gzip(&gzip(&plain)),
            zstd::encode_all(&plain[..], 1).unwrap(),
            XZ.to_vec(),
            zip(&[("a.txt", b"text"), ("a.hprof", &plain)]),
            zip(&[("readme", b"text"), ("a.hprof.gz", &gzip(&plain))]),
            zip(&[("inner.zip", &zip(&[("heap", &plain)]))]),
            gzip(&tar(&[("log", b"x"), ("a/b.hprof", &plain)])),
        ] {
            let input = open(&packed).unwrap();
            assert!(input.bytes[..] == plain, "{}", input.name);
            assert_eq!(input.damage, None);
            assert!(matches!(
                open_java_stream(&packed[..], "x"),
                Ok(HeapSource::Hprofs(found)) if found.len() == 1
            ));
            // A file gives the same result as a stream.
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("dump");
            std::fs::write(&path, &packed).unwrap();
            assert!(open_hprof(&path).unwrap().bytes[..] == plain);
        }
    }

    #[test]
    fn what_is_no_hprof_is_named() {
        for (bytes, words) in [
            (&b""[..], "not an HPROF: it is empty"),
            (b"BZh91AY&SY\x9c", "not an HPROF: it is a bzip2 file"),
            (b"\x7fELF\x02", "not an HPROF: it is an ELF file"),
            (&gzip(b"hello"), "not an HPROF: it is text"),
            (
                &zip(&[("a", b"x"), ("b", b"y")]),
                "does not contain an HPROF (found: a, b)",
            ),
            (&[0x1f, 0x8b, 8], "damaged"),
        ] {
            let error = open(bytes).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        let (one, other) = (dump("1"), dump("2"));
        let both = zip(&[("1.hprof", &one), ("2.hprof", &other)]);
        let error = open(&both).unwrap_err().to_string();
        assert_eq!(
            error,
            "x contains several HPROFs (found: x:1.hprof, x:2.hprof)"
        );
    }

    #[test]
    fn a_cut_stream_gives_what_there_is() {
        let plain = dump(&(0..400_000).map(|n| format!("{n} ")).collect::<String>());
        for packed in [gzip(&plain), zstd::encode_all(&plain[..], 3).unwrap()] {
            let cut = open(&packed[..packed.len() / 2]).unwrap();
            assert!(cut.bytes.len() > 1000 && plain.starts_with(&cut.bytes));
            let damage = cut.damage.unwrap();
            assert!(damage.contains("stream breaks off after"), "{damage}");
        }
    }

    #[test]
    fn a_whole_stream_may_have_other_bytes_behind_it() {
        let plain = dump("whole");
        for packed in [gzip(&plain), zstd::encode_all(&plain[..], 3).unwrap()] {
            let found = open(&[&packed[..], b"Done.\n"].concat()).unwrap();
            assert_eq!(*found.bytes, plain);
            let damage = found.damage.unwrap();
            assert!(damage.ends_with(crate::BYTES_BEHIND), "{damage}");
        }
    }

    #[test]
    fn a_directory_gives_its_dumps_and_its_trace_first() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(directory.path().join(name), bytes).unwrap();
        };
        write("manifest.json", b"{}");
        let error = open_hprof(directory.path()).unwrap_err();
        assert_eq!(
            error.to_string().rsplit('/').next().unwrap(),
            format!(
                "{} does not contain an HPROF (found: manifest.json)",
                directory.path().file_name().unwrap().to_string_lossy()
            )
        );
        assert!(matches!(
            open_java(directory.path()),
            Err(ImportError::NoTraceInside { .. })
        ));
        write("b.hprof", &dump("b"));
        assert_eq!(*open_hprof(directory.path()).unwrap().bytes, dump("b"));
        write("a.hprof.gz", &gzip(&dump("a")));
        let all = open_hprofs(directory.path()).unwrap();
        let bytes: Vec<&[u8]> = all.iter().map(|dump| &dump.bytes[..]).collect();
        assert_eq!(bytes, [dump("a"), dump("b")]);
        assert!(matches!(
            open_hprof(directory.path()),
            Err(ImportError::SeveralHprofs { .. })
        ));
        assert!(matches!(
            open_java(directory.path()),
            Ok(HeapSource::Hprofs(found)) if found.len() == 2
        ));
        write(
            "raw-trace",
            &[&[0x0a, 0x66, 0x50, 1, 0x7a, 98][..], &[0; 98]].concat(),
        );
        assert!(matches!(
            open_java(directory.path()),
            Ok(HeapSource::Traces(found)) if found.len() == 1
        ));
    }
}
