//! What an argument names that may be a file as well as a process on the phone. Owns the one rule
//! of all commands that take either, and what is said of a file that is not there.

use std::ffi::OsStr;
use std::path::{Path, PathBuf, is_separator};

use crate::error::{ErrorClass, Failure};
use crate::folder::RAW_TRACE;
use crate::heaps::selector::JavaInput;
use crate::import::STDIN;
use crate::near::{is_slip, nearest};
use crate::results::manifest;
use crate::timeline;
use crate::untrusted::sanitize;

/// What was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    /// A file or folder that is there, and which moment of it; `-` is standard input.
    File(JavaInput),
    /// A process on the phone, or a package.
    Process(String),
}

/// Endings that files have which these commands read, and no package's name.
const OF_FILES: [&str; 13] = [
    "txt",
    "gz",
    "zst",
    "xz",
    "pftrace",
    "perfetto-trace",
    "hprof",
    "jsonl",
    "smaps",
    "showmap",
    "heapprofd",
    "pb",
    "tgz",
];
/// Endings that the last part of a package's name may be, too: `com.example.log`.
const OF_EITHER: [&str; 6] = ["log", "zip", "json", "xml", "trace", "tar"];
/// Where programs lie on a phone: their processes are called by their paths.
const ON_PHONES: [&str; 6] = [
    "/system/",
    "/system_ext/",
    "/vendor/",
    "/product/",
    "/odm/",
    "/apex/",
];
/// Further names of a folder are not looked at for one that was meant.
const MOST_NAMES: usize = 10_000;

impl Named {
    /// What was typed: a file where there is one, a process where none can be meant.
    ///
    /// # Errors
    /// Where only a file can be meant, and there is none.
    pub(crate) fn parse(typed: &OsStr) -> Result<Named, Failure> {
        Named::parse_in(Path::new(""), typed).map_err(Missing::failure)
    }

    fn parse_in(folder: &Path, typed: &OsStr) -> Result<Named, Missing> {
        if typed == STDIN {
            return Ok(Named::File(JavaInput::parse(typed)));
        }
        let input = JavaInput::parse(folder.join(typed).as_os_str());
        let text = typed.to_str();
        let is_package = text.is_some_and(|text| is_package(before_moment(text, &input)));
        if is_there(&input.path, is_package) {
            return Ok(Named::File(input));
        }
        let near = Near::of(&input.path);
        match text {
            Some(text) if !is_file_name(text, &input, near.slip.is_some()) => {
                Ok(Named::Process(text.to_owned()))
            }
            // A name of a process is one in UTF-8.
            _ => Err(Missing {
                path: input.path,
                near: near.slip.or(near.any),
            }),
        }
    }

    /// The only one of several arguments, where it is a file.
    ///
    /// # Errors
    /// As [`Named::parse`]; where files stand beside others.
    pub(crate) fn file_alone(typed: &[String]) -> Result<Option<JavaInput>, Failure> {
        let mut file = None;
        for text in typed {
            if let Named::File(input) = Named::parse(OsStr::new(text))? {
                file = Some(input);
            }
        }
        if file.is_some() && typed.len() > 1 {
            let what = "a file or recording is shown alone, without other files or processes";
            return Err(Failure::new(ErrorClass::Usage, "usage", what)
                .with_help("give the one or the others"));
        }
        Ok(file)
    }
}

/// A folder of sources may have the name of the package that they become.
fn is_there(path: &Path, is_package: bool) -> bool {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => !is_package || is_recording(path),
        Ok(_) => true,
        Err(_) => false,
    }
}

fn is_recording(folder: &Path) -> bool {
    [manifest::FILE_NAME, timeline::FILE, RAW_TRACE]
        .iter()
        .any(|file| folder.join(file).is_file())
}

/// What was typed but for the moment: `@before..after` and `@v1.2.3` have dots of their own.
fn before_moment<'a>(text: &'a str, input: &JavaInput) -> &'a str {
    match text.rsplit_once('@') {
        Some((before, _)) if input.which.is_some() => before,
        _ => text,
    }
}

/// Whether `text` may be a package's name, or that of one of its processes. Files with two dots
/// are rarer than packages with one.
fn is_package(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:@*".contains(c);
    text.matches('.').count() >= 2 && text.chars().all(plain)
}

/// Whether only a file can be meant, though there is none.
fn is_file_name(text: &str, input: &JavaInput, is_slip: bool) -> bool {
    if text.contains(is_separator) {
        return !ON_PHONES.iter().any(|folder| text.starts_with(folder));
    }
    let ending = input.path.extension().and_then(OsStr::to_str);
    let ending = ending.map(str::to_ascii_lowercase);
    let has = |endings: &[&str]| ending.as_deref().is_some_and(|end| endings.contains(&end));
    if has(&OF_FILES) {
        return true;
    }
    let name = before_moment(text, input);
    if is_package(name) || text.parse::<u32>().is_ok() || name.contains([':', '*']) {
        return false;
    }
    has(&OF_EITHER) || input.which.is_some() || is_slip
}

/// What is there, readable for these commands, and called almost like a file that is not.
#[derive(Default)]
struct Near {
    /// Of the same name but for a slip.
    slip: Option<PathBuf>,
    /// Worth asking whether it was meant.
    any: Option<PathBuf>,
}

impl Near {
    fn of(path: &Path) -> Near {
        match path.file_name().and_then(OsStr::to_str) {
            Some(wanted) => Near::beside(path, wanted),
            None => Near::default(),
        }
    }

