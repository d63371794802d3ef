//! Opening of inputs that contain heaps of any type: traces, pprofs and HPROFs.

use super::codec::{PACKED_HEAD, innermost};
use super::detect::Kind;
use super::error::ImportError;
use super::hprof::{HprofInput, hprofs_of_bytes, open_hprofs, spool_stream};
use super::pprof::{self, PprofInput};
use super::spool::Budget;
use super::trace::{OpenTrace, open, unpack};
use heaptap_base::bytes::Bytes;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

/// Content of an input of heaps.
pub enum HeapSource {
    /// Perfetto traces, as returned by [`open`]; several in a bundle.
    Traces(Vec<OpenTrace>),
    /// pprofs: one, or those of a directory in order of their numbers; at least one.
    Pprofs(Vec<PprofInput>),
    /// HPROFs: one, or all in an archive or directory; at least one.
    Hprofs(Vec<HprofInput>),
}

/// Heaps that are sought.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sought {
    /// All, those of traces first.
    Any,
    /// Java heaps: in traces and HPROFs, those of an archive first.
    Java,
}

/// Opens a file or directory. If a directory contains a trace and other files, returns the trace.
///
/// # Errors
/// Returns an error if the input does not contain a heap, or if it cannot be read.
pub fn open_heaps(path: &Path) -> Result<HeapSource, ImportError> {
    open_path(path, Sought::Any)
}

/// Opens a stream, for example stdin.
///
/// # Errors
/// Returns the same errors as [`open_heaps`].
pub fn open_heaps_stream(stream: impl Read, name: &str) -> Result<HeapSource, ImportError> {
    open_stream(stream, name, Sought::Any)
}

/// Opens a file or directory that contains Java heaps, in traces or HPROFs. If a directory has
/// both, returns the trace; [`hprofs_in_directory`](super::hprofs_in_directory) returns the others.
///
/// # Errors
/// Returns an error if the input contains neither, or if it cannot be read.
pub fn open_java(path: &Path) -> Result<HeapSource, ImportError> {
    open_path(path, Sought::Java)
}

/// Opens a stream in the same way as [`open_java`] opens a file.
///
/// # Errors
/// Returns the same errors as [`open_java`].
pub fn open_java_stream(stream: impl Read, name: &str) -> Result<HeapSource, ImportError> {
    open_stream(stream, name, Sought::Java)
}

fn open_path(path: &Path, sought: Sought) -> Result<HeapSource, ImportError> {
    let name = path.display().to_string();
    let unreadable = ImportError::unreadable(&name);
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        return open_directory(path, sought);
    }
    let file = File::open(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return open_stream(file, &name, sought);
    }
    let mut head = Vec::new();
    file.take(PACKED_HEAD as u64)
        .read_to_end(&mut head)
        .map_err(unreadable)?;
    let hprofs = || open_hprofs(path);
    let pprof = || open_pprof(path);
    open_kind(innermost(&head), sought, hprofs, pprof, || open(path))
}

fn open_directory(path: &Path, sought: Sought) -> Result<HeapSource, ImportError> {
    let error = match open(path) {
        Ok(traces) => return Ok(HeapSource::Traces(traces)),
        Err(error @ ImportError::NoTraceInside { .. }) => error,
        Err(error) => return Err(error),
    };
    if sought == Sought::Any {
        let name = path.display().to_string();
        let profiles = pprof::in_directory(path).map_err(ImportError::unreadable(&name))?;
        if !profiles.is_empty() {
            let profiles: Result<_, _> = profiles.iter().map(|p| open_pprof(p)).collect();
            return Ok(HeapSource::Pprofs(profiles?));
        }
    }
    match open_hprofs(path) {
        Err(ImportError::NoHprofInside { .. }) => Err(error),
        found => found.map(HeapSource::Hprofs),
    }
}

fn open_stream(stream: impl Read, name: &str, sought: Sought) -> Result<HeapSource, ImportError> {
    let (bytes, budget) = spool_stream(stream, name)?;
    let hprofs = || hprofs_of_bytes(bytes.clone(), name, &budget);
    let pprof = || pprof::of_bytes(bytes.clone(), name, &budget);
    let traces = || unpack(Box::new(Cursor::new(bytes.clone())), name, 0, &budget);
    open_kind(innermost(&bytes), sought, hprofs, pprof, traces)
}

/// Opens an input whose innermost type is known, as one of the kinds that it can be.
fn open_kind(
    kind: Kind,
    sought: Sought,
    hprofs: impl FnOnce() -> Result<Vec<HprofInput>, ImportError>,
    pprof: impl FnOnce() -> Result<PprofInput, ImportError>,
    traces: impl FnOnce() -> Result<Vec<OpenTrace>, ImportError>,
) -> Result<HeapSource, ImportError> {
    let hprofs = || hprofs().map(HeapSource::Hprofs);
    let traces = || traces().map(HeapSource::Traces);
    match (kind, sought) {
        (Kind::Hprof, _) => hprofs(),
        (Kind::Pprof, Sought::Any) => Ok(HeapSource::Pprofs(vec![pprof()?])),
        // The first bytes of an archive do not show its content.
        (Kind::Zip | Kind::Tar, Sought::Any) => {
            traces().or_else(|error| hprofs().map_err(|_| error))
        }
        (Kind::Zip | Kind::Tar, Sought::Java) => match hprofs() {
            Err(ImportError::NoHprofInside { .. } | ImportError::NotAnHprof { .. }) => traces(),
            found => found,
        },
        (_, sought) => traces().map_err(|error| match (error, sought) {
            (ImportError::NotATrace { name, what }, Sought::Any) => {
                ImportError::NotAHeap { name, what }
            }
            (ImportError::NotATrace { name, what }, Sought::Java) => {
                ImportError::NotAJavaHeap { name, what }
            }
            (error, _) => error,
        }),
    }
}

fn open_pprof(path: &Path) -> Result<PprofInput, ImportError> {
    let name = path.display().to_string();
    let bytes = Bytes::map(path).map_err(ImportError::unreadable(&name))?;
    let budget = Budget::from_packed(bytes.len() as u64);
    pprof::of_bytes(bytes, &name, &budget)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_base::error::Classified;

    #[test]
    fn who_gives_something_else_hears_of_all_kinds() {
        let Err(error) = open_heaps_stream(&b"just some words"[..], "notes") else {
            panic!("a text is not a heap")
        };
        assert_eq!(error.kind(), "not-a-heap");
        assert!(
            error
                .to_string()
                .starts_with("notes does not contain a heap: it is ")
        );
        let help = error.help().unwrap();
        for kind in ["trace", "pprof", "HPROF"] {
            assert!(help.contains(kind), "{help}");
        }
    }
}
