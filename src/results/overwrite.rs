//! What an output may replace: never an input or a file of a recording, other files with `--force`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::manifest;
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::folder::{self, DEOBFUSCATION, RAW_TRACE, SYMBOLIZED_TRACE, SYMBOLS};
use crate::timeline;

/// Beginnings of the names of a recording's files.
const BEGINNINGS: [&str; 3] = ["heap_dump.", "java_heap_dump.", "java_allocations."];
/// Other names of a recording's files, for its original data or for files derived from it.
const NAMES: [&str; 8] = [
    RAW_TRACE,
    SYMBOLIZED_TRACE,
    SYMBOLS,
    DEOBFUSCATION,
    manifest::FILE_NAME,
    timeline::FILE,
    "gc.jsonl",
    "logcat.txt",
];

/// Refusal to replace a file.
#[derive(Debug, thiserror::Error)]
pub enum OverwriteError {
    /// It is an input.
    #[error("cannot overwrite the input {}", .0.display())]
    Input(PathBuf),
    /// It belongs to a recording.
    #[error("cannot overwrite {}: it belongs to the recording", .0.display())]
    OfRecording(PathBuf),
    /// It holds something.
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
}

impl Classified for OverwriteError {
    fn facts(&self) -> ErrorFacts {
        match self {
            OverwriteError::Input(_) | OverwriteError::OfRecording(_) => {
                ErrorFacts::new(ErrorClass::Usage, "output-is-input")
                    .with_help("name another file with `-o`")
            }
            OverwriteError::Exists(_) => ErrorFacts::new(ErrorClass::Usage, "output-taken")
                .with_help("name another file, or add `--force` to overwrite it"),
        }
    }
}

/// What an output may replace, apart from files that hold nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    Nothing,
    /// `--force`: files of the user.
    Forced,
    /// Also a file of a recording: its content is of the kind that is written.
    Alike,
}

impl Replace {
    pub fn of_force(force: bool) -> Replace {
        match force {
            true => Replace::Forced,
            false => Replace::Nothing,
        }
    }
}

/// Refuses to write to `output` if that loses an input, a file of a recording, or anything else that
/// `replace` does not allow.
///
/// # Errors
/// Returns the refusal.
pub fn check<'a>(
    output: &Path,
    inputs: impl IntoIterator<Item = &'a Path>,
    replace: Replace,
) -> Result<(), OverwriteError> {
    let real = |path: &Path| path.canonicalize().ok();
    // A link to a file counts as that file.
    let there = real(output);
    let goal = there.clone().or_else(|| {
        let folder = real(folder::of(output))?;
        Some(folder.join(output.file_name()?))
    });
    let inputs: Vec<PathBuf> = inputs.into_iter().filter_map(real).collect();
    if there
        .as_ref()
        .is_some_and(|there| there.is_file() && inputs.contains(there))
    {
        return Err(OverwriteError::Input(output.to_owned()));
    }
    if replace == Replace::Alike {
        return Ok(());
    }
    let is_of_recording = goal.as_deref().is_some_and(|goal| {
        let is_recording =
            |folder: &Path| folder.join(manifest::FILE_NAME).is_file() || is_one(&inputs, folder);
        goal.file_name().is_some_and(is_own_name) && goal.parent().is_some_and(is_recording)
    });
    if is_of_recording {
        return Err(OverwriteError::OfRecording(output.to_owned()));
    }
    match replace == Replace::Nothing && holds_something(output) {
        true => Err(OverwriteError::Exists(output.to_owned())),
        false => Ok(()),
    }
}

fn is_one(inputs: &[PathBuf], folder: &Path) -> bool {
    inputs.iter().any(|input| input == folder)
}

/// Returns whether replacing a file would lose data. A pipe or a device contains none.
pub fn holds_something(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|it| it.is_dir() || it.is_file() && it.len() > 0)
}

/// Returns whether a recording uses the name. Ignores case, because some file systems do.
fn is_own_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    let begins = BEGINNINGS
        .iter()
        .any(|beginning| name.starts_with(beginning));
    begins || NAMES.contains(&&*name) || name.ends_with(".hprof")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(output: &Path, input: &Path, replace: Replace) -> Option<&'static str> {
        let checked = check(output, [input], replace);
        checked.err().map(|error| error.facts().kind)
    }

    #[test]
    fn files_of_a_recording_are_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("rec");
        std::fs::create_dir_all(input.join("more")).unwrap();
        std::fs::write(input.join("raw-trace"), "trace").unwrap();
        for name in [
            "raw-trace",
            "symbolized-trace",
            "Manifest.JSON",
            "symbols",
            "deobfuscation-packets",
            "heap_dump.0.7.libc.malloc.pb.gz",
            "java_heap_dump.1.7.pb.gz",
            "java_allocations.1.7.pb.gz",
            "memory.jsonl",
            "app.hprof",
            "more/../raw-trace",
        ] {
            let refused = refusal(&input.join(name), &input, Replace::Forced);
            assert_eq!(refused, Some("output-is-input"), "{name}");
        }
        // Files derived from a recording can be in its directory, and such names elsewhere.
        for path in ["rec/mine.json", "raw-trace", "rec/more/symbols", "no/x"] {
            let path = folder.path().join(path);
            assert_eq!(refusal(&path, &input, Replace::Forced), None, "{path:?}");
        }
        let symbols = input.join("symbols");
        assert_eq!(refusal(&symbols, &input, Replace::Alike), None);
        // A recording that is not an input, too.
        std::fs::write(input.join("manifest.json"), "{}").unwrap();
        let refused = refusal(&symbols, folder.path(), Replace::Forced);
        assert_eq!(refused, Some("output-is-input"));
    }

    #[test]
    fn others_are_overwritten_by_force_and_an_input_never() {
        let folder = tempfile::tempdir().unwrap();
        let (file, empty) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&file, "x").unwrap();
        std::fs::write(&empty, "").unwrap();
        let of = |path: &Path, replace| refusal(path, &folder.path().join("i"), replace);
        assert_eq!(of(&file, Replace::Nothing), Some("output-taken"));
        assert_eq!(of(&file, Replace::Forced), None);
        assert_eq!(of(&empty, Replace::Nothing), None);
        let input = refusal(&file, &file, Replace::Alike);
        assert_eq!(input, Some("output-is-input"));
    }
}
