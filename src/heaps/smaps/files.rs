//! Memory mappings from files: texts of any form, compressed or not; traces; recording directories
//! with captures at labels. Lists captures, and selects one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::moment::{Mapped, Moment, Origin};
use crate::heaps::input::{self, InputError, LookOptions, LookTrace, NativeSource};
use crate::heaps::java::ProgressReporter;
use crate::heaps::moments::{self, Capture, KeptFile, MomentNotFound, Moments};
use crate::heaps::selector::{JavaInput, ProcessFilter};
use crate::heaps::trace_findings;
use android_memory::smaps::{self, Smaps, SmapsError};
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_input::bugreport::{self, Section};
use heaptap_input::{ImportError, Kind, TextInput, detect, is_directory};
use heaptap_model::profile::DumpNumbers;
use heaptap_model::timeline::Observation;
use heaptap_results::findings::Finding;
use heaptap_results::lists::{join_list, process_name};
use heaptap_results::manifest::{JAVA_HEAP, JavaDump, Manifest};
use heaptap_results::{recorded, timeline};
use perfetto_heap::JavaDump as HeapFacts;

/// Maximum size in bytes: more than a text of a process with a hundred thousand mappings.
const MAX_SIZE: u64 = 256 << 20;

/// Error of reading mappings from a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MappingsError {
    /// The end of the compressed data is missing.
    #[error("{path} is truncated or damaged: {what}")]
    Torn {
        path: String,
        /// Description of the damage.
        what: String,
    },
    /// The file is larger than mappings can be.
    #[error("{path} is larger than 256 MiB, so it cannot be the mappings of one process")]
    TooLarge { path: String },
    /// The file is not a text of mappings.
    #[error("{path} contains no memory mappings")]
    NotSmaps { path: String, source: SmapsError },
    /// The file is neither a text of mappings nor a format that contains mappings.
    #[error("{path} contains no memory mappings: it is {what}")]
    NotMappings {
        path: String,
        /// Detected format.
        what: Kind,
    },
    /// A bug report without mappings.
    #[error("{path} contains no memory mappings: it is a bug report without a section SHOW MAP")]
    NoSection { path: String },
    /// A recording without mappings.
    #[error("{path} contains no memory mappings, because they were not recorded")]
    NotRecorded { path: String },
    /// A trace that is truncated or damaged before its first mappings.
    #[error("cannot read memory mappings from {path}: {}", why.message)]
    Broken { path: String, why: Box<Finding> },
    /// The selected capture does not exist.
    #[error("{path} does not have memory mappings of @{}: {}", missing.which, missing.why)]
    NoSuchMoment {
        path: String,
        /// Selector, and available ones.
        missing: Box<MomentNotFound>,
    },
    /// The selected process has no mappings.
    #[error("{path} does not have memory mappings of {process}")]
    NoSuchProcess {
        path: String,
        process: String,
        /// Readable list of the available processes.
        there: String,
    },
    /// Several processes.
    #[error("{path} has memory mappings of several processes: {there}")]
    SeveralProcesses {
        path: String,
        /// Readable list of the processes.
        there: String,
    },
    /// The trace cannot be opened.
    #[error(transparent)]
    Look(#[from] InputError),
    /// The trace can no longer be read.
    #[error(transparent)]
    Trace(#[from] perfetto_heap::TraceError),
}

impl Classified for MappingsError {
    fn facts(&self) -> ErrorFacts {
        match self {
            MappingsError::Look(error) => error.facts(),
            MappingsError::Trace(error) => error.facts(),
            MappingsError::Torn { .. } => ErrorFacts::new(ErrorClass::BadInput, "input-unreadable")
                .with_help(
                    "copy it again, or unpack the readable part yourself; its sums are too low",
                ),
            MappingsError::TooLarge { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "mappings-too-large")
            }
            MappingsError::NoSection { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "not-mappings").with_help(
                    "only devices with root write it; `heaptap meminfo` reads the categories of \
                     each process",
                )
            }
            MappingsError::NotMappings {
                what: what @ Kind::Known(_),
                ..
            } => ErrorFacts::new(ErrorClass::BadInput, "not-mappings").with_help(what.help()),
            MappingsError::NotMappings { .. } | MappingsError::NotSmaps { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "not-mappings").with_help(
                    "use the text of /proc/PID/smaps, the output of showmap, a trace, or a \
                     recording directory",
                )
            }
            MappingsError::Broken { why, .. } => why.as_error(),
            MappingsError::NotRecorded { .. } => ErrorFacts::new(ErrorClass::Empty, "no-mappings")
                .with_help(
                    "record them at each label with `heaptap record --with smaps` (debuggable \
                     apps, root), or with a Java heap: `heaptap dump --dump-smaps`",
                ),
            MappingsError::NoSuchMoment { missing, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-capture").with_help(missing.help())
            }
            MappingsError::NoSuchProcess { there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-process")
                    .with_help(format!("available: {there}"))
            }
            MappingsError::SeveralProcesses { path, there } => {
                let help = match there.contains('@') {
                    true => format!("choose one by its number, such as {path}@1 or {path}@2"),
                    false => "choose one with -n NAME or -p PID".to_owned(),
                };
                ErrorFacts::new(ErrorClass::Usage, "several-processes").with_help(help)
            }
        }
    }
}

