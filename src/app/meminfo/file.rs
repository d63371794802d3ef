//! Meminfo from files: what was saved of a phone, a document of `--json`, or the texts that a
//! recording keeps at its labels.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::document::{Document, KIND};
use super::error::MeminfoError;
use crate::memory::meminfo::Meminfo;
use crate::memory::timeline::Source;

/// No meminfo is larger: a phone with a thousand processes has 1 MiB.
const LARGEST: u64 = 32 << 20;

/// The folder in a recording's folder where the texts are.
const FOLDER: &str = "meminfo";

/// Reads a file, standard input (`-`), or of a recording's folder the text at its last label,
/// or at the one that is named: `FOLDER@LABEL`, `FOLDER@2`, `FOLDER@last`.
///
/// # Errors
/// Where it can't be read or holds something else.
pub fn read(path: &Path) -> Result<Document, MeminfoError> {
    if path == Path::new("-") {
        let bytes = bounded(io::stdin().lock(), path)?;
        return document(&bytes, "standard input".to_owned());
    }
    let mut texts = Vec::new();
    for path in files(path)? {
        let file = File::open(&path).map_err(|source| MeminfoError::Unreadable {
            path: path.clone(),
            source,
        })?;
        texts.push(document(
            &bounded(file, &path)?,
            path.display().to_string(),
        )?);
    }
    let mut texts = texts.into_iter();
    let mut all = texts.next().unwrap_or_default();
    // One text for each process at the label.
    for text in texts {
        all.processes.extend(text.processes);
        all.troubles.extend(text.troubles);
        all.unknown.extend(text.unknown);
    }
    Ok(all)
}

/// Whether a file looks like one of ours: what `diff` asks before it takes it for a heap.
pub fn looks_like_meminfo(path: &Path) -> bool {
    let mut begin = Vec::new();
    let opened = File::open(path).and_then(|file| file.take(4096).read_to_end(&mut begin));
    if opened.is_err() {
        return false;
    }
    let begin = String::from_utf8_lossy(&begin);
    let json = begin.trim_start().starts_with('{');
    if json {
        let packed: String = begin.split_whitespace().collect();
        return packed.contains(&format!("\"kind\":\"{KIND}\""));
    }
    begin.starts_with("Applications Memory Usage")
        || begin.contains("\nApplications Memory Usage")
        || begin.contains("** MEMINFO in pid ")
}

fn bounded(from: impl Read, path: &Path) -> Result<Vec<u8>, MeminfoError> {
    let mut bytes = Vec::new();
    let read = from.take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|source| MeminfoError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    if bytes.len() as u64 > LARGEST {
        return Err(MeminfoError::NotMeminfo {
            name: path.display().to_string(),
            why: "it is larger than any".to_owned(),
        });
    }
    Ok(bytes)
}

fn document(bytes: &[u8], name: String) -> Result<Document, MeminfoError> {
    let text = String::from_utf8_lossy(bytes);
    if text.trim_start().starts_with('{') {
        let read: Result<Document, _> = serde_json::from_str(&text);
        return match read {
            Ok(document) if document.kind == KIND => Ok(document),
            Ok(_) => Err(MeminfoError::NotMeminfo {
                name,
                why: "it is a document of another kind".to_owned(),
            }),
            Err(error) => Err(MeminfoError::NotMeminfo {
                name,
                why: error.to_string(),
            }),
        };
    }
    let meminfo = Meminfo::parse(&text);
    let document = Document::of(&meminfo, name.clone(), Source::Meminfo);
    if let Some(target) = meminfo.no_process()
        && document.processes.is_empty()
    {
        return Err(MeminfoError::NotMeminfo {
            name,
            why: format!("when it was made, no process of {target} ran"),
        });
    }
    if document.processes.is_empty() && document.phone.is_none() {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        return Err(MeminfoError::NotMeminfo {
            name,
            why: match line {
                Some(line) => format!("it begins {:?}", line.chars().take(60).collect::<String>()),
                None => "it is empty".to_owned(),
            },
        });
    }
    Ok(document)
}

