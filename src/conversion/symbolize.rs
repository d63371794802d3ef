//! `symbolize`: names for a trace as packets that any Perfetto tool takes, alone or behind the
//! trace; and for a recording's folder, whose files are brought up to date with them.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::conversion::convert::{self, Input, Plain};
use crate::conversion::error::ConvertError;
use crate::conversion::goal::{self, GoalError, Out, PacketOutput, PacketScope};
use crate::conversion::selection::Selection;
use crate::conversion::tracked;
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::export::packets::{Written, write_symbols};
use crate::export::pprof::PprofOptions;
use crate::folder::{RAW_TRACE, SYMBOLIZED_TRACE};
use crate::heaps::java::{JavaError, JavaFile, JavaOptions, OpenedJava, ProgressReporter};
use crate::heaps::trace_findings;
use crate::import::{self, ImportError, OpenTrace};
use crate::naming::coverage::{Coverage, Tally};
use crate::naming::frames::{LookupControl, LookupScope, Namer};
use crate::naming::names::NameOptions;
use crate::naming::packet_files::{self, DEOBFUSCATION, PacketFiles, SYMBOLS, is_own_file};
use crate::naming::r8_mappings::{UsedMap, add_used};
use crate::results::findings::{self, Finding};
use crate::results::manifest::{self, Manifest, ManifestError, MappingFile};
use crate::results::recorded;
use crate::results::summary::HeapSummary;
use crate::stacks::naming::FrameNamer;
use crate::trace::{Surveyed, TraceError};
use crate::untrusted::shell::quoted_path;

/// What came of a trace.
#[derive(Debug)]
pub struct Symbolized {
    /// What was written.
    pub written: Written,
    /// Names of the files that were written into a folder; `None` where one goal was.
    pub files: Option<Vec<&'static str>>,
    /// Addresses that were looked up, of all libraries.
    pub wanted: usize,
    /// How many frames have names by now, and what is missing.
    pub symbolization: manifest::Symbolization,
    /// What the user should know of the trace.
    pub findings: Vec<Finding>,
}

impl Symbolized {
    /// What the exit code tells of. Missing symbols are no failure.
    pub fn class(&self) -> Option<ErrorClass> {
        ErrorClass::first_of(self.findings.iter().filter_map(|finding| finding.class))
    }
}

/// Why a trace could not be symbolized.
#[derive(Debug, thiserror::Error)]
pub enum SymbolizeError {
    /// The input holds no trace, or can't be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The trace can't be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The packets have no place, or can't be written there.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// A file of the folder leads out of it.
    #[error("{} is a symbolic link, and heaptap follows none in a folder that it writes to", path.display())]
    Linked {
        /// The file.
        path: PathBuf,
    },
    /// A recording's trace is not the one that was recorded: what was made of that stays.
    #[error("{} is not the trace that was recorded, or not all of it", path.display())]
    OtherTrace {
        /// The file.
        path: PathBuf,
    },
    /// Files of names are gone: written anew, the profiles would lose what they have.
    #[error(
        "the profiles in {} name {before} frames, and now only {now} would be named{}: nothing \
         was written",
        folder.display(),
        if before == now { " (Java names are gone)" } else { "" }
    )]
    FewerNames {
        /// The recording's folder.
        folder: PathBuf,
        /// Distinct frames with a name.
        before: u64,
        /// As many as would have one.
        now: u64,
    },
    /// Whoever asked did not want to wait.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// A recording's manifest can't be read or written.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A recording's profiles can't be written again.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// A recording's Java heaps can't be read.
    #[error(transparent)]
    Java(#[from] JavaError),
}

