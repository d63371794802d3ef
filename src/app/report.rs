//! Pages: gathers what a page shows of one or more inputs, and owns the file it goes to.

mod growth;
mod java;
mod native;
mod unseen;
mod whole;

use super::findings::Finding;
use super::java::{JavaError, JavaFile, JavaOptions, Steps, lying_in as java_lying_in};
use super::look::{self, Look, LookError, LookOptions, NativeFile, Wanted, Which};
use super::names::MappingOption;
use super::packet_files::WholeFile;
use super::timeline as readings;
use crate::error::{Classified, ErrorClass};
use crate::report::data::header::{Diff, Fact, Header, Pair, Per};
use crate::report::data::timeline::Timeline;
use crate::report::java::JavaPart;
use crate::report::{self, Report, data};
use crate::stacks::{Dump, JoinBy, StackProfile, join};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use whole::Measured;

/// Java heaps of one input that have pages; of more, the first and the last ones.
const JAVA_HEAPS: usize = 6;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The input holds no native heap, or can't be read.
    #[error(transparent)]
    Look(#[from] LookError),
    /// The input holds no Java heap, or can't be read.
    #[error(transparent)]
    Java(#[from] JavaError),
    /// Something else would be overwritten.
    #[error("{} holds something that is no report of heaptap", .0.display())]
    Taken(PathBuf),
    /// The page can't be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Classified for ReportError {
    fn class(&self) -> ErrorClass {
        match self {
            ReportError::Look(error) => error.class(),
            ReportError::Java(error) => error.class(),
            ReportError::Taken(_) => ErrorClass::Usage,
            ReportError::Write { .. } => ErrorClass::HostWrite,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            ReportError::Look(error) => error.kind(),
            ReportError::Java(error) => error.kind(),
            ReportError::Taken(_) => "output-taken",
            ReportError::Write { .. } => "output-unwritable",
        }
    }

    fn help(&self) -> Option<String> {
        Some(match self {
            ReportError::Look(error) => return error.help(),
            ReportError::Java(error) => return error.help(),
            ReportError::Taken(_) => "name another file, or --force to overwrite it".to_owned(),
            ReportError::Write { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => {
                    "there is no such folder: make it, or name another file with -o".to_owned()
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "name a file with -o that you may write".to_owned()
                }
                io::ErrorKind::IsADirectory => {
                    "it is a folder: name a file in it with -o".to_owned()
                }
                _ => "make room there, or name another file with -o".to_owned(),
            },
        })
    }
}

/// An input and the dumps of it that are meant.
#[derive(Debug, Clone)]
pub struct ReportInput {
    /// A recording's folder, a trace, a pprof or an HPROF.
    pub path: PathBuf,
    /// All dumps, or those that were named.
    pub wanted: Wanted,
    /// Mapping files of this input alone, before those of all.
    pub mappings: Vec<MappingOption>,
}

impl fmt::Display for ReportInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.path.file_name() {
            Some(name) => Path::new(name),
            None => &self.path,
        };
        write!(f, "{}", name.display())?;
        match &self.wanted {
            Wanted::These(named) => named.iter().try_for_each(|which| write!(f, "@{which}")),
            Wanted::All => Ok(()),
            Wanted::Last => write!(f, "@{}", Which::Last),
        }
    }
}

/// What a page is to show.
#[derive(Debug, Clone)]
pub struct ReportRequest {
    /// The inputs, at least one; of several, callsites are joined by name.
    pub inputs: Vec<ReportInput>,
    /// What the first input is compared with.
    pub base: Option<ReportInput>,
    /// What differences are divided by.
    pub per: Option<Per>,
    /// How native heaps are opened.
    pub look: LookOptions,
    /// How Java heaps are opened.
    pub java: JavaOptions,
    /// Java heaps alone.
    pub java_only: bool,
    /// Every callsite, however many there are.
    pub full: bool,
}

/// Where a page goes.
pub enum Target {
    /// Into a file.
    File(ReportFile),
    /// To whoever asked.
    Memory,
}

/// What was shown, for whoever asked.
#[derive(Debug)]
pub struct Told {
    /// What the user should know.
    pub findings: Vec<Finding>,
    /// What the exit code tells of; `None` where nothing is missing.
    pub class: Option<ErrorClass>,
    /// Bytes of the page.
    pub bytes: u64,
    /// The page, where it went into no file.
    pub page: Option<Vec<u8>>,
}

/// An input with all that is shown of it.
struct Opened {
    name: String,
    native: Option<Box<NativeFile>>,
    java: Vec<JavaPart>,
    findings: Vec<Finding>,
    class: Option<ErrorClass>,
    timeline: Option<Timeline>,
}

