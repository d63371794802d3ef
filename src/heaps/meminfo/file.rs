//! Meminfo from files: saved output, compressed or not, a `--json` document, or the texts of a
//! recording at its labels.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::document::{Document, KIND, ProcessFacts};
use super::error::MeminfoError;
use crate::heaps::moments::{self, Capture, KeptFile, Moments};
use crate::heaps::selector::{DumpSelector, JavaInput, ProcessFilter};
use android_memory::malloc_info;
use android_memory::meminfo::Meminfo;
use heaptap_input::bugreport::{self, Section};
use heaptap_input::{ImportError, Kind, KnownText, TextInput, WholeText, detect, is_directory};
use heaptap_model::timeline::Source;
use heaptap_results::lists::join_list;
use heaptap_results::manifest::Manifest;
use heaptap_results::timeline;

/// Maximum size in bytes: a device with a thousand processes has 1 MiB.
const MAX_SIZE: u64 = 32 << 20;

/// Number of bytes that identify a meminfo.
const BEGIN: usize = 4096;

/// Directory of the texts in a recording directory.
const DIRECTORY: &str = "meminfo";

/// Reads a file, standard input (`-`), or a text of a recording directory: the last one, or the one
/// selected by `DIRECTORY@LABEL`, `DIRECTORY@N`, `DIRECTORY@last`, `DIRECTORY@end`.
///
/// # Errors
/// Returns an error if it cannot be read or contains something else.
pub fn read(input: &JavaInput, processes: &ProcessFilter) -> Result<Document, MeminfoError> {
    let mut texts = Vec::new();
    for path in files(input)? {
        let input = TextInput::typed(&path).map_err(MeminfoError::of_text)?;
        texts.push(of_text(input)?);
    }
    let mut texts = texts.into_iter();
    let mut all = texts.next().unwrap_or_default();
    // One text for each process at the label.
    for text in texts {
        all.processes.extend(text.processes);
        all.troubles.extend(text.troubles);
        all.unknown.extend(text.unknown);
    }
    let takes = |process: &ProcessFacts| {
        let pid = process.pid.map(u64::from);
        processes.takes(pid, process.name.as_deref().unwrap_or_default())
    };
    if !processes.is_empty() && !all.processes.iter().any(takes) {
        return Err(MeminfoError::NoSuchProcess {
            name: input.to_string(),
            process: processes.to_string(),
            there: join_list(all.processes.iter().map(ProcessFacts::called)),
        });
    }
    let there = all.processes.iter().map(|process| {
        let pid = process.pid.map(u64::from);
        (pid, process.name.as_deref().unwrap_or_default())
    });
    all.missing = processes.missing("meminfo of", there);
    all.processes.retain(takes);
    Ok(all)
}

/// Returns whether an input begins like a meminfo text or document.
pub fn is_meminfo(input: &mut TextInput<'_>) -> bool {
    let head = input.text_head().unwrap_or_default();
    if bugreport::year(&head).is_some() {
        return true;
    }
    if !detect(&head).may_be_text() {
        return false;
    }
    let begin = String::from_utf8_lossy(&head[..head.len().min(BEGIN)]);
    let json = begin.trim_start().starts_with('{');
    if json {
        let packed: String = begin.split_whitespace().collect();
        return packed.contains(&format!("\"kind\":\"{KIND}\""));
    }
    begin.starts_with("Applications Memory Usage")
        || begin.contains("\nApplications Memory Usage")
        || begin.contains("** MEMINFO in pid ")
}

fn of_text(input: TextInput<'_>) -> Result<Document, MeminfoError> {
    let (name, kind) = (input.name().to_owned(), input.kind());
    // An archive can contain one uncompressed.
    if !kind.may_be_text() && kind != Kind::Zip && !input.head().is_empty() {
        return Err(MeminfoError::NotMeminfo {
            name,
            why: format!("it is {kind}"),
        });
    }
    match input.section(Section::Meminfo, MAX_SIZE) {
        Ok(Some(WholeText {
            damage: Some(what), ..
        })) => Err(MeminfoError::of_text(ImportError::Damaged { name, what })),
        Ok(Some(text)) if text.is_section && text.bytes.is_empty() => {
            let section = Section::Meminfo.title();
            let why = format!("it is a bug report without the section {section}");
            Err(MeminfoError::NotMeminfo { name, why })
        }
        Ok(Some(text)) => document(&text.bytes, name),
        Ok(None) => {
            let why = format!("it is {kind} without a bug report");
            Err(MeminfoError::NotMeminfo { name, why })
        }
        Err(ImportError::TooLarge { .. }) => Err(MeminfoError::NotMeminfo {
            name,
            why: "it is too large".to_owned(),
        }),
        Err(error) => Err(MeminfoError::of_text(error)),
    }
}