impl Classified for SymbolizeError {
    fn facts(&self) -> ErrorFacts {
        match self {
            SymbolizeError::Import(error) => error.facts(),
            SymbolizeError::Trace(error) => error.facts(),
            SymbolizeError::Goal(error) => error.facts(),
            SymbolizeError::Manifest(error) => error.facts(),
            SymbolizeError::Convert(error) => error.facts(),
            SymbolizeError::Java(error) => error.facts(),
            SymbolizeError::Linked { path } => ErrorFacts::new(ErrorClass::BadInput, "linked-file")
                .with_help(format!(
                    "put the file itself there if you trust where it comes from, or write \
                     elsewhere: heaptap convert {} -o DIR",
                    quoted_path(path.parent().unwrap_or(path))
                )),
            SymbolizeError::OtherTrace { path } => {
                ErrorFacts::new(ErrorClass::BadInput, "other-trace").with_help(format!(
                    "what was made of the whole trace stays; copy the folder again from where it \
                     came, or convert what this file has: heaptap convert {} -o DIR",
                    quoted_path(path)
                ))
            }
            SymbolizeError::FewerNames { folder, .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "fewer-names").with_help(format!(
                    "say where the names are (--symbols DIR, --mapping FILE), or convert without \
                     them: heaptap convert {} -o DIR",
                    quoted_path(folder.join(RAW_TRACE))
                ))
            }
            SymbolizeError::Interrupted => ErrorFacts::new(ErrorClass::Interrupted, "interrupted"),
        }
    }
}

/// Looks up names for a trace and writes them as packets. Blocks.
///
/// # Errors
/// Where the input holds no trace, or the output can't be written. That no symbols are found is
/// none.
pub fn symbolize(
    input: &Input,
    scope: PacketScope,
    output: PacketOutput,
    names: NameOptions,
    control: LookupControl,
) -> Result<Symbolized, SymbolizeError> {
    let traces = goal::open(input, scope, &output)?;
    let mut run = Run::new(names, control, Sink::Out(Out::open(output)?, scope));
    for trace in traces {
        run.trace(trace)?;
    }
    run.finish()
}

/// Where the packets of a run go.
enum Sink {
    Out(Out, PacketScope),
    /// A folder with the plain trace.
    Folder(PacketFiles, PathBuf),
}

struct Run {
    namer: Namer,
    control: LookupControl,
    sink: Sink,
    tally: Tally,
    written: Written,
    wanted: usize,
    findings: Vec<Finding>,
    whole_bytes: u64,
}

impl Run {
    fn new(names: NameOptions, control: LookupControl, sink: Sink) -> Run {
        Run {
            namer: Namer::new(names, control.clone()),
            control,
            sink,
            tally: Tally::default(),
            written: Written::default(),
            wanted: 0,
            findings: Vec::new(),
            whole_bytes: 0,
        }
    }

    fn trace(&mut self, input: OpenTrace) -> Result<(), SymbolizeError> {
        let (source, copy) = import::share(input.source);
        let mut surveyed = Surveyed::read(source)?;
        self.whole_bytes = surveyed.whole_bytes();
        let named = self
            .namer
            .name(surveyed.recording_mut(), LookupScope::Missing);
        if self.control.is_cancelled() {
            return Err(SymbolizeError::Interrupted);
        }
        self.findings.extend(named.findings());
        let libraries = named.symbolized.libraries.iter();
        self.wanted += libraries.map(|l| l.library.addresses.len()).sum::<usize>();
        let recording = surveyed.recording();
        let written = match &mut self.sink {
            Sink::Folder(files, _) => files.add_symbols(recording, |frame| named.has(frame)),
            Sink::Out(out, scope) => {
                let out = out.writer();
                let copied = match scope {
                    PacketScope::Packets => Ok(0),
                    PacketScope::WholeTrace => io::copy(&mut copy.take(self.whole_bytes), out),
                };
                copied.and_then(|_| write_symbols(recording, |frame| named.has(frame), out))
            }
        };
        self.written
            .add(written.map_err(|source| self.unwritable(source))?);
        let mut trace = surveyed.seal();
        let recording = Arc::clone(trace.recording());
        let mut coverage = Coverage::default();
        let mut sampled = false;
        let health = trace.read_dumps(|dump| -> Result<(), TraceError> {
            sampled |= !dump.samples.is_empty();
            coverage.add(&dump);
            Ok(())
        })?;
        coverage.finish(&named, &mut FrameNamer::new(&recording), &mut self.tally);
        let damage = input.damage.as_deref();
        let told = trace_findings::of_trace(&input.name, damage, &health, sampled);
        self.findings.extend(told);
        Ok(())
    }

