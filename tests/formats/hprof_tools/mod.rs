//! `hprof conv`, `info` and `strip` as a whole: on generated dumps, and with HEAPTAP_HPROF=DIR also
//! on every dump below it. If `tests/run.sh` runs them, Android's own hprof-conv and VisualVM's
//! reader check the results; it installs both.

mod command;
mod conv;
mod dump;
mod strip;
mod visualvm;
mod written;

use android_hprof::info::info;
use heaptap_input::open_hprofs;
use std::path::{Path, PathBuf};

/// Dumps of the directory HEAPTAP_HPROF, unpacked, by name; empty if it is not set.
fn given() -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let Some(directory) = std::env::var_os("HEAPTAP_HPROF") else {
        return found;
    };
    let mut directories = vec![PathBuf::from(directory)];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("HEAPTAP_HPROF is a folder") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                directories.push(path);
            } else if is_dump(&path)
                && let Ok(dumps) = open_hprofs(&path)
            {
                let dumps = dumps.into_iter().map(|it| (it.name, it.bytes.to_vec()));
                // Some do not have a readable header.
                found.extend(dumps.filter(|(_, bytes)| info(bytes).is_ok()));
            }
        }
    }
    assert!(!found.is_empty(), "there are dumps in HEAPTAP_HPROF");
    found.sort();
    found
}

fn is_dump(path: &Path) -> bool {
    let name = path.to_string_lossy();
    [".hprof", ".hprof.gz", ".bin"]
        .iter()
        .any(|ending| name.ends_with(ending))
}