/// Gathers what the request names and writes the page. Blocks.
///
/// # Errors
/// Where an input can't be read or holds nothing that was asked for, or the page can't be
/// written.
pub fn write(request: &ReportRequest, steps: &Steps, target: Target) -> Result<Told, ReportError> {
    let mut opened = Vec::new();
    let mut number = 0;
    for input in to_open(request) {
        let one = open(&input, request, number, steps)?;
        number += one.java.len();
        opened.push(one);
    }
    steps.begin("writing the page");
    let mut told = Told {
        findings: Vec::new(),
        class: ErrorClass::first_of(opened.iter().filter_map(|one| one.class)),
        bytes: 0,
        page: None,
    };
    // Clocks of two recordings have nothing to do with each other.
    let timeline = match &mut opened[..] {
        [only] => only.timeline.take(),
        _ => None,
    };
    let mut header = header(request, &opened, timeline);
    let mut with_native = opened.iter().filter_map(|one| one.native.as_deref());
    if let (Some(file), None) = (with_native.next(), with_native.next()) {
        header.growth = growth::growth(file);
    }
    let parts: Vec<JavaPart> = opened
        .iter_mut()
        .flat_map(|one| std::mem::take(&mut one.java))
        .collect();
    for one in &mut opened {
        told.findings.append(&mut one.findings);
    }
    let mut profiles: Vec<(String, Box<NativeFile>)> = opened
        .into_iter()
        .filter_map(|one| Some((one.name, one.native?)))
        .collect();
    let mut inputs = Vec::new();
    let mut profile = match profiles.len() {
        0 => None,
        1 => profiles.pop().map(|(_, file)| file.profile),
        _ => {
            let (joined, starts) = joined(profiles);
            inputs = starts;
            Some(joined)
        }
    };
    if let (Some(base), Some(main), Some(profile)) =
        (&request.base, request.inputs.first(), &profile)
    {
        header.diff = Some(diff(base, main, request.per.clone(), profile, &inputs));
    }
    if !request.full
        && let Some(profile) = &mut profile
        && let Some(mut folded) = data::fold(profile, data::MOST)
    {
        let inputs: Vec<String> = request.inputs.iter().map(|i| i.to_string()).collect();
        folded.command = format!("heaptap report --full {}", inputs.join(" "));
        header.folded = Some(folded);
    }
    let report = Report {
        header,
        native: profile.as_ref(),
        inputs,
        java: parts,
    };
    match target {
        Target::File(file) => told.bytes = file.finish(report)?,
        Target::Memory => {
            let mut page = Vec::new();
            report
                .write(&mut page)
                .map_err(|source| ReportError::Write {
                    path: PathBuf::from("-"),
                    source,
                })?;
            told.bytes = page.len() as u64;
            told.page = Some(page);
        }
    }
    Ok(told)
}