    fn unwritable(&self, source: io::Error) -> SymbolizeError {
        let name = match &self.sink {
            Sink::Out(out, _) => out.name(),
            Sink::Folder(_, raw) => raw.with_file_name(SYMBOLS).display().to_string(),
        };
        GoalError::Write { name, source }.into()
    }

    fn finish(self) -> Result<Symbolized, SymbolizeError> {
        if self.control.is_cancelled() {
            return Err(SymbolizeError::Interrupted);
        }
        let mut files_written = None;
        let (name, finished) = match self.sink {
            Sink::Out(out, _) => (out.name(), out.finish()),
            Sink::Folder(files, raw) => {
                let goal = raw.with_file_name(SYMBOLIZED_TRACE);
                let finished =
                    files.finish(&raw, self.whole_bytes, files_written.insert(Vec::new()));
                (goal.display().to_string(), finished)
            }
        };
        finished.map_err(|source| GoalError::Write { name, source })?;
        Ok(Symbolized {
            written: self.written,
            files: files_written,
            wanted: self.wanted,
            symbolization: self.tally.into_manifest(),
            findings: self.findings,
        })
    }
}

/// What came of a recording's folder.
#[derive(Debug)]
pub enum Refreshed {
    /// Symbols stand in it now. It had no manifest, so the profiles in it are somebody else's
    /// and stay as they are.
    Symbols(Box<Symbolized>),
    /// So do profiles and a manifest with names.
    Recording(Box<Recording>),
}

impl Refreshed {
    /// What the exit code tells of.
    pub fn class(&self) -> Option<ErrorClass> {
        match self {
            Refreshed::Symbols(symbolized) => symbolized.class(),
            Refreshed::Recording(recording) => recording.class,
        }
    }
}

/// A recording with the names that are to be had now.
#[derive(Debug)]
pub struct Recording {
    /// Its manifest as it is now.
    pub manifest: Manifest,
    /// Names of the files of packets that were written.
    pub packets: Vec<&'static str>,
    /// What its profiles show now.
    pub heaps: Vec<HeapSummary>,
    /// What the exit code tells of; `None` where all was written.
    pub class: Option<ErrorClass>,
    /// Whether Java allocations that a runtime tracked have names from a mapping file.
    pub names_allocations: bool,
    /// The mapping files that were tried, and what each of them named.
    pub mappings: Vec<manifest::MappingFile>,
}

/// Refuses a folder that [`refresh`] would not touch.
///
/// # Errors
/// Where a file of it is a link, or its trace is not the one that was recorded.
pub fn check(folder: &Path) -> Result<(), SymbolizeError> {
    let raw = folder.join(RAW_TRACE);
    // What is read here is written again: nothing comes into the folder through a link.
    for path in [raw.clone(), folder.join(manifest::FILE_NAME)] {
        if path.is_symlink() {
            return Err(SymbolizeError::Linked { path });
        }
    }
    if !raw.is_file() || !folder.join(manifest::FILE_NAME).is_file() {
        return Ok(());
    }
    // What was made of a whole trace is not made anew of a part of it.
    let Some(recorded) = Manifest::read(folder)?.trace else {
        return Ok(());
    };
    let name = raw.display().to_string();
    let unreadable = ImportError::unreadable(&name);
    match recorded::is_other(&raw, recorded.size, &recorded.sha256).map_err(unreadable)? {
        false => Ok(()),
        true => Err(SymbolizeError::OtherTrace { path: raw }),
    }
}