    fn beside(path: &Path, wanted: &str) -> Near {
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let folder = parent.unwrap_or(Path::new("."));
        let Ok(entries) = std::fs::read_dir(folder) else {
            return Near::default();
        };
        let names: Vec<String> = entries
            .flatten()
            .take(MOST_NAMES)
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_ours(&folder.join(name)))
            .collect();
        let place = |name: &str| match parent {
            Some(parent) => parent.join(name),
            None => PathBuf::from(name),
        };
        let slips = names
            .iter()
            .map(String::as_str)
            .filter(|name| !is_begun(wanted, name) && is_slip(wanted, name));
        Near {
            slip: nearest(wanted, slips).map(place),
            any: nearest(wanted, names.iter().map(String::as_str)).map(place),
        }
    }
}

/// Whether these commands may read it.
fn is_ours(path: &Path) -> bool {
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let is_known = |known: &&str| known.eq_ignore_ascii_case(ending);
    OF_FILES.iter().chain(&OF_EITHER).any(is_known) || is_recording(path)
}

/// Whether a file's name without its ending begins with `wanted`: `logd.txt` is what was saved of
/// the process `logd`, which still may be meant.
fn is_begun(wanted: &str, name: &str) -> bool {
    let stem = Path::new(name).file_stem().and_then(OsStr::to_str);
    stem.is_some_and(|stem| stem.starts_with(wanted))
}

/// A file that is not there.
#[derive(Debug, PartialEq, Eq)]
struct Missing {
    path: PathBuf,
    near: Option<PathBuf>,
}

impl Missing {
    fn failure(self) -> Failure {
        let path = self.path.display().to_string();
        let help = match self.near {
            Some(near) => format!("did you mean {}?", sanitize(&near.display().to_string())),
            None => "is the path right? A process of the phone is named as `heaptap apps` lists \
                     it, or by its number"
                .to_owned(),
        };
        Failure::new(
            ErrorClass::BadInput,
            "input-unreadable",
            format!("there is no file or folder {}", sanitize(&path)),
        )
        .with_help(help)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is meant, else the name of what may be.
    fn parse(folder: &Path, typed: &str) -> Result<Named, String> {
        Named::parse_in(folder, OsStr::new(typed)).map_err(|missing| {
            let near = missing.near.as_deref().and_then(Path::file_name);
            near.unwrap_or_default().to_string_lossy().into_owned()
        })
    }

    #[test]
    fn a_slip_in_the_name_of_a_file_is_no_process() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        for recording in ["rec", "com.example.app"] {
            std::fs::create_dir(at.join(recording)).unwrap();
            std::fs::write(at.join(recording).join("manifest.json"), "{}").unwrap();
        }
        std::fs::create_dir(at.join("audioservice")).unwrap();
        std::fs::write(at.join("audioservice").join(RAW_TRACE), "x").unwrap();
        for sources in ["com.example.lib", "src"] {
            std::fs::create_dir(at.join(sources)).unwrap();
        }
        for file in [
            "logcat.txt",
            "notes",
            "logd.txt",
            "system_server.smaps.gz",
            "zygote64.json",
            "mediaserver.txt",
        ] {
            std::fs::write(at.join(file), "x").unwrap();
        }
        for (typed, meant) in [
            ("logcat.tx", "logcat.txt"),
            ("logcta.txt", "logcat.txt"),
            ("recc", "rec"),
            ("recc@last", "rec"),
            ("recc@before..after", "rec"),
            ("recc@v1.2.3", "rec"),
            ("recc@10:30", "rec"),
            ("gone@last", ""),
            ("gone@before..after", ""),
            ("logd.tx", "logd.txt"),
            ("logd.smaps", ""),
            ("gone.log", ""),
            ("gone.txt.xz", ""),
            ("x/gone", ""),
            ("./logcat.tx", "logcat.txt"),
            ("com.example.app.hprof", ""),
        ] {
            assert_eq!(parse(at, typed), Err(meant.to_owned()), "{typed}");
        }
        for typed in [
            "com.example.ap",
            "com.example.log",
            "com.example.app:remote",
            "com.example.*",
            "com.example.lib",
            "android.hardware.audio@2.0-service",
            "1234",
            "com.example.gone@before..after",
            "logd",
            "log",
            "lmkd",
            "zygote",
            "audioserver",
            "mediaserver",
            "note",
            "app_process",
            "system_server",
        ] {
            assert_eq!(parse(at, typed), Ok(Named::Process(typed.to_owned())));
        }
        for typed in [
            "logcat.txt",
            "rec",
            "rec@last",
            "com.example.app",
            "src",
            "src@before..after",
            "rec@before..after",
            "com.example.app@before..after",
            "notes",
            "-",
        ] {
            assert!(matches!(parse(at, typed), Ok(Named::File(_))), "{typed}");
        }
    }

    #[test]
    fn a_program_of_the_phone_goes_by_its_path() {
        let logd = Named::parse(OsStr::new("/system/bin/logd-of-no-computer")).unwrap();
        assert!(matches!(logd, Named::Process(_)));
        let gone = Named::parse(OsStr::new("/gone/\u{1b}[31m")).unwrap_err();
        assert_eq!(gone.class, ErrorClass::BadInput);
        assert!(!gone.message.contains('\u{1b}'), "{}", gone.message);
    }
}
