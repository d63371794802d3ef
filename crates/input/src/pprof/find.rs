//! Search for pprofs: in a file, packed or not, or in a directory that a conversion wrote.

use super::super::codec::unpack_all;
use super::super::error::ImportError;
use super::super::spool::Budget;
use heaptap_base::bytes::Bytes;
use std::io;
use std::path::{Path, PathBuf};

/// A pprof found in an input.
#[derive(Debug, Clone)]
pub struct PprofInput {
    /// File name for display.
    pub name: String,
    /// Uncompressed bytes.
    pub bytes: Bytes,
    /// Damage to the compression around the pprof, if not everything could be unpacked.
    pub damage: Option<String>,
}

/// Returns the pprof in the bytes of a file, packed or not.
pub(crate) fn of_bytes(
    bytes: Bytes,
    name: &str,
    budget: &Budget,
) -> Result<PprofInput, ImportError> {
    let (bytes, _, damage) = unpack_all(bytes, name, 0, budget)?;
    Ok(PprofInput {
        name: name.to_owned(),
        bytes,
        damage,
    })
}

/// Returns the pprofs in a directory, packed or not. Those of native heaps
/// (`heap_dump.<n>.<pid>.<heap>.pb.gz`) come first, then those of tracked Java allocations
/// (`java_allocations.<n>.<pid>.pb.gz`). Each kind is numbered separately and sorted by number.
pub(crate) fn in_directory(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.strip_suffix(".gz").unwrap_or(&name);
        let number = ["heap_dump.", "java_allocations."]
            .iter()
            .enumerate()
            .find_map(|(kind, of)| Some((kind, stem.strip_prefix(of)?)))
            .and_then(|(kind, rest)| Some((kind, rest.strip_suffix(".pb")?)))
            .and_then(|(kind, rest)| Some((kind, rest.split('.').next()?.parse::<u32>().ok()?)));
        if let Some(number) = number
            && path.is_file()
        {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_counted_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        let in_order = [
            "heap_dump.0.42.malloc.pb.gz",
            "heap_dump.2.42.malloc.pb",
            "heap_dump.10.42.malloc.pb.gz",
            "java_allocations.0.42.pb.gz",
            "java_allocations.1.42.pb.gz",
        ];
        let others = ["heap_dump.x.pb.gz", "java_allocations.1.42.txt"];
        for name in in_order.iter().rev().chain(&others) {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let found = in_directory(dir.path()).unwrap();
        let names: Vec<_> = found.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(names, in_order);
    }
}
