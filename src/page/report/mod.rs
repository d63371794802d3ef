//! Pages: collects the contents of a page from one or more inputs, and writes its file.

mod companion;
mod compare;
mod error;
mod file;
mod growth;
mod host_paths;
mod java;
mod native;
mod open;
mod process_total;
mod request;
mod unseen;

pub use error::unwritable;
pub use file::{PAGE, PagePlace, ReportFile, is_page};
pub use request::{ReportInput, ReportRequest};

use std::path::Path;

use time::OffsetDateTime;

use self::compare::{diff, joined};
use self::host_paths::HostPaths;
use self::open::{Opened, Opening, milliseconds, open, to_open};
use self::process_total::Measured;
use self::request::last_component;
use crate::heaps::input::NativeFile;
use crate::heaps::java::ProgressReporter;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::parallel;
use heaptap_base::untrusted::shell::quoted;
use heaptap_model::stacks::{Dump, StackProfile};
use heaptap_report::Report;
use heaptap_report::data::header::{Fact, Folded, Header, Recorded};
use heaptap_report::data::{self, Reduction};
use heaptap_report::java::JavaPart;
use heaptap_results::findings::{Finding, PAGE_UNNOTED};
use heaptap_results::manifest::{DumpId, Manifest};

/// Destination of a page.
pub enum Target {
    /// Into a file.
    File(ReportFile),
    /// Memory, for the caller.
    Memory,
}

/// Result of writing a page.
#[derive(Debug)]
pub struct ReportOutcome {
    pub findings: Vec<Finding>,
    /// Exit code class; `None` if the data are complete.
    pub class: Option<ErrorClass>,
    /// Bytes of the page.
    pub bytes: u64,
    /// SHA-256 of the file, hex; empty without a file.
    pub sha256: String,
    /// The page, if it was not written to a file.
    pub page: Option<Vec<u8>>,
}

/// Collects the requested contents and writes the page. Blocks.
///
/// # Errors
/// Returns an error if an input cannot be read or has no requested contents, or the page cannot be
/// written.
pub fn write(
    request: &ReportRequest,
    progress: &ProgressReporter,
    target: Target,
) -> Result<ReportOutcome, Failure> {
    let mut opened = Vec::new();
    let inputs = to_open(request);
    let mut opening = Opening {
        inputs: inputs.len(),
        heaps: 0,
        before: None,
    };
    for input in &inputs {
        opened.push(open(input, request, &mut opening, progress)?);
    }
    progress.begin("writing the page");
    let mut told = ReportOutcome {
        findings: Vec::new(),
        class: ErrorClass::first_of(opened.iter().filter_map(|one| one.class)),
        bytes: 0,
        sha256: String::new(),
        page: None,
    };
    let recorded = companion::timelines(&mut opened);
    let (reconciled, left_out) = companion::reconciled(&mut opened);
    let mut header = header(request, &opened, recorded);
    header.reconcile = reconciled;
    if left_out > 0 {
        header.facts.push(Fact {
            name: "Reconciled values".to_owned(),
            value: format!(
                "{left_out} earlier snapshots are left out; run `heaptap meminfo DIR --reconcile --at all` to see \
                 them"
            ),
        });
    }
    let parts: Vec<JavaPart> = opened
        .iter_mut()
        .flat_map(|one| std::mem::take(&mut one.java))
        .collect();
    for one in &mut opened {
        told.findings.append(&mut one.findings);
    }
    let processes = opened.iter().flat_map(|one| &one.processes);
    let processes = processes.map(|(pid, name)| (*pid, name.as_str()));
    let missing = request.look.processes.missing("a dump of", processes);
    told.findings.extend(missing);
    let (native, inputs) = native_heaps(opened, request, &mut header).unzip();
    let report = Report {
        header,
        native,
        inputs: inputs.unwrap_or_default(),
        java: parts,
    };
    match target {
        Target::File(file) => {
            let page = file.finish(report)?;
            told.bytes = page.bytes;
            told.findings.extend(note(&page.path, &page.sha256));
            told.sha256 = page.sha256;
        }
        Target::Memory => {
            let mut page = Vec::new();
            report
                .write(&mut page)
                .map_err(|source| unwritable(Path::new("-"), &source))?;
            told.bytes = page.len() as u64;
            told.page = Some(page);
        }
    }
    Ok(told)
}

/// Returns the native heaps of all inputs in one tree, within the limit of callsites, and the start of
/// each input's dumps. Fills in growth, comparison and folding of `header`.
fn native_heaps(
    opened: Vec<Opened>,
    request: &ReportRequest,
    header: &mut Header,
) -> Option<(StackProfile, Vec<usize>)> {
    let most = request.limit.unwrap_or(data::MAX_COUNT);
    let files = opened
        .into_iter()
        .filter_map(|one| Some((one.name, one.native?)));
    let mut files: Vec<(String, Box<NativeFile>)> = files.collect();
    let (mut profile, inputs, reduction) = match files.len() {
        0 | 1 => {
            let (_, file) = files.pop()?;
            // Both only read the profile, and each has serial parts.
            let (growth, reduction) = parallel::both(
                || growth::growth(&file),
                || Reduction::new(&file.profile, most),
            );
            header.growth = growth;
            (file.profile, Vec::new(), reduction)
        }
        _ => {
            let (joined, starts) = joined(files);
            let reduction = Reduction::new(&joined, most);
            (joined, starts, reduction)
        }
    };
    if let (Some(base), Some(main)) = (&request.base, request.inputs.first()) {
        header.diff = Some(diff(base, main, request.per.clone(), &profile, &inputs));
    }
    let folded = reduction.and_then(|reduction| reduction.apply(&mut profile));
    header.folded = folded.map(|folded| Folded {
        command: full_command(request),
        ..folded
    });
    Some((profile, inputs))
}