/// Returns whether an input begins like a text of mappings.
pub fn is_text(input: &mut TextInput<'_>) -> bool {
    let head = &*input.text_head().unwrap_or_default();
    if bugreport::year(head).is_some() {
        return true;
    }
    // An archive can contain them uncompressed.
    if !detect(head).may_be_text() {
        return false;
    }
    // JSON is truncated there, so its beginning must be sufficient.
    let json = head.trim_ascii_start().starts_with(b"[")
        && memchr::memmem::find(head, b"\"shared clean\"").is_some();
    json || smaps::parse(head).is_ok()
}

/// Reads the mappings of an input; `-` is standard input. `process` selects one of several.
///
/// # Errors
/// Returns an error if it contains no mappings, does not have the selected ones, or cannot be read.
pub fn load(
    input: &JavaInput,
    processes: &ProcessFilter,
    progress: &ProgressReporter,
) -> Result<Mapped, MappingsError> {
    progress.begin(&format!("reading {}", input.path.display()));
    if !is_directory(&input.path) {
        return of_file(input, processes, progress);
    }
    let kept = kept(&input.path);
    if kept.is_empty() {
        let found = input::source(&input.path, &LookOptions::default(), progress);
        return of_traces(input, found, processes);
    }
    let known = Moments::of_directory(&input.path);
    let mut moments: Vec<Moment> = kept.iter().map(|kept| kept.0.clone()).collect();
    let captures: Vec<Capture> = moments.iter().map(Moment::capture).collect();
    for (number, at) in known.beside(&captures) {
        moments[at].dump.get_or_insert(number);
    }
    let chosen = choose(input, &known, &moments, processes)?;
    let text = TextInput::open(&kept[chosen].1).map_err(InputError::from)?;
    let whole = JavaInput {
        which: None,
        ..input.clone()
    };
    let mut mapped = of_text(text, &whole, &ProcessFilter::default())?;
    mapped.moment = moments[chosen].clone();
    mapped.others = others(moments, chosen);
    Ok(mapped)
}

fn others(mut moments: Vec<Moment>, chosen: usize) -> Vec<Moment> {
    moments.remove(chosen);
    moments
}

/// Reads a text or a trace; a pipe can only be read once.
fn of_file(
    input: &JavaInput,
    processes: &ProcessFilter,
    progress: &ProgressReporter,
) -> Result<Mapped, MappingsError> {
    let mut opened = TextInput::typed(&input.path).map_err(InputError::from)?;
    // Reports damage here, because a pipe can be read only once.
    opened.text_head().map_err(InputError::from)?;
    if is_text(&mut opened) {
        return of_text(opened, input, processes);
    }
    let options = LookOptions::default();
    if opened.is_regular() {
        let found = input::source(&input.path, &options, progress);
        return of_traces(input, found, processes);
    }
    let name = opened.name().to_owned();
    let found = input::source_of_stream(opened.into_stream(), &name, &options, progress);
    let shown = JavaInput {
        path: PathBuf::from(name),
        which: input.which.clone(),
    };
    of_traces(&shown, found, processes)
}

