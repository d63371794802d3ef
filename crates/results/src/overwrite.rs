//! What an output may replace: never an input or a file of a recording, other files with `--force`.

use std::path::{Path, PathBuf};

use super::manifest::{self, Manifest};
use heaptap_base::directory::{self, DEOBFUSCATION, MARKER, RAW_TRACE, SYMBOLIZED_TRACE, SYMBOLS};
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_base::unfinished::ExistingFile;

/// Names of a recording's files, for its original data or for files derived from it.
const NAMES: [&str; 6] = [
    MARKER,
    RAW_TRACE,
    SYMBOLIZED_TRACE,
    SYMBOLS,
    DEOBFUSCATION,
    manifest::FILE_NAME,
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
    /// It is a directory.
    #[error("{} is a directory, not a file", .0.display())]
    Directory(PathBuf),
    /// It holds something.
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
}

impl Classified for OverwriteError {
    fn facts(&self) -> ErrorFacts {
        match self {
            OverwriteError::Input(_) | OverwriteError::OfRecording(_) => {
                ErrorFacts::new(ErrorClass::Usage, "output-is-input").with_help("name another file")
            }
            OverwriteError::Directory(_) => {
                ErrorFacts::new(ErrorClass::Usage, "output-is-directory").with_help("name a file")
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
/// `replace` does not allow. Returns what happens to a file of that name when the output is whole.
///
/// # Errors
/// Returns the refusal.
pub fn check<'a>(
    output: &Path,
    inputs: impl IntoIterator<Item = &'a Path>,
    replace: Replace,
) -> Result<ExistingFile, OverwriteError> {
    let real = |path: &Path| path.canonicalize().ok();
    // A link to a file counts as that file.
    let there = real(output);
    if there.as_ref().is_some_and(|there| there.is_dir()) {
        return Err(OverwriteError::Directory(output.to_owned()));
    }
    let goal = there.clone().or_else(|| {
        let directory = real(directory::of(output))?;
        Some(directory.join(output.file_name()?))
    });
    let inputs: Vec<PathBuf> = inputs.into_iter().filter_map(real).collect();
    if there
        .as_ref()
        .is_some_and(|there| there.is_file() && inputs.contains(there))
    {
        return Err(OverwriteError::Input(output.to_owned()));
    }
    let existing = ExistingFile::for_goal(output);
    if replace == Replace::Alike {
        return Ok(existing);
    }
    if goal.is_some_and(|goal| is_of_recording(&goal, &inputs)) {
        return Err(OverwriteError::OfRecording(output.to_owned()));
    }
    match replace == Replace::Nothing && holds_something(output) {
        true => Err(OverwriteError::Exists(output.to_owned())),
        false => Ok(existing),
    }
}

/// Returns whether a file holds something. A pipe or a device does not.
pub fn holds_something(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() > 0)
}

/// Returns whether a recording has the file, or takes it for its own once it exists.
fn is_of_recording(goal: &Path, inputs: &[PathBuf]) -> bool {
    let (Some(name), Some(directory)) = (goal.file_name(), goal.parent()) else {
        return false;
    };
    let name = name.to_string_lossy();
    let is_there = goal.exists();
    // Some file systems ignore case.
    let is_own = NAMES.iter().any(|own| name.eq_ignore_ascii_case(own));
    match Manifest::read(directory) {
        Ok(manifest) => is_own || is_there && lists(&manifest, &name),
        // A directory of another tool.
        Err(_) if inputs.iter().any(|input| input == directory) => is_own || is_there,
        Err(_) if is_there && name.eq_ignore_ascii_case(RAW_TRACE) => true,
        Err(_) => {
            let below = directory.file_name().unwrap_or_default().to_string_lossy();
            let path = format!("{below}/{name}");
            let manifest = directory.parent().map(Manifest::read).and_then(Result::ok);
            manifest.is_some_and(|manifest| lists(&manifest, &path))
        }
    }
}

/// Returns whether a manifest has a file.
fn lists(manifest: &Manifest, path: &str) -> bool {
    let dumps = &manifest.dumps;
    let native = dumps.native.iter().filter_map(|dump| dump.file.as_ref());
    let java = dumps.java.iter();
    let java = java.flat_map(|dump| [&dump.file, &dump.dominators, &dump.malloc_info]);
    let tracked = manifest.java_allocations.iter();
    let tracked = tracked.flat_map(|all| &all.dumps);
    let tracked = tracked.flat_map(|dump| [&dump.file, &dump.list]);
    let java = java.chain(tracked).flatten();
    let beside = manifest.companion.iter().flat_map(|all| {
        let timeline = all.timeline.as_ref().map(|timeline| &timeline.file);
        let files = all.files.iter().map(|file| &file.file);
        files
            .chain(timeline)
            .chain(&all.collections)
            .chain(&all.log)
    });
    let mut files = native.chain(java).chain(beside);
    files.any(|file| file.eq_ignore_ascii_case(path))
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
        let directory = tempfile::tempdir().unwrap();
        let input = directory.path().join("rec");
        let write = |name: &str| std::fs::write(input.join(name), "x").unwrap();
        std::fs::create_dir_all(input.join("meminfo")).unwrap();
        write("raw-trace");
        let own = [
            "raw-trace",
            "symbolized-trace",
            "Manifest.JSON",
            "symbols",
            "deobfuscation-packets",
            "meminfo/../raw-trace",
        ];
        let refused = |name: &str, input: &Path| {
            refusal(
                &directory.path().join("rec").join(name),
                input,
                Replace::Forced,
            )
        };
        for name in own {
            assert_eq!(refused(name, &input), Some("output-is-input"), "{name}");
        }
        // Files derived from a recording can be in its directory, and such names elsewhere.
        for name in ["mine.json", "java.hprof", "../raw-trace", "../no/x"] {
            assert_eq!(refused(name, &input), None, "{name}");
        }
        let symbols = input.join("symbols");
        assert_eq!(refusal(&symbols, &input, Replace::Alike), None);
        // What the manifest lists, also if the recording is not an input.
        let mut manifest = Manifest::default();
        let beside = |file: &str| manifest::CompanionFile {
            what: "meminfo".to_owned(),
            file: file.to_owned(),
            pid: 7,
            label: None,
            number: 1,
            time_ns: 1,
        };
        manifest.companion = Some(manifest::Companions {
            log: Some("logcat.txt".to_owned()),
            files: vec![
                beside("app.7.malloc_info.xml"),
                beside("meminfo/01-end.txt"),
            ],
            ..manifest::Companions::default()
        });
        let full = manifest::tests::full();
        manifest.dumps.java.push(manifest::JavaDump {
            malloc_info: Some("b.8.malloc_info.xml".to_owned()),
            dominators: Some("b.dominators.pb.gz".to_owned()),
            ..full.dumps.java[0].clone()
        });
        let list = "java-allocations/01-after-login.real.gz";
        let profile = "java_allocations.1.4242.pb.gz";
        manifest.java_allocations = full.java_allocations;
        std::fs::create_dir_all(input.join("java-allocations")).unwrap();
        manifest.write(&input).unwrap();
        let listed = [
            list,
            profile,
            "app.7.malloc_info.xml",
            "logcat.txt",
            "meminfo/01-end.txt",
            "b.8.malloc_info.xml",
            "b.dominators.pb.gz",
        ];
        for name in listed.iter().chain(&["mine.hprof"]) {
            write(name);
        }
        for name in own.iter().chain(&listed) {
            let refused = refused(name, directory.path());
            assert_eq!(refused, Some("output-is-input"), "{name}");
        }
        assert_eq!(refused("mine.hprof", directory.path()), None);
    }

    #[test]
    fn others_are_overwritten_by_force_and_an_input_never() {
        let directory = tempfile::tempdir().unwrap();
        let (file, empty) = (directory.path().join("a"), directory.path().join("b"));
        std::fs::write(&file, "x").unwrap();
        std::fs::write(&empty, "").unwrap();
        let of = |path: &Path, replace| refusal(path, &directory.path().join("i"), replace);
        assert_eq!(of(&file, Replace::Nothing), Some("output-taken"));
        assert_eq!(of(&file, Replace::Forced), None);
        assert_eq!(of(&empty, Replace::Nothing), None);
        let input = refusal(&file, &file, Replace::Alike);
        assert_eq!(input, Some("output-is-input"));
    }
}
