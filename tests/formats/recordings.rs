//! Traces to compare with what other tools say of them: fixtures, and recordings from outside of
//! the repository.

use std::path::{Path, PathBuf};

/// A trace, and the folder of what is expected of it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Recording {
    pub name: String,
    pub trace: PathBuf,
    pub expected: PathBuf,
}

fn fixtures(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(folder)
}

fn of_folders(folders: impl Iterator<Item = PathBuf>) -> Vec<Recording> {
    let mut found = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let trace = entry.expect("the folder can be read").path();
            let name = trace.file_name().unwrap_or_default().to_string_lossy();
            if let Some((name, _)) = name.split_once(".pftrace") {
                found.push(Recording {
                    name: name.to_owned(),
                    expected: folder.join(name),
                    trace: trace.clone(),
                });
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "recordings are there");
    found
}

/// The recordings in a folder of the fixtures; with HEAPTAP_RECORDINGS=DIR also those in `more`
/// folders below it.
pub fn recordings(own: &str, more: &[&str]) -> Vec<Recording> {
    let given = std::env::var_os("HEAPTAP_RECORDINGS").map(PathBuf::from);
    let given = given
        .iter()
        .flat_map(|given| more.iter().map(|name| given.join(name)));
    of_folders([fixtures(own)].into_iter().chain(given))
}

/// The recordings in `folders` below HEAPTAP_RECORDINGS, for a test that needs them.
pub fn given(folders: &[&str]) -> Vec<Recording> {
    let given = crate::judge::given("HEAPTAP_RECORDINGS");
    of_folders(folders.iter().map(|name| given.join(name)))
}