/// What is opened, in order: two dumps of one recording are of one input.
fn to_open(request: &ReportRequest) -> Vec<ReportInput> {
    let mut inputs = request.inputs.clone();
    if let Some(base) = &request.base {
        match inputs.first_mut() {
            Some(main) if is_same(&base.path, &main.path) => {
                main.wanted = match (&base.wanted, &main.wanted) {
                    (Wanted::These(before), Wanted::These(after)) => {
                        Wanted::These([&before[..], &after[..]].concat())
                    }
                    _ => Wanted::All,
                };
            }
            _ => inputs.insert(0, base.clone()),
        }
    }
    inputs
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Opens an input: native heaps, Java heaps or both.
fn open(
    input: &ReportInput,
    request: &ReportRequest,
    number: usize,
    steps: &Steps,
) -> Result<Opened, ReportError> {
    let mut opened = Opened {
        name: input.to_string(),
        native: None,
        java: Vec::new(),
        findings: Vec::new(),
        class: None,
        timeline: None,
    };
    let mut unmeant = None;
    if !request.java_only {
        let mut options = request.look.clone();
        options.names.mappings.splice(0..0, input.mappings.clone());
        options.memory = true;
        match look::open(&input.path, &input.wanted, &options, steps) {
            Ok(Look::Native(file)) => {
                opened.findings = file.findings.clone();
                opened.class = file.class();
                opened.native = Some(file);
            }
            Ok(Look::Java) => {}
            // The dump that was named may be of a Java heap.
            Err(error @ (LookError::NoSuchDump { .. } | LookError::NoSuchProcess { .. })) => {
                unmeant = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    // What lies beside the dumps of a recording is no dump that could be named.
    let beside = || input.wanted == Wanted::All && java_lying_in(&input.path).is_some();
    let has_java = opened
        .native
        .as_ref()
        .is_none_or(|file| file.java_dumps > 0 || beside());
    // A heap of a name is a native one.
    if has_java && request.look.heap.is_none() {
        let found = add_java(&mut opened, input, request, number, steps);
        match (found, &opened.native, unmeant) {
            (Ok(()), ..) => {}
            // Of a recording with both, one may be what was named.
            (Err(error), Some(_), _) if is_choice(&error) => {}
            (Err(error), None, Some(native)) if is_choice(&error) => return Err(native.into()),
            (Err(error), ..) => return Err(error.into()),
        }
    }
    if !request.java_only {
        add_timeline(&mut opened, &input.path);
    }
    Ok(opened)
}

/// What was read beside the dumps, of the processes that the input names.
fn add_timeline(opened: &mut Opened, path: &Path) {
    let mut known = readings::beside(path);
    if let Some(file) = &mut opened.native {
        known.add(std::mem::take(&mut file.memory));
    }
    let class = known.findings.iter().filter_map(|finding| finding.class);
    opened.class = ErrorClass::first_of(opened.class.into_iter().chain(class));
    opened.findings.extend(known.findings);
    let dumps = opened.native.iter().flat_map(|file| &file.listed);
    let names: BTreeMap<u64, &str> = dumps
        .map(|dump| (dump.facts.pid, dump.facts.process.as_str()))
        .collect();
    let name_of = |pid: u32| names.get(&u64::from(pid)).map(|name| (*name).to_owned());
    opened.timeline = Timeline::of(&known.timeline, &name_of);
}

/// Whether nothing is wrong but that no Java heap is the one that was named.
fn is_choice(error: &JavaError) -> bool {
    matches!(
        error,
        JavaError::NoSuchDump { .. }
            | JavaError::NoSuchProcess { .. }
            | JavaError::NoHeap { .. }
            | JavaError::Native { .. }
    )
}

fn add_java(
    opened: &mut Opened,
    input: &ReportInput,
    request: &ReportRequest,
    number: usize,
    steps: &Steps,
) -> Result<(), JavaError> {
    let mut options = request.java.clone();
    options.names.mappings.splice(0..0, input.mappings.clone());
    let mut file = JavaFile::open(&input.path, options, steps)?;
    let count = file.dumps().len();
    let chosen: Vec<usize> = match &input.wanted {
        Wanted::These(named) => {
            // Some may be of native heaps.
            let found: Vec<_> = named.iter().map(|which| file.choose(Some(which))).collect();
            let is_found = found.iter().any(Result::is_ok);
            let error = found.iter().position(Result::is_err).filter(|_| !is_found);
            match error {
                Some(at) => return found.into_iter().nth(at).map_or(Ok(()), |e| e.map(drop)),
                None => found.into_iter().flatten().collect(),
            }
        }
        Wanted::Last => vec![file.choose(None)?],
        Wanted::All if count <= JAVA_HEAPS => (0..count).collect(),
        // The beginning and the end tell most.
        Wanted::All => std::iter::once(0)
            .chain(count + 1 - JAVA_HEAPS..count)
            .collect(),
    };
    if chosen.len() < count && input.wanted == Wanted::All {
        let left_out: Vec<String> = (0..count)
            .filter(|at| !chosen.contains(at))
            .map(|at| format!("@{}", file.dumps()[at].index))
            .collect();
        opened.findings.push(Finding {
            kind: "java-heaps-left-out",
            class: None,
            message: format!(
                "{} Java heaps are not in the page: {}",
                left_out.len(),
                left_out.join(", ")
            ),
            help: Some("name one to see it: heaptap report INPUT@N".to_owned()),
            pid: None,
        });
    }
    for (at, dump) in chosen.into_iter().enumerate() {
        let wall_ms = file.dumps()[dump].time.map(milliseconds);
        let heap = file.read(dump)?;
        let class = heap.class();
        opened.findings.extend(heap.findings.iter().cloned());
        opened.class = ErrorClass::first_of([opened.class, class].into_iter().flatten());
        opened
            .java
            .push(java::part(&heap, wall_ms, number + at, steps));
    }
    Ok(())
}

fn milliseconds(moment: OffsetDateTime) -> f64 {
    (moment.unix_timestamp_nanos() / 1_000_000) as f64
}

/// What is known beside the numbers.
fn header(request: &ReportRequest, opened: &[Opened], timeline: Option<Timeline>) -> Header {
    let now = OffsetDateTime::now_utc();
    let mut header = Header {
        tool: format!("heaptap {}", super::manifest::version()),
        made_wall_ms: Some(milliseconds(now)),
        title: title(request, opened),
        ..Header::default()
    };
    let several = opened.len() > 1;
    let has_java = opened.iter().any(|one| !one.java.is_empty());
    for (at, one) in opened.iter().enumerate() {
        let file = one.native.as_deref();
        let mut facts = vec![Fact {
            name: "Input".to_owned(),
            value: one.name.clone(),
        }];
        facts.extend(file.map(native::facts).into_iter().flatten());
        let manifest = file.and_then(|file| file.manifest.as_ref());
        for mut fact in facts {
            if several {
                fact.name = format!("{} ({})", fact.name, at + 1);
            }
            header.facts.push(fact);
        }
        for mut warning in native::warnings(&one.findings, manifest) {
            if several {
                warning.message = format!("{}: {}", one.name, warning.message);
            }
            header.warnings.push(warning);
        }
    }
    header.facts.push(Fact {
        name: "Page written".to_owned(),
        value: format!(
            "{}, by heaptap {}",
            report::moment(now),
            super::manifest::version()
        ),
    });
    // Of several inputs, what is last is what is looked at.
    let file = opened.iter().rev().find_map(|one| one.native.as_deref());
    let heap = opened.iter().rev().find_map(|one| one.java.last());
    let java = heap.map(JavaPart::totals);
    let measured = file
        .zip(timeline.as_ref())
        .and_then(|(file, timeline)| Measured::at_dump(&file.profile, timeline));
    header.went = Some(match &measured {
        Some(measured) => measured.went(java),
        None => native::went(file, java),
    });
    header.timeline = timeline;
    header.symbolization = file
        .and_then(|file| file.symbolization.as_ref())
        .map(native::symbolization);
    if let Some(input) = request.inputs.first() {
        header.commands = native::commands(&input.path, file, has_java);
    }
    header.unseen = unseen::unseen(file.map(|file| &file.profile), has_java, measured.as_ref());
    header
}

/// The process, and whose phone it ran on; else the input.
fn title(request: &ReportRequest, opened: &[Opened]) -> String {
    let names: Vec<&str> = opened.iter().map(|one| one.name.as_str()).collect();
    if request.base.is_some()
        && let [before, after] = names[..]
    {
        return format!("{before} → {after}");
    }
    let Some(one) = opened.first() else {
        return String::new();
    };
    let of_one = |one: &'_ Opened| -> Vec<String> {
        match &one.native {
            Some(file) => {
                let dumps = file.profile.dumps.iter();
                dumps.map(|dump| dump.facts.process.clone()).collect()
            }
            None => one.java.iter().map(|part| part.name().to_owned()).collect(),
        }
    };
    let mut processes: Vec<String> = opened.iter().flat_map(of_one).collect();
    processes.retain(|name| !name.is_empty());
    processes.sort_unstable();
    processes.dedup();
    let model = one.native.as_ref().and_then(|file| {
        let device = file.manifest.as_ref()?.device.as_ref()?;
        device.model.as_deref()
    });
    let what = match &processes[..] {
        [] => names.join(", "),
        [process] => process.clone(),
        [first, ..] => format!("{first} and {} more", processes.len() - 1),
    };
    match model {
        Some(model) => format!("{what} on {model}"),
        None => what,
    }
}

/// Several inputs in one table, and where the dumps of each begin.
fn joined(files: Vec<(String, Box<NativeFile>)>) -> (StackProfile, Vec<usize>) {
    let tables: Vec<_> = files.iter().map(|(_, file)| &file.profile.table).collect();
    let joined = join(&tables, JoinBy::Name);
    let mut dumps: Vec<Dump> = Vec::new();
    let mut starts = Vec::new();
    for ((name, file), nodes) in files.into_iter().zip(&joined.nodes) {
        starts.push(dumps.len());
        for mut dump in file.profile.dumps {
            dump.values = dump.values.through(nodes);
            dump.facts.label = Some(match dump.facts.label {
                Some(label) if !name.contains('@') => format!("{name}@{label}"),
                _ => name.clone(),
            });
            dumps.push(dump);
        }
    }
    let profile = StackProfile {
        table: joined.table,
        dumps,
    };
    (profile, starts)
}

/// Which dumps are compared: of each heap the last one that is meant, on both sides.
fn diff(
    base: &ReportInput,
    main: &ReportInput,
    per: Option<Per>,
    profile: &StackProfile,
    starts: &[usize],
) -> Diff {
    let dumps = &profile.dumps;
    // Several inputs are joined, that of the base first.
    let same_recording = starts.is_empty();
    let (before, mut after) = match starts.get(1) {
        Some(&second) => {
            let end = starts.get(2).copied().unwrap_or(dumps.len());
            (
                last_of_each(dumps, 0..second),
                last_of_each(dumps, second..end),
            )
        }
        None => {
            let all = 0..dumps.len();
            let meant = |input: &ReportInput| {
                let meant = all
                    .clone()
                    .filter(|&at| is_meant(&dumps[at], &input.wanted));
                last_of_each(dumps, meant)
            };
            (meant(base), meant(main))
        }
    };
    let mut pairs: Vec<Pair> = Vec::new();
    // One heap on each side is the same, whatever it is called: a debug build has a name of
    // its own.
    let alone = before.len() == 1 && after.len() == 1;
    for &at in &before {
        let other = after
            .iter()
            .position(|&other| alone || heap_of(&dumps[other]) == heap_of(&dumps[at]));
        pairs.push(Pair {
            before: Some(at),
            after: other.map(|other| after.remove(other)),
        });
    }
    pairs.extend(after.into_iter().map(|at| Pair {
        before: None,
        after: Some(at),
    }));
    Diff {
        before: base.to_string(),
        after: main.to_string(),
        pairs,
        same_recording,
        per,
    }
}

/// What tells heaps of one input apart, and is the same in another.
fn heap_of(dump: &Dump) -> (&str, &str) {
    (&dump.facts.process, &dump.facts.heap)
}

fn last_of_each(dumps: &[Dump], among: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut last: Vec<usize> = Vec::new();
    for at in among {
        last.retain(|&before| heap_of(&dumps[before]) != heap_of(&dumps[at]));
        last.push(at);
    }
    last
}

fn is_meant(dump: &Dump, wanted: &Wanted) -> bool {
    let Wanted::These(named) = wanted else {
        return true;
    };
    named.iter().any(|which| match which {
        Which::Last => true,
        Which::Index(index) => {
            dump.facts.index == *index || dump.facts.label.as_deref() == Some(&index.to_string())
        }
        Which::Label(label) => dump.facts.label.as_ref() == Some(label),
    })
}

/// The file of a page, which has its name once it is whole.
pub struct ReportFile {
    file: WholeFile,
    path: PathBuf,
}

impl ReportFile {
    /// Opens it before the work begins, so that a place that can't be written costs none.
    ///
    /// # Errors
    /// Where it is an input, or another file than a report and `force` is not given, or can't
    /// be written.
    pub fn create(path: &Path, inputs: &[&Path], force: bool) -> Result<ReportFile, ReportError> {
        let real = |path: &Path| path.canonicalize().ok();
        // The folder of a recording keeps its files, whatever is asked for.
        let folder = path.canonicalize().ok();
        let folder = folder.as_deref().and_then(Path::parent);
        let is_input = inputs.iter().any(|input| {
            real(path).is_some() && real(path) == real(input)
                || folder.is_some() && folder == real(input).as_deref()
        });
        if !is_replaceable(path) && (is_input || !force) {
            return Err(ReportError::Taken(path.to_owned()));
        }
        match WholeFile::create(path) {
            Ok(file) => Ok(ReportFile {
                file,
                path: path.to_owned(),
            }),
            Err(source) => Err(ReportError::Write {
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Writes the page; how many bytes it has.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn finish(mut self, report: Report<'_>) -> Result<u64, ReportError> {
        let mut counted = Counted {
            out: &mut self.file,
            bytes: 0,
        };
        let written = report.write(&mut counted);
        let bytes = counted.bytes;
        let finished = written.and_then(|()| self.file.finish());
        match finished {
            Ok(()) => Ok(bytes),
            Err(source) => Err(ReportError::Write {
                path: self.path,
                source,
            }),
        }
    }
}

/// Counts what passes.
struct Counted<'a> {
    out: &'a mut WholeFile,
    bytes: u64,
}

impl io::Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Whether nothing is lost with the file: it is not there, holds nothing, or is a report.
fn is_replaceable(path: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(path) else {
        return true;
    };
    if !metadata.is_file() || metadata.len() == 0 {
        return true;
    }
    is_page(path)
}

/// Whether a file is a page that heaptap wrote, of any version.
pub fn is_page(path: &Path) -> bool {
    // Opening a pipe would wait for whoever writes to it.
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(1024).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    read.is_ok() && head.starts_with("<!doctype html") && head.contains(report::MARK)
}

#[cfg(test)]
mod tests;
