//! Opening of inputs that contain heaps of any type: traces, pprofs and HPROFs.

use super::codec::innermost;
use super::detect::Kind;
use super::hprof::{HprofInput, JavaSource, hprofs_of_bytes, spool_stream};
use super::pprof::{self, PprofInput};
use super::spool::Budget;
use super::{ImportError, OpenTrace, open_hprofs, open_java};
use heaptap_model::bytes::Bytes;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

/// Content of an input of heaps.
pub enum HeapSource {
    /// Perfetto traces, as returned by [`open`](super::open); several in a bundle.
    Traces(Vec<OpenTrace>),
    /// pprofs: one, or those of a directory in order of their numbers; at least one.
    Pprofs(Vec<PprofInput>),
    /// HPROFs: one, or all in an archive or directory; at least one.
    Hprofs(Vec<HprofInput>),
}

/// Number of first bytes that reliably show the type of an input.
const HEAD: u64 = 1 << 20;

/// Opens a file or directory. If a directory contains a trace and other files, returns the trace.
///
/// # Errors
/// Returns an error if the input does not contain a heap, or if it cannot be read.
pub fn open_heaps(path: &Path) -> Result<HeapSource, ImportError> {
    let name = path.display().to_string();
    let unreadable = ImportError::unreadable(&name);
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        return match super::open(path) {
            Ok(traces) => Ok(HeapSource::Traces(traces)),
            Err(error @ ImportError::NoTraceInside { .. }) => {
                let profiles = pprof::in_folder(path).map_err(unreadable)?;
                if !profiles.is_empty() {
                    let profiles: Result<_, _> = profiles.iter().map(|p| open_pprof(p)).collect();
                    return Ok(HeapSource::Pprofs(profiles?));
                }
                match open_hprofs(path) {
                    Ok(found) => Ok(HeapSource::Hprofs(found)),
                    Err(ImportError::NoHprofInside { .. }) => Err(error),
                    Err(error) => Err(error),
                }
            }
            Err(error) => Err(error),
        };
    }
    if !metadata.is_file() {
        let file = File::open(path).map_err(unreadable)?;
        return open_heaps_stream(file, &name);
    }
    let mut head = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(HEAD).read_to_end(&mut head).map_err(unreadable)?;
    match innermost(&head) {
        Kind::Hprof => open_hprofs(path).map(HeapSource::Hprofs),
        Kind::Pprof => Ok(HeapSource::Pprofs(vec![open_pprof(path)?])),
        // The first bytes of an archive do not show its content.
        Kind::Zip | Kind::Tar => match super::open(path) {
            Ok(traces) => Ok(HeapSource::Traces(traces)),
            Err(error) => match open_java(path) {
                Ok(JavaSource::Hprofs(found)) => Ok(HeapSource::Hprofs(found)),
                Ok(JavaSource::Traces(found)) => Ok(HeapSource::Traces(found)),
                Err(_) => Err(error),
            },
        },
        _ => super::open(path).map(HeapSource::Traces).map_err(no_heap),
    }
}

/// Opens a stream, for example stdin.
///
/// # Errors
/// Returns the same errors as [`open_heaps`].
pub fn open_heaps_stream(stream: impl Read, name: &str) -> Result<HeapSource, ImportError> {
    let (bytes, budget) = spool_stream(stream, name)?;
    match innermost(&bytes) {
        Kind::Hprof => return hprofs_of_bytes(bytes, name, &budget).map(HeapSource::Hprofs),
        Kind::Pprof => {
            let profile = pprof::of_bytes(bytes, name, &budget)?;
            return Ok(HeapSource::Pprofs(vec![profile]));
        }
        _ => {}
    }
    let traces = super::unpack(Box::new(Cursor::new(bytes)), name, 0, &budget);
    traces.map(HeapSource::Traces).map_err(no_heap)
}

fn open_pprof(path: &Path) -> Result<PprofInput, ImportError> {
    let name = path.display().to_string();
    let bytes = Bytes::map(path).map_err(ImportError::unreadable(&name))?;
    let budget = Budget::of(bytes.len() as u64);
    pprof::of_bytes(bytes, &name, &budget)
}

fn no_heap(error: ImportError) -> ImportError {
    match error {
        ImportError::NotATrace { name, what } => ImportError::NotAHeap { name, what },
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::error::Classified;

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
