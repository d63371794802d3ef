//! Opened inputs of a page: native heaps, Java heaps, and companion data.

use std::collections::BTreeMap;
use std::path::Path;

use time::OffsetDateTime;

use super::host_paths::HostPaths;
use super::java::{self, HeapPlace};
use super::request::{ReportInput, ReportRequest, last_component};
use crate::heaps::input::{self, DumpScope, InputError, NativeFile, OpenedInput};
use crate::heaps::java::diff::Half;
use crate::heaps::java::{
    JavaError, JavaFile, OpenedJava, ProgressReporter, lying_in as java_lying_in,
};
use crate::heaps::reconcile;
use crate::page::explore_api::ExploredHeap;
use android_memory::reconcile::Table;
use heaptap_base::directory;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::parallel;
use heaptap_base::units::counted;
use heaptap_report::data;
use heaptap_report::data::timeline::Timeline;
use heaptap_report::java::JavaPart;
use heaptap_results::findings::{self, Finding};
use heaptap_results::timeline as readings;

/// Maximum number of Java heaps of one input on a page; beyond it, the first and the last ones are
/// shown.
const JAVA_HEAPS: usize = 6;

/// An input with its displayed data.
pub(super) struct Opened {
    pub(super) name: String,
    pub(super) native: Option<Box<NativeFile>>,
    pub(super) java: Vec<JavaPart>,
    pub(super) findings: Vec<Finding>,
    /// PID and name of each process with a dump.
    pub(super) processes: Vec<(Option<u64>, String)>,
    pub(super) class: Option<ErrorClass>,
    pub(super) timeline: Option<Timeline>,
    /// Reconciled values, in chronological order.
    pub(super) reconciled: Vec<Table>,
}

impl Opened {
    /// Returns the number of its native dumps.
    pub(super) fn dumps(&self) -> usize {
        self.native
            .as_ref()
            .map_or(0, |file| file.profile.dumps.len())
    }
}

/// State of a page while its inputs are opened one after the other.
pub(super) struct Opening {
    /// Number of its inputs.
    pub(super) inputs: usize,
    /// Number of its Java heaps so far.
    pub(super) heaps: usize,
    /// Tables of the Java heap with which another one is compared.
    pub(super) before: Option<Half>,
}

/// Returns a moment in milliseconds since 1970.
pub(super) fn milliseconds(moment: OffsetDateTime) -> f64 {
    (moment.unix_timestamp_nanos() / 1_000_000) as f64
}

/// Returns the inputs to open, in order: dumps of the same recording form one input.
pub(super) fn to_open(request: &ReportRequest) -> Vec<ReportInput> {
    let mut inputs = request.inputs.clone();
    if let Some(base) = &request.base {
        match inputs.first_mut() {
            Some(main) if is_same(&base.path, &main.path) => {
                main.wanted = match (&base.wanted, &main.wanted) {
                    // The compared Java heaps are opened whatever is wanted.
                    _ if request.java_only => main.wanted.clone(),
                    (DumpScope::These(before), DumpScope::These(after)) => {
                        DumpScope::These([&before[..], &after[..]].concat())
                    }
                    _ => DumpScope::All,
                };
            }
            _ => inputs.insert(0, base.clone()),
        }
    }
    inputs
}

/// Returns whether two inputs are the same, which can be stdin.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || directory::is_same(one, other)
}

