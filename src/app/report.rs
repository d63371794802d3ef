//! Pages: gathers what a page shows of one or more inputs, and owns the file it goes to.

mod java;
mod native;
mod unseen;

use super::findings::Finding;
use super::java::{JavaError, JavaFile, JavaInput, JavaOptions, Steps};
use super::look::{self, Look, LookError, LookOptions, NativeFile, Wanted};
use super::manifest::Manifest;
use super::packet_files::WholeFile;
use crate::error::{Classified, ErrorClass};
use crate::report::data::header::{Diff, Fact, Header, Pair, Per};
use crate::report::java::JavaPart;
use crate::report::{self, Report};
use crate::stacks::{Dump, JoinBy, StackProfile, join};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use time::OffsetDateTime;

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

/// What a page is to show.
#[derive(Debug, Clone)]
pub struct ReportRequest {
    /// The inputs, at least one; of several, callsites are joined by name.
    pub inputs: Vec<JavaInput>,
    /// What the first input is compared with.
    pub base: Option<JavaInput>,
    /// What differences are divided by.
    pub per: Option<Per>,
    /// How native heaps are opened.
    pub look: LookOptions,
    /// How Java heaps are opened.
    pub java: JavaOptions,
    /// Java heaps alone.
    pub java_only: bool,
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
}

/// An input with all that is shown of it.
struct Opened {
    name: String,
    native: Option<Box<NativeFile>>,
    java: Vec<JavaPart>,
    findings: Vec<Finding>,
    class: Option<ErrorClass>,
}

/// Gathers what the request names and writes the page. Blocks.
///
/// # Errors
/// Where an input can't be read or holds nothing that was asked for, or the page can't be
/// written.
pub fn write(
    request: &ReportRequest,
    steps: &Steps,
    out: ReportFile,
) -> Result<Told, ReportError> {
    let mut opened = Vec::new();
    let mut number = 0;
    for input in request.base.iter().chain(&request.inputs) {
        let one = open(input, request, &mut number, steps)?;
        number += one.java.len();
        opened.push(one);
    }
    steps.begin("writing the page");
    let mut told = Told {
        findings: Vec::new(),
        class: ErrorClass::first_of(opened.iter().filter_map(|one| one.class)),
        bytes: 0,
    };
    let mut header = header(request, &opened);
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
    let profile = match profiles.len() {
        0 => None,
        1 => profiles.pop().map(|(_, file)| file.profile),
        _ => {
            let (joined, starts) = joined(profiles);
            inputs = starts;
            Some(joined)
        }
    };
    if let (Some(_), Some(profile)) = (&request.base, &profile) {
        header.diff = diff(request, profile, &inputs);
    }
    let report = Report {
        header,
        native: profile.as_ref(),
        inputs,
        java: parts,
    };
    told.bytes = out.finish(report)?;
    Ok(told)
}

