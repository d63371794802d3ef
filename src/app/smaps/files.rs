//! Mappings out of files: texts of any form, gzipped or not; traces; folders of recordings, with
//! what was kept at labels. Which moments there are, and which is meant.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use super::{Mapped, Moment, Origin};
use crate::app::java::{JavaInput, Steps, Which};
use crate::app::lists::in_words;
use crate::app::look::{self, LookError, LookOptions, NativeSource, is_process};
use crate::app::manifest::Manifest;
use crate::app::{recorded, timeline};
use crate::error::{Classified, ErrorClass};
use crate::memory::smaps::{self, SmapsError};
use crate::memory::timeline::Seen;

/// A text of a process with a hundred thousand mappings has less.
const LARGEST: u64 = 256 << 20;
/// What is looked at to tell whether a file is a text of mappings.
const HEAD: u64 = 64 << 10;

/// Why there are no mappings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The file can't be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// It is larger than mappings are.
    #[error("{path} is larger than 256 MiB: no mappings of one process")]
    TooLarge {
        /// The file.
        path: String,
    },
    /// It is none.
    #[error("{path} holds no mappings")]
    NotSmaps {
        /// The file.
        path: String,
        /// Why.
        source: SmapsError,
    },
    /// A recording without any.
    #[error("{path} holds no mappings: they were not recorded")]
    NotRecorded {
        /// The recording.
        path: String,
    },
    /// None of this name.
    #[error("{path} has no mappings called {which}; there are: {there}")]
    NoSuchMoment {
        /// The recording.
        path: String,
        /// What was asked for.
        which: String,
        /// What there is.
        there: String,
    },
    /// Several processes.
    #[error("{path} has mappings of several processes: {there}")]
    SeveralProcesses {
        /// The recording.
        path: String,
        /// Which.
        there: String,
    },
    /// The trace can't be read.
    #[error(transparent)]
    Look(#[from] LookError),
    /// The trace can't be read any more.
    #[error(transparent)]
    Trace(#[from] crate::trace::TraceError),
}

impl Classified for InputError {
    fn class(&self) -> ErrorClass {
        match self {
            InputError::Look(error) => error.class(),
            InputError::Trace(error) => error.class(),
            InputError::NotRecorded { .. } => ErrorClass::Empty,
            InputError::NoSuchMoment { .. } | InputError::SeveralProcesses { .. } => {
                ErrorClass::Usage
            }
            InputError::Unreadable { .. }
            | InputError::TooLarge { .. }
            | InputError::NotSmaps { .. } => ErrorClass::BadInput,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            InputError::Look(error) => error.kind(),
            InputError::Trace(error) => error.kind(),
            InputError::Unreadable { .. } => "input-unreadable",
            InputError::TooLarge { .. } => "mappings-too-large",
            InputError::NotSmaps { .. } => "not-mappings",
            InputError::NotRecorded { .. } => "no-mappings",
            InputError::NoSuchMoment { .. } => "no-such-moment",
            InputError::SeveralProcesses { .. } => "several-processes",
        }
    }

    fn help(&self) -> Option<String> {
        match self {
            InputError::Look(error) => error.help(),
            InputError::Trace(error) => error.help(),
            InputError::Unreadable { .. } | InputError::TooLarge { .. } => None,
            InputError::NotSmaps { .. } => Some(
                "give /proc/PID/smaps as text, showmap's output, a trace or a recording's folder"
                    .to_owned(),
            ),
            InputError::NotRecorded { .. } => Some(
                "record them at each label with `heaptap record --with smaps` (debuggable apps, \
                 root), or with a Java heap: `heaptap dump --dump-smaps`"
                    .to_owned(),
            ),
            InputError::NoSuchMoment { .. } => Some("name one as PATH@LABEL or PATH@N".to_owned()),
            InputError::SeveralProcesses { .. } => {
                Some("choose one with --process NAME or PID".to_owned())
            }
        }
    }
}

/// Reads a file whole, unpacked where it is gzipped, up to `most` bytes.
fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut magic = Vec::new();
    file.by_ref().take(2).read_to_end(&mut magic)?;
    let whole = io::Cursor::new(magic.clone()).chain(file);
    let mut bytes = Vec::new();
    match magic.as_slice() {
        [0x1f, 0x8b] => flate2::read::MultiGzDecoder::new(whole)
            .take(most)
            .read_to_end(&mut bytes)?,
        _ => whole.take(most).read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}

/// Reads a file that a recording's timeline names, unpacked, up to `most` bytes. Names that lead
/// out of the folder are refused: foreign folders say anything.
pub(in crate::app) fn read_below(folder: &Path, file: &str, most: u64) -> io::Result<Vec<u8>> {
    match is_below(file) {
        true => read(&folder.join(file), most),
        false => Err(io::Error::other("it lies outside of the folder")),
    }
}

/// Whether a file is a text of mappings, by its begin.
pub fn is_text(path: &Path) -> bool {
    path.is_file() && read(path, HEAD).is_ok_and(|head| is_text_of(&head))
}

fn is_text_of(head: &[u8]) -> bool {
    // JSON is cut off there: its begin has to do.
    let json = head.trim_ascii_start().starts_with(b"[")
        && memchr::memmem::find(head, b"\"shared clean\"").is_some();
    json || smaps::parse(head).is_ok()
}

/// Reads the mappings of an input. `process` chooses among those of several.
///
/// # Errors
/// Where it holds none, or none that was named, or can't be read.
pub fn load(input: &JavaInput, process: Option<&str>, steps: &Steps) -> Result<Mapped, InputError> {
    steps.begin(&format!("reading {}", input.path.display()));
    if is_text(&input.path) {
        return of_text(&input.path);
    }
    let kept = match input.path.is_dir() {
        true => kept(&input.path),
        false => Vec::new(),
    };
    if kept.is_empty() {
        return of_traces(input, process, steps);
    }
    let moments: Vec<Moment> = kept.iter().map(|kept| kept.0.clone()).collect();
    let chosen = choose(&input.path, &moments, input.which.as_ref(), process)?;
    let mut mapped = of_text(&kept[chosen].1)?;
    mapped.moment = moments[chosen].clone();
    mapped.others = others(moments, chosen);
    Ok(mapped)
}

fn others(mut moments: Vec<Moment>, chosen: usize) -> Vec<Moment> {
    moments.remove(chosen);
    moments
}

fn of_text(path: &Path) -> Result<Mapped, InputError> {
    let shown = || path.display().to_string();
    let text = read(path, LARGEST + 1).map_err(|source| InputError::Unreadable {
        path: shown(),
        source,
    })?;
    if text.len() as u64 > LARGEST {
        return Err(InputError::TooLarge { path: shown() });
    }
    let smaps = smaps::parse(&text).map_err(|source| InputError::NotSmaps {
        path: shown(),
        source,
    })?;
    Ok(Mapped {
        moment: Moment {
            origin: Origin::File,
            process: String::new(),
            pid: 0,
            time_ns: None,
            label: None,
            number: 1,
            way: None,
            remark: None,
        },
        smaps,
        text: Some(text),
        others: Vec::new(),
    })
}

/// What was kept at labels of the recording in `folder`, in their order, with its file.
fn kept(folder: &Path) -> Vec<(Moment, PathBuf)> {
    let known = timeline::beside(folder).timeline;
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    let mut found = Vec::new();
    for entry in &known.entries {
        match &entry.seen {
            Seen::Process(process) => {
                names.insert(entry.pid, process.name.clone());
            }
            Seen::Kept(kept) if kept.what == "smaps" && is_below(&kept.file) => {
                let path = folder.join(&kept.file);
                let moment = Moment {
                    origin: Origin::Recording,
                    process: String::new(),
                    pid: entry.pid.into(),
                    time_ns: Some(entry.boot_ns),
                    label: (!kept.label.is_empty()).then(|| kept.label.clone()),
                    number: kept.number,
                    way: None,
                    remark: None,
                };
                if path.is_file() {
                    found.push((moment, path));
                }
            }
            _ => {}
        }
    }
    let manifest = Manifest::read(folder).ok();
    let recorded = manifest.map_or_else(BTreeMap::new, |m| recorded::process_names(&m));
    for (moment, _) in &mut found {
        let pid = u32::try_from(moment.pid).unwrap_or(0);
        let name = names.get(&pid).or_else(|| recorded.get(&moment.pid));
        moment.process = name.cloned().unwrap_or_default();
    }
    found.sort_by_key(|(moment, _)| (moment.number, moment.pid));
    found
}

/// Whether a name of a file stays in its folder: foreign folders say anything.
fn is_below(file: &str) -> bool {
    let mut parts = Path::new(file).components();
    !file.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn of_traces(
    input: &JavaInput,
    process: Option<&str>,
    steps: &Steps,
) -> Result<Mapped, InputError> {
    let path = || input.path.display().to_string();
    let mut traces = match look::source(&input.path, &LookOptions::default(), steps)? {
        NativeSource::Traces(traces, _) => traces,
        _ => return Err(InputError::NotRecorded { path: path() }),
    };
    let mut moments = Vec::new();
    let mut places = Vec::new();
    for (trace, opened) in traces.iter().enumerate() {
        for (at, facts) in opened.trace.smaps().iter().enumerate() {
            places.push((trace, at));
            moments.push(Moment {
                origin: Origin::Trace,
                process: facts.process.clone(),
                pid: facts.pid,
                time_ns: Some(facts.time_ns),
                label: None,
                number: u32::try_from(moments.len())
                    .unwrap_or(u32::MAX)
                    .saturating_add(1),
                way: None,
                remark: facts.writer.remark().map(str::to_owned),
            });
        }
    }
    if moments.is_empty() {
        return Err(InputError::NotRecorded { path: path() });
    }
    let chosen = choose(&input.path, &moments, input.which.as_ref(), process)?;
    let (trace, at) = places[chosen];
    let rows = traces[trace].trace.read_smaps(at)?;
    Ok(Mapped {
        moment: moments[chosen].clone(),
        smaps: rows.to_smaps(),
        text: None,
        others: others(moments, chosen),
    })
}

/// The moment that is meant: the last, where nothing was said.
fn choose(
    path: &Path,
    moments: &[Moment],
    which: Option<&Which>,
    process: Option<&str>,
) -> Result<usize, InputError> {
    let path = || path.display().to_string();
    let there = |places: &mut dyn ExactSizeIterator<Item = &usize>| {
        let words: Vec<String> = places.map(|&at| moments[at].describe()).collect();
        in_words(words.into_iter())
    };
    let all: Vec<usize> = (0..moments.len()).collect();
    let is_wanted = |at: &usize| {
        let moment = &moments[*at];
        let pid = (moment.pid > 0).then_some(moment.pid);
        process.is_none_or(|wanted| is_process(wanted, pid, &moment.process))
    };
    let of_process: Vec<usize> = all.iter().copied().filter(is_wanted).collect();
    let none = |which: String| InputError::NoSuchMoment {
        path: path(),
        which,
        there: there(&mut all.iter()),
    };
    let Some(&last) = of_process.last() else {
        return Err(none(process.unwrap_or_default().to_owned()));
    };
    let matches = |at: &usize| {
        let moment = &moments[*at];
        match which {
            None | Some(Which::Last) => {
                moment.number == moments[last].number
                // Traces number each process's mappings by itself.
                || moment.origin == Origin::Trace && moment.time_ns == moments[last].time_ns
            }
            Some(Which::Index(index)) => {
                moment.number == *index || moment.label.as_deref() == Some(&index.to_string())
            }
            Some(Which::Label(label)) => {
                moment.label.as_deref() == Some(label) || label == "end" && moment.label.is_none()
            }
        }
    };
    let found: Vec<usize> = of_process.into_iter().filter(matches).collect();
    match found.as_slice() {
        [] => Err(none(which.map(Which::to_string).unwrap_or_default())),
        [only] => Ok(*only),
        several => {
            let last = &moments[several[several.len() - 1]];
            // One process, twice at a moment: the later one.
            match several.iter().all(|&at| moments[at].pid == last.pid) {
                true => Ok(several[several.len() - 1]),
                false => Err(InputError::SeveralProcesses {
                    path: path(),
                    there: there(&mut several.iter()),
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(number: u32, pid: u64, label: Option<&str>) -> Moment {
        Moment {
            origin: Origin::Recording,
            process: format!("com.example.p{pid}"),
            pid,
            time_ns: Some(number.into()),
            label: label.map(str::to_owned),
            number,
            way: None,
            remark: None,
        }
    }

    fn chosen(which: Option<&str>, process: Option<&str>) -> Result<usize, &'static str> {
        let moments = [
            moment(1, 7, Some("before")),
            moment(1, 8, Some("before")),
            moment(2, 7, Some("2020")),
            moment(3, 7, None),
        ];
        let which = which.map(Which::parse);
        let found = choose(Path::new("rec"), &moments, which.as_ref(), process);
        found.map_err(|error| error.kind())
    }

    #[test]
    fn a_moment_is_found_by_label_number_and_process() {
        assert_eq!(chosen(None, None), Ok(3));
        assert_eq!(chosen(Some("end"), None), Ok(3));
        assert_eq!(chosen(Some("2"), None), Ok(2));
        assert_eq!(chosen(Some("2020"), None), Ok(2));
        assert_eq!(chosen(Some("before"), None), Err("several-processes"));
        assert_eq!(chosen(Some("before"), Some("8")), Ok(1));
        assert_eq!(chosen(None, Some("com.example.p8")), Ok(1));
        assert_eq!(chosen(Some("nowhere"), None), Err("no-such-moment"));
        assert_eq!(chosen(None, Some("other")), Err("no-such-moment"));
    }

    #[test]
    fn files_of_a_folder_stay_in_it() {
        assert!(is_below("smaps/01-a.smaps.gz"));
        for outside in ["../a", "/etc/passwd", "a/../../b", "", "./a"] {
            assert!(!is_below(outside), "{outside}");
        }
    }
}