/// Brings a recording's folder up to date with the names that are to be had now: `symbols`,
/// `symbolized-trace`, the profiles and the manifest's account of names. `raw-trace` and all
/// else that the manifest says stay. Blocks.
///
/// # Errors
/// Where the folder holds no trace, or can't be written.
pub fn refresh(
    folder: &Path,
    names: NameOptions,
    control: LookupControl,
) -> Result<Refreshed, SymbolizeError> {
    check(folder)?;
    let raw = folder.join(RAW_TRACE);
    if !folder.join(manifest::FILE_NAME).is_file() {
        let files = PacketFiles::new(folder);
        let mut run = Run::new(names, control, Sink::Folder(files, raw.clone()));
        for trace in import::open(&raw)? {
            run.trace(trace)?;
        }
        return Ok(Refreshed::Symbols(Box::new(run.finish()?)));
    }
    let mut manifest = Manifest::read(folder)?;
    let symbolized = folder.join(SYMBOLIZED_TRACE);
    if !raw.is_file() && !symbolized.is_file() {
        return refresh_heap_files(folder, manifest, names);
    }
    let lists = tracked::known(&manifest);
    if raw.is_file() && is_own_file(&symbolized) && recorded::lacks_names(folder) {
        // Its parts are there: none of their names is lost.
        let whole = whole_bytes(folder, &raw)?.unwrap_or(u64::MAX);
        let again = PacketFiles::new(folder).finish(&raw, whole, &mut Vec::new());
        again.map_err(|source| GoalError::Write {
            name: symbolized.display().to_string(),
            source,
        })?;
    }
    let has_own = is_own_file(&symbolized);
    let mut request = convert::Request {
        input: Input::Path(if has_own { folder } else { &raw }.to_owned()),
        output: folder.to_owned(),
        selection: Selection::default(),
        pprof: manifest
            .profiles
            .as_ref()
            .map_or_else(PprofOptions::default, manifest::Profiles::options),
        java_summaries: false,
        dominators: manifest.dumps.java.iter().any(|d| d.dominators.is_some()),
        names,
        scope: LookupScope::Better,
        control,
        bad_maps_fail: true,
        packets_for: Some(Plain {
            whole_bytes: whole_bytes(folder, &raw)?,
            path: raw,
        }),
        process_names: process_names(&manifest),
        only_process: None,
    };
    let maps = request.maps().map_err(ConvertError::from)?;
    let was_named = |before: &manifest::Symbolization| {
        !before.libraries_named.is_empty() || before.mappings.iter().any(MappingFile::named_any)
    };
    if !has_own && manifest.symbolization.as_ref().is_some_and(was_named) {
        // The profiles may be all that has the names that were found.
        let aside = tempfile::tempdir_in(folder).map_err(|source| GoalError::Write {
            name: folder.display().to_string(),
            source,
        })?;
        let output = std::mem::replace(&mut request.output, aside.path().to_owned());
        let packets = request.packets_for.take();
        let tried = convert::convert_with(&request, &maps)?;
        (request.output, request.packets_for) = (output, packets);
        check_names(
            folder,
            manifest.symbolization.as_ref(),
            &tried.symbolization,
        )?;
    }
    let converted = convert::convert_with(&request, &maps)?;
    let written = |f: &Finding| f.kind != findings::PACKETS_UNWRITTEN;
    let mut class = (!converted.findings.iter().all(written)).then_some(ErrorClass::HostWrite);
    // What was said of names then is said anew where it still holds.
    manifest
        .warnings
        .retain(|w| !findings::is_of_names(&w.kind));
    let is_tracked = lists.is_some();
    let mut names_allocations = false;
    if let Some(lists) = lists {
        let written = tracked::write(folder, folder, lists, &maps);
        let written = written.map_err(|source| GoalError::Write {
            name: folder.display().to_string(),
            source,
        })?;
        class = written.class(class, None);
        names_allocations = written.names_changed;
        written.replace(&mut manifest);
    }
    let known = |kind: &str| manifest.warnings.iter().any(|w| w.kind == kind);
    let new: Vec<manifest::Warning> = converted
        .warnings()
        .into_iter()
        .filter(|warning| findings::is_of_names(&warning.kind) || !known(&warning.kind))
        .filter(|warning| !(is_tracked && tracked::is_of_trace(&warning.kind)))
        .collect();
    manifest.warnings.extend(new);
    let mappings = converted.symbolization.mappings.clone();
    let before = manifest.symbolization.replace(converted.symbolization);
    let named_any = mappings.iter().any(MappingFile::named_any);
    // The packets of those before are still there.
    if let (false, Some(now), Some(before)) = (named_any, &mut manifest.symbolization, before) {
        now.mappings = before.mappings;
    }
    manifest.write(folder)?;
    Ok(Refreshed::Recording(Box::new(Recording {
        manifest,
        packets: converted.packets,
        heaps: converted.heaps,
        class,
        names_allocations,
        mappings,
    })))
}