/// Returns the command that writes the same page with every callsite.
fn full_command(request: &ReportRequest) -> String {
    let mut words = vec!["heaptap report -l 0".to_owned()];
    words.extend(request.inputs.iter().flat_map(ReportInput::typed));
    if let Some(base) = request.base.as_ref().and_then(|base| base.typed().pop()) {
        words.push(format!("--base {base}"));
        words.extend(
            request
                .per
                .iter()
                .map(|per| format!("--rounds {}", per.times)),
        );
    }
    words.extend(request.look.processes.options());
    if !request.look.heaps.is_empty() {
        words.push(format!("--heap {}", quoted(request.look.heaps.join(","))));
    }
    words.join(" ")
}

/// Adds the page of a recording directory to its manifest, by which `open` finds it. Returns a
/// finding if that fails.
fn note(page: &Path, sha256: &str) -> Option<Finding> {
    let directory = page.parent()?;
    if page.file_name()? != PAGE {
        return None;
    }
    let error = Manifest::note_page(directory, PAGE, sha256).err()?;
    let message = format!("cannot add {PAGE} to the manifest of the directory: {error}");
    Some(
        Finding::new(PAGE_UNNOTED, None, message)
            .with_help("open it with `heaptap open` and its own path"),
    )
}

/// Returns the facts of the page.
fn header(request: &ReportRequest, opened: &[Opened], mut recorded: Vec<Recorded>) -> Header {
    let now = OffsetDateTime::now_utc();
    let mut header = Header {
        tool: format!("heaptap {}", heaptap_results::manifest::version()),
        made_wall_ms: Some(milliseconds(now)),
        title: title(request, opened),
        ..Header::default()
    };
    let hidden = HostPaths::from_request(request);
    let several = opened.len() > 1;
    let has_java = opened.iter().any(|one| !one.java.is_empty());
    let mut first = 0;
    for (at, one) in opened.iter().enumerate() {
        let file = one.native.as_deref();
        let mut facts = vec![Fact {
            name: "Input".to_owned(),
            value: one.name.clone(),
        }];
        let own = recorded.iter().find(|of| of.from == first && of.to > first);
        let timeline = own.map(|of| &of.timeline);
        let of_file = file.map(|file| native::facts(file, timeline));
        facts.extend(of_file.into_iter().flatten());
        let manifest = file.and_then(|file| file.manifest.as_ref());
        for mut fact in facts {
            if several {
                fact.name = format!("{} ({})", fact.name, at + 1);
            }
            header.facts.push(fact);
        }
        let place_of = |wanted: &DumpId| {
            let mut dumps = file?.profile.dumps.iter();
            let is_it = |dump: &Dump| {
                let facts = &dump.facts;
                (facts.pid, &facts.heap, facts.number) == (wanted.pid, &wanted.heap, wanted.number)
            };
            Some(first + dumps.position(is_it)?)
        };
        for mut warning in native::warnings(&one.findings, manifest, place_of) {
            if several {
                warning.message = format!("{}: {}", one.name, warning.message);
            }
            hidden.strip(&mut warning.message);
            warning.help.iter_mut().for_each(|help| hidden.strip(help));
            header.warnings.push(warning);
        }
        first += one.dumps();
    }
    header.facts.push(Fact {
        name: "Page written".to_owned(),
        value: format!(
            "{}, by heaptap {}",
            heaptap_report::moment(now),
            heaptap_results::manifest::version()
        ),
    });
    // With several inputs, the last one is the most relevant.
    let file = opened.iter().rev().find_map(|one| one.native.as_deref());
    let heap = opened.iter().rev().find_map(|one| one.java.last());
    let java = heap.map(JavaPart::totals);
    // The dumps of that input are the last of the page.
    let dumps: usize = opened.iter().map(Opened::dumps).sum();
    let of_file = recorded
        .iter()
        .find(|one| one.from < one.to && one.to == dumps);
    let measured = file
        .zip(of_file)
        .and_then(|(file, recorded)| Measured::at_dump(&file.profile, &recorded.timeline));
    header.went = Some(match &measured {
        Some(measured) => measured.went(java),
        None => native::went(file, java),
    });
    match several {
        true => header.timelines = recorded,
        false => header.timeline = recorded.pop().map(|only| only.timeline),
    }
    header.symbolization = file
        .and_then(|file| file.symbolization.as_ref())
        .map(native::symbolization);
    if let Some(input) = request.inputs.first() {
        header.commands = native::commands(last_component(&input.path), file, has_java);
    }
    header.unseen = unseen::unseen(file.map(|file| &file.profile), has_java, measured.as_ref());
    header
}

/// Returns the process and its device as title, otherwise the input.
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

pub mod browser;
#[cfg(test)]
mod tests;