fn document(bytes: &[u8], name: String) -> Result<Document, MeminfoError> {
    let text = String::from_utf8_lossy(bytes);
    if text.trim_start().starts_with('{') {
        let read: Result<Document, _> = serde_json::from_str(&text);
        return match read {
            Ok(document) if document.kind == KIND => Ok(document),
            Ok(_) => Err(MeminfoError::NotMeminfo {
                name,
                why: "it is a different kind of JSON document".to_owned(),
            }),
            Err(error) => Err(MeminfoError::NotMeminfo {
                name,
                why: error.to_string(),
            }),
        };
    }
    let meminfo = Meminfo::parse(&text);
    let document = Document::new(&meminfo, name.clone(), Source::Meminfo);
    if let Some(target) = meminfo.no_process()
        && document.processes.is_empty()
    {
        return Err(MeminfoError::NotMeminfo {
            name,
            why: format!("no process of {target} was running when it was written"),
        });
    }
    if document.processes.is_empty() && document.phone.is_none() {
        if malloc_info::parse(bytes).is_ok() {
            return Err(MeminfoError::MallocInfo { name });
        }
        if let Some(said) = meminfo.trouble() {
            let said = said.trim_matches(['*', ' ']).to_owned();
            return Err(MeminfoError::NoAnswer { name, said });
        }
        let kind = detect(bytes);
        if matches!(kind, Kind::Known(text) if text != KnownText::Meminfo) {
            return Err(MeminfoError::OtherText { name, kind });
        }
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

/// Returns the selected files.
fn files(input: &JavaInput) -> Result<Vec<PathBuf>, MeminfoError> {
    let directory = &input.path;
    if !is_directory(directory) {
        let typed = input
            .which
            .is_some()
            .then(|| PathBuf::from(input.to_string()));
        return Ok(vec![typed.unwrap_or_else(|| directory.clone())]);
    }
    let mut kept = moments::kept(directory, &timeline::beside(directory).timeline, DIRECTORY);
    if kept.is_empty() {
        kept = by_names(directory)?;
    }
    let name = || directory.display().to_string();
    if kept.is_empty() {
        return Err(
            match heaptap_input::trace_in_directory(directory, &name()) {
                Err(error) if Manifest::read(directory).is_err() => error.into(),
                _ => MeminfoError::NotKept { name: name() },
            },
        );
    }
    let captures: Vec<Capture> = kept.iter().map(|file| file.capture.clone()).collect();
    let found = Moments::of_directory(directory).find(input.which.as_ref(), &captures);
    let found = found.map_err(|missing| MeminfoError::NoSuchMoment {
        name: name(),
        missing: Box::new(missing),
    })?;
    Ok(found.into_iter().map(|at| kept[at].path.clone()).collect())
}

/// Returns the texts of a directory without a timeline, by their names: `02-after-login.txt`, with
/// a pid after the label if there were several processes.
fn by_names(directory: &Path) -> Result<Vec<KeptFile>, MeminfoError> {
    let texts = directory.join(DIRECTORY);
    let unreadable = |source| MeminfoError::Unreadable {
        path: texts.clone(),
        source,
    };
    if !texts.is_dir() {
        return Ok(Vec::new());
    }
    let mut found: Vec<(u32, String, PathBuf)> = Vec::new();
    for entry in texts.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_text = path.extension().is_some_and(|extension| extension == "txt");
        let stem = path.file_stem().map(|stem| stem.to_string_lossy());
        let stem = stem.filter(|_| is_text).unwrap_or_default();
        if let Some((number, label)) = stem.split_once('-')
            && let Ok(number) = number.parse::<u32>()
        {
            found.push((number, label.to_owned(), path.clone()));
        }
    }
    found.sort();
    // The last of repeated captures replaces the others.
    let take = |label: &str| {
        let (first, take) = label.rsplit_once('~')?;
        Some((first.to_owned(), take.parse::<u32>().ok()?))
    };
    let mut last: BTreeMap<(u32, String), (u32, PathBuf)> = BTreeMap::new();
    for (number, label, path) in found {
        // In name order, the first capture precedes the repeated ones.
        let again = take(&label).filter(|(first, _)| last.contains_key(&(number, first.clone())));
        let (label, take) = again.unwrap_or((label, 1));
        let known = last.entry((number, label)).or_insert((take, path.clone()));
        if take > known.0 {
            *known = (take, path);
        }
    }
    let mut of_moment: BTreeMap<u32, usize> = BTreeMap::new();
    for (number, _) in last.keys() {
        *of_moment.entry(*number).or_default() += 1;
    }
    let found = last.into_iter();
    let found = found.map(|((number, label), (_, path))| (number, label, path));
    let file = |(number, label, path): (u32, String, PathBuf)| {
        // A number after the only text of a label can be part of the label.
        let several = of_moment.get(&number).is_some_and(|count| *count > 1);
        let with_pid = label.rsplit_once('-').filter(|_| several);
        let with_pid = with_pid.and_then(|(label, pid)| Some((label, pid.parse().ok()?)));
        let (label, pid) = with_pid.unwrap_or((&label, 0));
        let is_end = label == DumpSelector::End.to_string();
        let capture = Capture {
            number,
            label: (!is_end).then(|| label.to_owned()),
            pid,
            dump: None,
        };
        KeptFile {
            capture,
            path,
            boot_ns: 0,
        }
    };
    Ok(found.map(file).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_base::error::Classified as _;

    const TEXT: &str = "** MEMINFO in pid 7 [a] **\n App Summary\n  Java Heap:  5\n";

    #[test]
    fn a_recordings_directory_gives_the_text_at_a_label() {
        let directory = tempfile::tempdir().unwrap();
        let texts = directory.path().join(DIRECTORY);
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
            let input = std::ffi::OsString::from(format!("{}{which}", directory.path().display()));
            let read = read(&JavaInput::parse(&input), &ProcessFilter::default());
            let pids = |all: Document| all.processes.iter().map(|p| p.pid).collect::<Vec<_>>();
            read.map(pids)
        };
        assert_eq!(at("").unwrap(), [Some(8), Some(9)]);
        assert_eq!(at("@start").unwrap(), [Some(1)]);
        assert_eq!(at("@2").unwrap(), [Some(8), Some(9)]);
        assert_eq!(at("@after-login").unwrap(), [Some(8), Some(9)]);
        assert!(matches!(at("@end"), Err(MeminfoError::NoSuchMoment { .. })));
        let misspelt = at("@stat").unwrap_err().help().unwrap();
        assert!(misspelt.starts_with("did you mean @start?"), "{misspelt}");
        std::fs::write(texts.join("03-end.txt"), TEXT).unwrap();
        assert_eq!(at("@end").unwrap(), [Some(7)]);
        let other = tempfile::tempdir().unwrap();
        let nothing = || {
            let other = JavaInput::parse(other.path().as_os_str());
            read(&other, &ProcessFilter::default()).unwrap_err()
        };
        std::fs::write(other.path().join("meminfo.txt"), TEXT).unwrap();
        let (message, help) = (nothing().to_string(), nothing().help().unwrap());
        assert!(message.ends_with("is not a recording: it has no trace (found: meminfo.txt)"));
        assert!(
            help.starts_with("meminfo.txt is output of `dumpsys meminfo`;"),
            "{help}"
        );
        std::fs::write(other.path().join("raw-trace"), "trace").unwrap();
        assert!(matches!(nothing(), MeminfoError::NotKept { .. }));
    }

    #[test]
    fn a_document_comes_back_and_other_files_are_refused() {
        let first = document(TEXT.as_bytes(), "a".to_owned()).unwrap();
        let json = serde_json::to_vec(&first).unwrap();
        assert_eq!(document(&json, String::new()).unwrap(), first);
        for other in [
            "",
            "{}",
            "{\"kind\":\"leaks\",\"source\":\"\"}",
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