/// Opens an input: native heaps, Java heaps or both.
pub(super) fn open(
    input: &ReportInput,
    request: &ReportRequest,
    opening: &mut Opening,
    progress: &ProgressReporter,
) -> Result<Opened, Failure> {
    let mut opened = Opened {
        name: input.to_string(),
        native: None,
        java: Vec::new(),
        findings: Vec::new(),
        processes: Vec::new(),
        class: None,
        timeline: None,
        reconciled: Vec::new(),
    };
    let mut unmeant = None;
    let mut java = OpenedJava::Unread;
    let known = match request.java_only {
        true => None,
        false => Some(readings::beside(&input.path)),
    };
    if let Some(known) = &known {
        let mut options = request.look.clone();
        options.names.mappings.splice(0..0, input.mappings.clone());
        options.memory = true;
        let most = request.limit.unwrap_or(data::MAX_COUNT);
        options.list_from = (most < usize::MAX).then(|| data::list_from(most));
        // Reconciled values are shown for all labels.
        options.errors = input.path.is_dir() && !known.timeline.entries.is_empty();
        match input::open(&input.path, &input.wanted, &options, progress) {
            Ok(OpenedInput::Native(file, read)) => {
                java = read;
                opened.findings = file.findings.clone();
                // Another input, or a Java heap, can have them.
                (opened.findings).retain(|found| found.kind != findings::NOT_IN_INPUT);
                let facts = file.listed.iter().map(|dump| &dump.facts);
                let processes = facts.map(|facts| (Some(facts.pid), facts.process.clone()));
                opened.processes.extend(processes);
                opened.class = file.class();
                opened.native = Some(file);
            }
            Ok(OpenedInput::Java(read)) => java = read,
            // The selected dump might be a Java heap.
            Err(error @ (InputError::NoSuchDump { .. } | InputError::NoSuchProcess { .. })) => {
                unmeant = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    // Companion heaps of a recording cannot be selected here.
    let beside = || input.wanted == DumpScope::All && java_lying_in(&input.path).is_some();
    if request.native_only && opened.native.is_none() {
        return Err(match unmeant {
            Some(error) => error,
            None => InputError::JavaOnly {
                name: input.path.display().to_string(),
            },
        }
        .into());
    }
    let has_java = opened
        .native
        .as_ref()
        .is_none_or(|file| file.java_dumps > 0 || beside());
    if has_java && !request.native_only {
        let found = add_java(&mut opened, java, input, request, opening, progress);
        match (found, &opened.native, unmeant) {
            (Ok(()), ..) => {}
            // In a recording with both kinds, the selection might match only one.
            (Err(error), Some(_), _) if is_choice(&error) => {}
            (Err(error @ JavaError::Broken { .. }), Some(_), _) => {
                let found = Finding::from_error(&error);
                let class = found.class.map(ErrorClass::with_result);
                opened.class = ErrorClass::first_of(opened.class.into_iter().chain(class));
                opened.findings.push(found);
            }
            (Err(error), None, Some(native)) if is_choice(&error) => return Err(native.into()),
            (Err(error), ..) => return Err(error.into()),
        }
    }
    if let Some(known) = known {
        add_timeline(&mut opened, &input.path, known);
    }
    Ok(opened)
}

/// Adds the companion data of the processes in the input.
fn add_timeline(opened: &mut Opened, path: &Path, mut known: readings::LoadedTimeline) {
    if let Some(file) = &mut opened.native {
        known.add(std::mem::take(&mut file.memory));
    }
    if let Some(file) = opened.native.as_ref().filter(|_| path.is_dir()) {
        let moments = reconcile::of_directory(path, &file.listed, &known.timeline);
        opened.reconciled = moments.into_iter().map(|moment| moment.table).collect();
    }
    let class = findings::class(&known.findings).into_iter();
    opened.class = ErrorClass::first_of(opened.class.into_iter().chain(class));
    opened.findings.extend(known.findings);
    let dumps = opened.native.iter().flat_map(|file| file.listed.iter());
    let names: BTreeMap<u64, &str> = dumps
        .map(|dump| (dump.facts.pid, dump.facts.process.as_str()))
        .collect();
    let name_of = |pid: u32| names.get(&u64::from(pid)).map(|name| (*name).to_owned());
    opened.timeline = Timeline::new(&known.timeline, &name_of);
}

/// Returns whether the only error is that no Java heap matches the selection.
fn is_choice(error: &JavaError) -> bool {
    matches!(
        error,
        JavaError::NoSuchDump { .. }
            | JavaError::NoSuchMoment { .. }
            | JavaError::NoSuchProcess { .. }
            | JavaError::NoHeap { .. }
            | JavaError::Native { .. }
    )
}

fn add_java(
    opened: &mut Opened,
    java: OpenedJava,
    input: &ReportInput,
    request: &ReportRequest,
    opening: &mut Opening,
    progress: &ProgressReporter,
) -> Result<(), JavaError> {
    let hidden = HostPaths::from_request(request);
    let mut options = request.java.clone();
    options.names.mappings.splice(0..0, input.mappings.clone());
    let mut file = JavaFile::open(&input.path, java, options, progress)?;
    let processes = file.processes();
    let processes = processes.map(|(pid, name)| (pid, name.to_owned()));
    opened.processes.extend(processes);
    if let DumpScope::These(named) = &input.wanted {
        file.list_dumps_of_hprof(named);
    }
    let DumpChoice { dumps, base, main } = choose(&file, input, request)?;
    opened.findings.extend(left_out(&file, input, &dumps));
    // The base of the comparison is read first; the page keeps the order.
    let (among, first) = (dumps.len() * opening.inputs, opening.heaps);
    opening.heaps += dumps.len();
    let mut order: Vec<(usize, usize)> = dumps.into_iter().enumerate().collect();
    order.sort_by_key(|&(at, dump)| (Some(dump) != base, at));
    let mut parts = Vec::new();
    for (at, dump) in order {
        let wall_ms = file.dumps()[dump].time.map(milliseconds);
        let mut heap = file.read(dump)?;
        let class = heap.class();
        opened.findings.extend(heap.findings.iter().cloned());
        opened.class = ErrorClass::first_of([opened.class, class].into_iter().flatten());
        heap.path = last_component(&heap.path).to_owned();
        for finding in &mut heap.findings {
            hidden.strip_finding(finding);
        }
        progress.begin("finding leaks and waste");
        let before = opening.before.take_if(|_| Some(dump) == main);
        let explored = ExploredHeap::new(heap, request.contents, before);
        if Some(dump) == base {
            opening.before = Some(explored.half());
        }
        progress.begin("writing the page");
        let place = HeapPlace {
            input: last_component(&input.path),
            wall_ms,
            number: first + at,
            among,
            has_others: file.has_several_processes(),
        };
        let part = java::part(&explored, &place);
        parts.push((at, part));
        match among {
            1 => parallel::free(explored),
            // The next heap needs the memory.
            _ => drop(explored),
        }
    }
    parts.sort_by_key(|(at, _)| *at);
    opened.java.extend(parts.into_iter().map(|(_, part)| part));
    Ok(())
}

/// Java heaps of an input that are on a page, by their places in it.
struct DumpChoice {
    dumps: Vec<usize>,
    /// The one with which another is compared.
    base: Option<usize>,
    /// The one that is compared.
    main: Option<usize>,
}

/// Chooses the Java heaps of an input.
fn choose(
    file: &JavaFile,
    input: &ReportInput,
    request: &ReportRequest,
) -> Result<DumpChoice, JavaError> {
    let count = file.dumps().len();
    let mut dumps: Vec<usize> = match &input.wanted {
        DumpScope::These(named) => {
            let mut found = Vec::new();
            let mut error = None;
            for which in named {
                match file.choose_all(Some(which)) {
                    Ok(dumps) => found.extend(dumps),
                    Err(problem) => error = error.or(Some(problem)),
                }
            }
            match error {
                Some(error) if found.is_empty() => return Err(error),
                // Some might be native heaps.
                _ => found,
            }
        }
        DumpScope::Default => file.choose_all(None)?,
        DumpScope::All if count <= JAVA_HEAPS => (0..count).collect(),
        // The first and the last ones are the most informative.
        DumpScope::All => std::iter::once(0)
            .chain(count + 1 - JAVA_HEAPS..count)
            .collect(),
    };
    let meant = |side: Option<&ReportInput>| {
        let side =
            side.filter(|side| request.base.is_some() && is_same(&side.path, &input.path))?;
        let which = match &side.wanted {
            DumpScope::These(named) => named.last(),
            DumpScope::Default | DumpScope::All => None,
        };
        file.choose(which).ok()
    };
    let base = meant(request.base.as_ref());
    let main = meant(request.inputs.first()).filter(|main| Some(*main) != base);
    for at in base.into_iter().chain(main) {
        if !dumps.contains(&at) {
            dumps.push(at);
            dumps.sort_unstable();
        }
    }
    Ok(DumpChoice { dumps, base, main })
}

/// Returns a finding if an input has more Java heaps than a page.
fn left_out(file: &JavaFile, input: &ReportInput, chosen: &[usize]) -> Option<Finding> {
    let all = 0..file.dumps().len();
    let left_out = all.filter(|at| !chosen.contains(at));
    let left_out: Vec<String> = left_out.map(|at| file.name_of(at)).collect();
    if left_out.is_empty() || input.wanted != DumpScope::All {
        return None;
    }
    let message = format!(
        "{} not in the page: {}",
        counted(left_out.len() as u64, "Java heap is", "Java heaps are"),
        left_out.join(", ")
    );
    Some(
        Finding::new("java-heaps-left-out", None, message).with_help(format!(
            "select one with `heaptap report INPUT@N --heap java{}`",
            match file.has_several_processes() {
                true => " -n NAME",
                false => "",
            }
        )),
    )
}