/// Opens an input: native heaps, Java heaps or both.
fn open(
    input: &JavaInput,
    request: &ReportRequest,
    number: &mut usize,
    steps: &Steps,
) -> Result<Opened, ReportError> {
    let name = match input.path.file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => input.path.display().to_string(),
    };
    let name = match &input.which {
        Some(which) => format!("{name}@{which}"),
        None => name,
    };
    let mut opened = Opened {
        name,
        native: None,
        java: Vec::new(),
        findings: Vec::new(),
        class: None,
    };
    let wanted = match &input.which {
        Some(which) => Wanted::These(vec![which.clone()]),
        None => Wanted::All,
    };
    let mut unmeant = None;
    if !request.java_only {
        match look::open(&input.path, &wanted, &request.look, steps) {
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
    let has_java = opened.native.as_ref().is_none_or(|file| file.java_dumps > 0);
    // A heap of a name is a native one.
    if has_java && request.look.heap.is_none() {
        let found = add_java(&mut opened, input, request, *number, steps);
        match (found, &opened.native, unmeant) {
            (Ok(()), ..) => {}
            // Of a recording with both, one may be what was named.
            (Err(error), Some(_), _) if is_choice(&error) => {}
            (Err(error), None, Some(native)) if is_choice(&error) => return Err(native.into()),
            (Err(error), ..) => return Err(error.into()),
        }
    }
    Ok(opened)
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
    input: &JavaInput,
    request: &ReportRequest,
    number: usize,
    steps: &Steps,
) -> Result<(), JavaError> {
    let mut file = JavaFile::open(&input.path, request.java.clone(), steps)?;
    let count = file.dumps().len();
    let chosen: Vec<usize> = match &input.which {
        Some(which) => vec![file.choose(Some(which))?],
        None if count <= JAVA_HEAPS => (0..count).collect(),
        // The beginning and the end tell most.
        None => std::iter::once(0).chain(count + 1 - JAVA_HEAPS..count).collect(),
    };
    if chosen.len() < count && input.which.is_none() {
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
    let manifest = opened.native.as_ref().and_then(|file| file.manifest.clone());
    for (at, dump) in chosen.into_iter().enumerate() {
        let index = file.dumps()[dump].index;
        let heap = file.read(dump)?;
        let class = heap.class();
        opened.findings.extend(heap.findings.iter().cloned());
        opened.class = ErrorClass::first_of([opened.class, class].into_iter().flatten());
        let wall_ms = manifest.as_ref().and_then(|m| java_time(m, index));
        opened
            .java
            .push(java::part(&heap, wall_ms, number + at, steps));
    }
    Ok(())
}

/// When a Java heap was dumped, as the manifest has it.
fn java_time(manifest: &Manifest, index: u32) -> Option<f64> {
    let dump = manifest.dumps.java.iter().find(|dump| dump.index == index)?;
    Some(milliseconds(dump.time?))
}

fn milliseconds(moment: OffsetDateTime) -> f64 {
    (moment.unix_timestamp_nanos() / 1_000_000) as f64
}

/// What is known beside the numbers.
fn header(request: &ReportRequest, opened: &[Opened]) -> Header {
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
    if let (Some(last), Some(input)) = (opened.last(), request.inputs.last()) {
        let file = last.native.as_deref();
        let heap = last.java.last().map(JavaPart::totals);
        header.went = Some(native::went(file, heap));
        header.symbolization = file
            .and_then(|file| file.symbolization.as_ref())
            .map(native::symbolization);
        header.commands = native::commands(&input.path, file, !last.java.is_empty());
        header.unseen = unseen::unseen(file.map(|file| &file.profile), has_java);
    }
    header
}

/// The process, and whose phone it ran on; else the input.
fn title(request: &ReportRequest, opened: &[Opened]) -> String {
    let names: Vec<&str> = opened.iter().map(|one| one.name.as_str()).collect();
    if request.base.is_some() || opened.len() > 1 {
        return match names[..] {
            [before, after] => format!("{before} → {after}"),
            _ => names.join(", "),
        };
    }
    let Some(one) = opened.first() else {
        return String::new();
    };
    let mut processes: Vec<&str> = match &one.native {
        Some(file) => {
            let dumps = file.profile.dumps.iter();
            dumps.map(|dump| dump.facts.process.as_str()).collect()
        }
        None => one.java.iter().map(JavaPart::name).collect(),
    };
    processes.retain(|name| !name.is_empty());
    processes.sort_unstable();
    processes.dedup();
    let model = one.native.as_ref().and_then(|file| {
        let device = file.manifest.as_ref()?.device.as_ref()?;
        device.model.as_deref()
    });
    let what = match processes[..] {
        [] => one.name.clone(),
        [process] => process.to_owned(),
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

/// Which dumps are compared: the last of each heap, of both inputs.
fn diff(request: &ReportRequest, profile: &StackProfile, starts: &[usize]) -> Option<Diff> {
    let second = *starts.get(1)?;
    let key = |at: usize| {
        let facts = &profile.dumps[at].facts;
        (facts.process.as_str(), facts.heap.as_str())
    };
    let last_of = |range: std::ops::Range<usize>| {
        let mut last: Vec<usize> = Vec::new();
        for at in range {
            last.retain(|&before| key(before) != key(at));
            last.push(at);
        }
        last
    };
    let before = last_of(0..second);
    let mut after = last_of(second..profile.dumps.len());
    let mut pairs: Vec<Pair> = Vec::new();
    // One heap on each side is the same, whatever it is called: a debug build has a name of
    // its own.
    let alone = before.len() == 1 && after.len() == 1;
    for &at in &before {
        let other = after.iter().position(|&b| alone || key(b) == key(at));
        pairs.push(Pair {
            before: Some(at),
            after: other.map(|other| after.remove(other)),
        });
    }
    pairs.extend(after.into_iter().map(|at| Pair {
        before: None,
        after: Some(at),
    }));
    let name = |input: Option<&JavaInput>| input.map_or_else(String::new, ToString::to_string);
    let base = request.base.as_ref();
    let main = request.inputs.first();
    Some(Diff {
        before: name(base),
        after: name(main),
        pairs,
        same_recording: base.map(|input| &input.path) == main.map(|input| &input.path),
        per: request.per.clone(),
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
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(1024).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    read.is_ok() && head.contains(report::MARK)
}