/// Reads a text: the mappings of the only process in it, or of the selected one.
fn of_text(
    text: TextInput<'_>,
    input: &JavaInput,
    processes: &ProcessFilter,
) -> Result<Mapped, MappingsError> {
    let (path, what) = (text.name().to_owned(), text.kind());
    let text = match text.section(Section::Mappings, MAX_SIZE) {
        Ok(Some(text)) => text,
        Ok(None) => return Err(MappingsError::NotMappings { path, what }),
        Err(ImportError::TooLarge { .. }) => return Err(MappingsError::TooLarge { path }),
        Err(ImportError::Damaged { what, .. }) => return Err(MappingsError::Torn { path, what }),
        Err(error) => return Err(InputError::from(error).into()),
    };
    if let Some(what) = text.damage {
        return Err(MappingsError::Torn { path, what });
    }
    if text.is_section && text.bytes.is_empty() {
        return Err(MappingsError::NoSection { path });
    }
    let mut text = text.bytes;
    let parts = smaps::split(&text);
    let moments = parts.iter().zip(1..).map(|(part, number)| Moment {
        number,
        ..Moment::new(
            Origin::File,
            part.name.clone().unwrap_or_default(),
            part.pid.unwrap_or_default().into(),
        )
    });
    let mut moments: Vec<Moment> = moments.collect();
    let mut chosen = 0;
    if moments.len() > 1 || moments.iter().any(|moment| moment.pid > 0) {
        // Nothing shows whether parts without a process ID are of one process.
        let wanted = moments.iter().filter(|moment| {
            processes.takes((moment.pid > 0).then_some(moment.pid), &moment.process)
        });
        let wanted: Vec<&Moment> = wanted.collect();
        let is_one = |pair: &[&Moment]| pair[0].pid == pair[1].pid && pair[0].pid > 0;
        if input.which.is_none() && !wanted.windows(2).all(is_one) {
            let there = wanted.iter().map(|moment| match moment.pid {
                0 => moment.describe(),
                pid => process_name(pid, &moment.process),
            });
            let there = join_list(there);
            return Err(MappingsError::SeveralProcesses { path, there });
        }
        chosen = choose(input, &Moments::default(), &moments, processes)?;
        if moments.len() > 1 {
            text = text[parts[chosen].bytes.clone()].to_vec().into();
        }
    }
    let smaps = smaps::parse(&text).map_err(|source| MappingsError::NotSmaps { path, source })?;
    if moments.is_empty() {
        moments.push(Moment::new(Origin::File, String::new(), 0));
    }
    Ok(Mapped {
        moment: moments[chosen].clone(),
        smaps,
        text: Some(text),
        others: others(moments, chosen),
    })
}

/// Returns the captures at labels of the recording in `directory`, in order, with their files.
fn kept(directory: &Path) -> Vec<(Moment, PathBuf)> {
    let known = timeline::beside(directory).timeline;
    let mut names: BTreeMap<u64, &str> = BTreeMap::new();
    let manifest = Manifest::read(directory).ok();
    let recorded = manifest.map_or_else(BTreeMap::new, |m| recorded::process_names(&m));
    names.extend(recorded.iter().map(|(pid, name)| (*pid, name.as_str())));
    names.extend(known.entries.iter().filter_map(|entry| match &entry.seen {
        Observation::Process(process) => Some((u64::from(entry.pid), process.name.as_str())),
        _ => None,
    }));
    let moment = |file: KeptFile| {
        let capture = file.capture;
        let process = names.get(&capture.pid).copied().unwrap_or_default();
        let moment = Moment {
            time_ns: Some(file.boot_ns),
            label: capture.label,
            number: capture.number,
            ..Moment::new(Origin::Recording, process.to_owned(), capture.pid)
        };
        (moment, file.path)
    };
    let kept = moments::kept(directory, &known, "smaps");
    kept.into_iter().map(moment).collect()
}

