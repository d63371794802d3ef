//! Compares symbol files of every shape with llvm-symbolizer: all code of
//! `fixtures/elf/shapes.tar.xz`, address by address, and samples of `fixtures/elf/alloc.tar.xz`.
//! `fixtures/elf/build.py` builds them.

mod alloc;
mod damage;
mod hostile;
mod shapes;

use heaptap_base::bytes::Bytes;
use heaptap_symbols::symbolize::file::{FileError, SiblingFiles, SymbolFile};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Archives of `fixtures/elf`, unpacked once for all tests.
fn samples(archive: &str) -> &'static Path {
    static UNPACKED: OnceLock<tempfile::TempDir> = OnceLock::new();
    let unpacked = UNPACKED.get_or_init(|| {
        let unpacked = tempfile::tempdir().expect("a folder");
        for archive in ["shapes", "alloc"] {
            let packed = root().join(format!("fixtures/elf/{archive}.tar.xz"));
            let packed = std::fs::File::open(packed).expect("the archive is there");
            let tar = lzma_rust2::XzReader::new(std::io::BufReader::new(packed), false);
            let directory = unpacked.path().join(archive);
            tar::Archive::new(tar)
                .unpack(directory)
                .expect("a sound archive");
        }
        unpacked
    });
    static DIRECTORIES: OnceLock<[PathBuf; 2]> = OnceLock::new();
    let directories =
        DIRECTORIES.get_or_init(|| ["shapes", "alloc"].map(|a| unpacked.path().join(a)));
    let of = directories
        .iter()
        .find(|directory| directory.ends_with(archive));
    of.expect("an archive of the list")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Opens a file with its companion files.
fn open(path: &Path) -> Result<SymbolFile, FileError> {
    let bytes = Bytes::map(path).expect("the file is there");
    SymbolFile::open(bytes, Arc::new(SiblingFiles::new(path)))
}

/// One line of an answer: linkage name, demangled name, file, line, column.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    linkage: String,
    function: String,
    file: String,
    line: u32,
    column: u32,
}

/// The lines of each address, innermost first.
fn lookup(file: &SymbolFile, addresses: &[u64]) -> Vec<Vec<Line>> {
    let mut found = vec![Vec::new(); addresses.len()];
    let threads = NonZero::new(2).expect("not zero");
    file.lookup(addresses, threads, &mut |at, lines| {
        let lines = lines.iter().map(|line| Line {
            linkage: line.linkage.to_owned(),
            function: line.function.to_owned(),
            file: line.file.to_owned(),
            line: line.line,
            column: line.column,
        });
        found[at] = lines.collect();
    });
    found
}
