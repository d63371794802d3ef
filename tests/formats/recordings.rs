//! Traces to compare with what other tools say of them: fixtures, and recordings from outside of
//! the repository.

use std::path::{Path, PathBuf};

/// A trace, and the directory of what is expected of it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Recording {
    pub name: String,
    pub trace: PathBuf,
    pub expected: PathBuf,
}

fn fixtures(directory: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(directory)
}

fn of_directories(directories: impl Iterator<Item = PathBuf>) -> Vec<Recording> {
    let mut found = Vec::new();
    for directory in directories {
        for entry in std::fs::read_dir(&directory).into_iter().flatten() {
            let trace = entry.expect("the folder can be read").path();
            let name = trace.file_name().unwrap_or_default().to_string_lossy();
            if let Some((name, _)) = name.split_once(".pftrace") {
                found.push(Recording {
                    name: name.to_owned(),
                    expected: directory.join(name),
                    trace: trace.clone(),
                });
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "recordings are there");
    found
}

/// The recordings in a directory of the fixtures; with HEAPTAP_RECORDINGS=DIR also those in `more`
/// directories below it.
pub fn recordings(own: &str, more: &[&str]) -> Vec<Recording> {
    let given = std::env::var_os("HEAPTAP_RECORDINGS").map(PathBuf::from);
    let given = given
        .iter()
        .flat_map(|given| more.iter().map(|name| given.join(name)));
    of_directories([fixtures(own)].into_iter().chain(given))
}

/// The recordings in `directories` below HEAPTAP_RECORDINGS, for a test that needs them.
pub fn given(directories: &[&str]) -> Vec<Recording> {
    let given = crate::judge::given("HEAPTAP_RECORDINGS");
    of_directories(directories.iter().map(|name| given.join(name)))
}