/// Refuses to write profiles anew with fewer names than they have.
fn check_names(
    folder: &Path,
    before: Option<&manifest::Symbolization>,
    now: &manifest::Symbolization,
) -> Result<(), SymbolizeError> {
    let Some(before) = before else {
        return Ok(());
    };
    let has_mapping = |of: &manifest::Symbolization| of.mappings.iter().any(MappingFile::named_any);
    // The packets of those before may still be there.
    let lost_mapping =
        has_mapping(before) && !has_mapping(now) && !folder.join(DEOBFUSCATION).is_file();
    match now.frames_named < before.frames_named || lost_mapping {
        false => Ok(()),
        true => Err(SymbolizeError::FewerNames {
            folder: folder.to_owned(),
            before: before.frames_named,
            now: now.frames_named,
        }),
    }
}

/// The same for a recording of HPROFs alone: keeps their names beside them. The files stay.
fn refresh_heap_files(
    folder: &Path,
    mut manifest: Manifest,
    names: NameOptions,
) -> Result<Refreshed, SymbolizeError> {
    let options = JavaOptions {
        names,
        ..JavaOptions::default()
    };
    let mut file = JavaFile::open(
        folder,
        OpenedJava::Unread,
        options,
        &ProgressReporter::default(),
    )?;
    let mut used = Vec::new();
    let mut found: Vec<Finding> = Vec::new();
    for at in 0..file.dumps().len() {
        let heap = file.read(at)?;
        add_used(&mut used, heap.maps);
        let new = heap.findings.into_iter();
        let new = new.filter(|finding| findings::is_of_names(finding.kind));
        for finding in new {
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
    }
    manifest
        .warnings
        .retain(|w| !findings::is_of_names(&w.kind));
    manifest
        .warnings
        .extend(found.into_iter().map(Finding::into_warning));
    let mut packets = Vec::new();
    let unwritten = packet_files::keep_maps(&mut manifest, &used, folder, &mut packets);
    let class = unwritten.is_some().then_some(ErrorClass::HostWrite);
    manifest.warnings.extend(unwritten);
    manifest.write(folder)?;
    Ok(Refreshed::Recording(Box::new(Recording {
        manifest,
        packets,
        heaps: Vec::new(),
        class,
        names_allocations: false,
        mappings: used.iter().map(UsedMap::in_manifest).collect(),
    })))
}

/// Bytes of a folder's plain trace up to where it breaks off, where it is not what is read.
/// Where the symbolized one is as long as its parts, that is all of them; else the trace is
/// asked.
fn whole_bytes(folder: &Path, raw: &Path) -> Result<Option<u64>, SymbolizeError> {
    if !is_own_file(&folder.join(SYMBOLIZED_TRACE)) {
        return Ok(None);
    }
    let size = |name: &str| std::fs::metadata(folder.join(name)).map_or(0, |m| m.len());
    let parts = size(RAW_TRACE) + size(SYMBOLS) + size(DEOBFUSCATION);
    if size(SYMBOLIZED_TRACE) == parts {
        return Ok(Some(size(RAW_TRACE)));
    }
    let trace = import::open(raw)?.pop();
    let read = trace
        .map(|trace| Surveyed::read(trace.source))
        .transpose()?;
    Ok(read.map(|surveyed| surveyed.whole_bytes()))
}

/// The names of the processes in a manifest's dumps.
fn process_names(manifest: &Manifest) -> BTreeMap<u64, String> {
    let dumps = manifest.dumps.keys();
    dumps.map(|d| (d.pid, d.process.to_owned())).collect()
}