fn of_traces(
    input: &JavaInput,
    found: Result<NativeSource, InputError>,
    processes: &ProcessFilter,
) -> Result<Mapped, MappingsError> {
    let path = || input.path.display().to_string();
    let (mut traces, manifest) = match found {
        Ok(NativeSource::Traces(traces, manifest)) => (traces, manifest),
        Ok(_) if is_directory(&input.path) => {
            return Err(MappingsError::NotRecorded { path: path() });
        }
        Ok(other) => {
            let what = match other {
                NativeSource::Hprofs(_) => Kind::Hprof,
                _ => Kind::Pprof,
            };
            return Err(MappingsError::NotMappings { path: path(), what });
        }
        Err(InputError::Import(ImportError::NotAHeap { name, what })) => {
            return Err(MappingsError::NotMappings { path: name, what });
        }
        Err(error) => return Err(error.into()),
    };
    let mut moments: Vec<Moment> = Vec::new();
    let mut places = Vec::new();
    for (trace, opened) in traces.iter().enumerate() {
        for (at, facts) in opened.trace.smaps().iter().enumerate() {
            // Captures of several processes at once belong to one label.
            let number = match moments.last() {
                Some(before) if before.time_ns == Some(facts.time_ns) => before.number,
                Some(before) => before.number.saturating_add(1),
                None => 1,
            };
            places.push((trace, at));
            moments.push(Moment {
                time_ns: Some(facts.time_ns),
                number,
                remark: facts.writer.remark().map(str::to_owned),
                ..Moment::new(Origin::Trace, facts.process.clone(), facts.pid)
            });
        }
    }
    if moments.is_empty() {
        let missing = traces.iter().flat_map(|trace| {
            let damage = trace.damage.as_deref();
            trace_findings::of_missing_parts(&trace.name, damage, trace.trace.health())
        });
        return Err(match missing.into_iter().next() {
            Some(why) => MappingsError::Broken {
                path: path(),
                why: Box::new(why),
            },
            None => MappingsError::NotRecorded { path: path() },
        });
    }
    let known = number_by_heaps(&mut moments, &traces, manifest.as_deref());
    let chosen = choose(input, &known, &moments, processes)?;
    let (trace, at) = places[chosen];
    let rows = traces[trace].trace.read_smaps(at)?;
    Ok(Mapped {
        moment: moments[chosen].clone(),
        smaps: Smaps::of_rows(&rows),
        text: None,
        others: others(moments, chosen),
    })
}

/// Gives mappings of traces the numbers and labels of the Java heaps they were read with: for each
/// heap, the nearest mappings of its process. Without heaps they are numbered from 1 for each
/// process.
fn number_by_heaps(
    moments: &mut [Moment],
    traces: &[LookTrace],
    manifest: Option<&Manifest>,
) -> Moments {
    let heaps: Vec<(u32, u64, u64, Option<String>)> = match manifest {
        Some(manifest) => {
            let dumps = manifest.dumps.java.iter();
            let of = |dump: &JavaDump| {
                let label = dump.label.as_ref().map(|label| label.name.clone());
                Some((dump.number, dump.pid, dump.time_ns?, label))
            };
            dumps.filter_map(of).collect()
        }
        None => {
            let dumps = traces.iter().flat_map(|opened| opened.trace.java_dumps());
            let mut numbers = DumpNumbers::default();
            let of = |dump: &HeapFacts| {
                let number = numbers.next(dump.pid, JAVA_HEAP);
                (number, dump.pid, dump.time_ns, None)
            };
            dumps.map(of).collect()
        }
    };
    if heaps.is_empty() {
        let mut numbers = DumpNumbers::default();
        for moment in moments.iter_mut() {
            moment.dump = Some(numbers.next(moment.pid, ""));
        }
        return Moments::of_parts(moments.iter().map(|moment| moment.pid));
    }
    let mut by_time: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    for (at, moment) in moments.iter().enumerate() {
        by_time.insert((moment.pid, moment.time_ns.unwrap_or(0)), at);
    }
    for (number, pid, time_ns, label) in &heaps {
        let before = by_time.range((*pid, 0)..=(*pid, *time_ns)).next_back();
        let after = by_time.range((*pid, *time_ns)..=(*pid, u64::MAX)).next();
        let apart = |found: &(&(u64, u64), &usize)| found.0.1.abs_diff(*time_ns);
        let nearest = before.into_iter().chain(after).min_by_key(apart);
        if let Some((_, &at)) = nearest {
            moments[at].dump.get_or_insert(*number);
            if moments[at].label.is_none() {
                moments[at].label.clone_from(label);
            }
        }
    }
    match manifest {
        Some(manifest) => Moments::from_manifest(manifest),
        None => Moments::of_parts(heaps.iter().map(|heap| heap.1)),
    }
}