/// The files that are meant.
fn files(path: &Path) -> Result<Vec<PathBuf>, MeminfoError> {
    let (folder, which) = match path.to_str().and_then(|text| text.rsplit_once('@')) {
        Some((folder, which)) if !path.exists() => (PathBuf::from(folder), which.to_owned()),
        _ => (path.to_owned(), "last".to_owned()),
    };
    if !folder.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |source| MeminfoError::Unreadable {
        path: folder.join(FOLDER),
        source,
    };
    let mut kept = Vec::new();
    for entry in folder.join(FOLDER).read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let stem = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        let text = path.extension().is_some_and(|extension| extension == "txt");
        if let (true, Some((number, label))) =
            (text, stem.as_deref().and_then(|s| s.split_once('-')))
            && let Ok(number) = number.parse::<u32>()
        {
            kept.push((number, label.to_owned(), path));
        }
    }
    kept.sort();
    let number = match which.as_str() {
        "last" => kept.last().map(|(number, ..)| *number),
        which => kept
            .iter()
            .find(|(number, label, _)| {
                which.parse() == Ok(*number) || label == which || is_of(label, which)
            })
            .map(|(number, ..)| *number),
    };
    let Some(wanted) = number else {
        let labels: Vec<&str> = kept.iter().map(|(_, label, _)| label.as_str()).collect();
        return Err(MeminfoError::NoSuchText {
            name: folder.display().to_string(),
            which,
            there: match labels.is_empty() {
                true => "record with --with meminfo, and set labels".to_owned(),
                false => format!("there are {}", labels.join(", ")),
            },
        });
    };
    let meant = kept.into_iter().filter(|(number, ..)| *number == wanted);
    Ok(meant.map(|(.., path)| path).collect())
}

/// Whether a file's name is that of a label, with a pid behind it.
fn is_of(name: &str, label: &str) -> bool {
    let rest = name.strip_prefix(label);
    rest.is_some_and(|rest| rest.starts_with(['-', '.']) && rest[1..].parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "** MEMINFO in pid 7 [a] **\n App Summary\n  Java Heap:  5\n";

    #[test]
    fn a_recordings_folder_gives_the_text_at_a_label() {
        let folder = tempfile::tempdir().unwrap();
        let texts = folder.path().join(FOLDER);
        std::fs::create_dir(&texts).unwrap();
        for (name, pid) in [
            ("01-start", 1),
            ("02-after-login-8", 8),
            ("02-after-login-9", 9),
        ] {
            let text = TEXT.replace("pid 7", &format!("pid {pid}"));
            std::fs::write(texts.join(format!("{name}.txt")), text).unwrap();
        }
        let at = |which: &str| {
            let read = read(Path::new(&format!("{}{which}", folder.path().display())));
            let pids = |all: Document| all.processes.iter().map(|p| p.pid).collect::<Vec<_>>();
            read.map(pids)
        };
        assert_eq!(at("").unwrap(), [Some(8), Some(9)]);
        assert_eq!(at("@start").unwrap(), [Some(1)]);
        assert_eq!(at("@2").unwrap(), [Some(8), Some(9)]);
        assert_eq!(at("@after-login").unwrap(), [Some(8), Some(9)]);
        assert!(matches!(at("@end"), Err(MeminfoError::NoSuchText { .. })));
    }

    #[test]
    fn a_document_comes_back_and_other_files_are_refused() {
        let first = document(TEXT.as_bytes(), "a".to_owned()).unwrap();
        let json = serde_json::to_vec(&first).unwrap();
        assert_eq!(document(&json, String::new()).unwrap(), first);
        for other in [
            "",
            "{}",
            "{\"kind\":\"leaks\",\"from\":\"\"}",
            "hello\n",
            "No process found for: x\n",
        ] {
            let read = document(other.as_bytes(), "a".to_owned());
            assert!(
                matches!(read, Err(MeminfoError::NotMeminfo { .. })),
                "{other}"
            );
        }
    }
}