/// Returns the selected capture; the last one by default.
fn choose(
    input: &JavaInput,
    known: &Moments,
    moments: &[Moment],
    processes: &ProcessFilter,
) -> Result<usize, MappingsError> {
    let path = || input.path.display().to_string();
    let there = |places: &[usize]| {
        let words: Vec<String> = places.iter().map(|&at| moments[at].describe()).collect();
        join_list(words.into_iter())
    };
    let all: Vec<usize> = (0..moments.len()).collect();
    let is_wanted = |at: &usize| {
        let moment = &moments[*at];
        let pid = (moment.pid > 0).then_some(moment.pid);
        processes.takes(pid, &moment.process)
    };
    let of_process: Vec<usize> = all.iter().copied().filter(is_wanted).collect();
    if of_process.is_empty() {
        return Err(MappingsError::NoSuchProcess {
            path: path(),
            process: processes.to_string(),
            there: there(&all),
        });
    }
    let captures = of_process.iter().map(|&at| moments[at].capture());
    let captures: Vec<Capture> = captures.collect();
    let found = known.find(input.which.as_ref(), &captures);
    let found = found.map_err(|missing| MappingsError::NoSuchMoment {
        path: path(),
        missing: Box::new(missing),
    })?;
    let found: Vec<usize> = found.into_iter().map(|at| of_process[at]).collect();
    // For repeated captures of a process, the last one.
    let last = found.last().copied().unwrap_or_default();
    match found.iter().all(|&at| moments[at].pid == moments[last].pid) {
        true => Ok(last),
        false => Err(MappingsError::SeveralProcesses {
            path: path(),
            there: there(&found),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heaps::selector::DumpSelector;

    fn moment(number: u32, pid: u64, label: Option<&str>) -> Moment {
        Moment {
            origin: Origin::Recording,
            process: format!("com.example.p{pid}"),
            pid,
            time_ns: Some(number.into()),
            label: label.map(str::to_owned),
            number,
            dump: None,
            method: None,
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
        let input = JavaInput {
            path: PathBuf::from("rec"),
            which: which.map(DumpSelector::parse),
        };
        let processes = ProcessFilter {
            names: process.into_iter().map(str::to_owned).collect(),
            ..ProcessFilter::default()
        };
        let found = choose(&input, &Moments::default(), &moments, &processes);
        found.map_err(|error| error.kind())
    }

    #[test]
    fn a_moment_is_found_by_label_number_and_process() {
        assert_eq!(chosen(None, None), Ok(2));
        assert_eq!(chosen(Some("end"), None), Ok(3));
        assert_eq!(chosen(Some("2"), None), Ok(2));
        assert_eq!(chosen(Some("2020"), None), Ok(2));
        assert_eq!(chosen(Some("before"), None), Err("several-processes"));
        assert_eq!(chosen(Some("before"), Some("com.example.p8")), Ok(1));
        assert_eq!(chosen(None, Some("com.example.p8")), Ok(1));
        assert_eq!(chosen(Some("nowhere"), None), Err("no-such-capture"));
        assert_eq!(chosen(None, Some("other")), Err("no-such-process"));
    }

    #[test]
    fn a_torn_packing_of_mappings_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("01-one.smaps.gz");
        let text: String = (0..2000_u64)
            .map(|n| {
                let at = 0x7000_0000 + n * 0x9000;
                let size = n.wrapping_mul(2_654_435_761) % 4096;
                format!(
                    "{at:x}-{:x} rw-p 00000000 00:00 {size} /lib/{size}.so\nRss: {size} kB\n",
                    at + 0x1000
                )
            })
            .collect();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, text.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        std::fs::write(&path, &packed[..packed.len() / 2]).unwrap();
        let input = JavaInput { path, which: None };
        let error = load(
            &input,
            &ProcessFilter::default(),
            &ProgressReporter::default(),
        )
        .unwrap_err();
        assert!(matches!(error, MappingsError::Torn { .. }), "{error}");
        assert!(error.to_string().contains("its gzip stream"), "{error}");
        assert_eq!(error.class(), ErrorClass::BadInput);
        assert_eq!(error.kind(), "input-unreadable");
        std::fs::write(&input.path, &packed).unwrap();
        assert!(
            load(
                &input,
                &ProcessFilter::default(),
                &ProgressReporter::default()
            )
            .is_ok()
        );
    }

    #[test]
    fn a_text_of_something_else_is_told_what_would_be_mappings() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.txt");
        std::fs::write(&path, "hello\n").unwrap();
        let input = JavaInput { path, which: None };
        let error = load(
            &input,
            &ProcessFilter::default(),
            &ProgressReporter::default(),
        )
        .unwrap_err();
        assert_eq!(error.kind(), "not-mappings");
        assert_eq!(error.class(), ErrorClass::BadInput);
        let help = error.help().unwrap();
        assert!(help.contains("/proc/PID/smaps"), "{help}");
        assert!(error.to_string().ends_with("it is text"), "{error}");
    }
}
