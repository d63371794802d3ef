//! `symbolize`: symbols for a trace as packets for any Perfetto tool, separately or appended to the
//! trace; and for a recording directory, whose files are updated.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use crate::heaps::java::{JavaError, JavaFile, JavaOptions, OpenedJava, ProgressReporter};
use crate::heaps::trace_findings;
use crate::names::coverage::{Coverage, Tally};
use crate::names::frames::{LookupControl, LookupScope, Named, Namer};
use crate::names::options::NameOptions;
use crate::names::packet_files::{self, DEOBFUSCATION, PacketFiles, SYMBOLS, is_own_file};
use crate::names::r8_mappings::{MapsError, UsedMap, add_used};
use crate::recording::conversion::convert::{self, Input, Plain};
use crate::recording::conversion::deobfuscate::{Deobfuscated, JavaNames};
use crate::recording::conversion::error::ConvertError;
use crate::recording::conversion::packet_output::{self, GoalError, PacketScope};
use crate::recording::conversion::tracked;
use heaptap_base::directory::{RAW_TRACE, SYMBOLIZED_TRACE, UNFINISHED_PREFIX};
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_base::unfinished::remove_abandoned;
use heaptap_base::units::counted;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_export::packets::{Written, write_symbols};
use heaptap_export::pprof::PprofOptions;
use heaptap_input::{ImportError, Kind, OpenTrace};
use heaptap_model::stacks::naming::FrameNamer;
use heaptap_results::destination::{Destination, OpenDestination};
use heaptap_results::findings::{self, Finding};
use heaptap_results::manifest::{self, Manifest, ManifestError, MappingFile};
use heaptap_results::recorded;
use heaptap_results::summary::HeapSummary;
use perfetto_heap::{Surveyed, TraceError};

/// Results for a trace.
#[derive(Debug)]
pub struct Symbolized {
    /// Written data.
    pub written: Written,
    /// Names of the files written to a directory; `None` for a single destination.
    pub files: Option<Vec<&'static str>>,
    /// Addresses that were looked up, of all libraries.
    pub wanted: usize,
    /// Symbolization coverage, and missing symbols.
    pub symbolization: manifest::Symbolization,
    /// Whether native frames were looked up.
    pub is_native: bool,
    /// Whether the trace had names before, which are not looked up again.
    pub had_names: bool,
    /// Java names that were written, if there were mapping files.
    pub java: Option<Deobfuscated>,
    /// Findings about the trace.
    pub findings: Vec<Finding>,
}

impl Symbolized {
    /// Returns the exit code class. Missing symbols are not a failure.
    pub fn class(&self) -> Option<ErrorClass> {
        findings::class(&self.findings)
    }
}

/// Error of symbolizing a trace.
#[derive(Debug, thiserror::Error)]
pub enum SymbolizeError {
    /// The input contains no trace, or cannot be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The packets cannot be written.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// A file of the directory is a link.
    #[error(
        "{} is a symbolic link, and heaptap does not follow links in a directory that it writes \
         to", path.display())]
    Linked { path: PathBuf },
    /// The trace of a recording differs from the recorded one; existing results are kept.
    #[error("{} is not the recorded trace, or is incomplete", path.display())]
    OtherTrace { path: PathBuf },
    /// Symbol files are missing, so rewritten profiles would lose names.
    #[error(
        "the profiles in {} have names for {}, but now only {now} would have one{}; nothing was \
         written",
        directory.display(),
        counted(*before, "frame", "frames"),
        if before == now { " (Java names are gone)" } else { "" }
    )]
    FewerNames {
        directory: PathBuf,
        /// Distinct frames with a name.
        before: u64,
        /// Number of frames that would have a name.
        now: u64,
    },
    /// The user interrupted symbolization.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// A given mapping file cannot be used.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// There is no mapping file for Java names.
    #[error("cannot deobfuscate Java names: no R8 mapping is given or found")]
    NoMap,
    /// The input is an HPROF.
    #[error("{name} was not changed: an HPROF cannot hold names")]
    Hprof {
        /// The input.
        name: String,
    },
    /// A recording's manifest cannot be read or written.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A recording's profiles cannot be rewritten.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// A recording's Java heaps cannot be read.
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
            SymbolizeError::Maps(error) => error.facts(),
            SymbolizeError::NoMap => ErrorFacts::new(ErrorClass::Usage, "no-mapping").with_help(
                "pass it with `--mapping [PACKAGE=]FILE`; R8 writes it to \
                 build/outputs/mapping/VARIANT/mapping.txt of the app",
            ),
            SymbolizeError::Hprof { .. } => {
                ErrorFacts::new(ErrorClass::Incomplete, "hprof-unchanged").with_help(
                    "add --mapping to the command that reads it, such as `heaptap top`, or \
                     symbolize the directory of its recording, which keeps the names",
                )
            }
            SymbolizeError::Convert(error) => error.facts(),
            SymbolizeError::Java(error) => error.facts(),
            SymbolizeError::Linked { path } => ErrorFacts::new(ErrorClass::BadInput, "linked-file")
                .with_help(format!(
                    "replace the link with the file if you trust its source, or write elsewhere \
                     with `heaptap convert {} -o DIR`",
                    quoted_path(path.parent().unwrap_or(path))
                )),
            SymbolizeError::OtherTrace { path } => {
                ErrorFacts::new(ErrorClass::BadInput, "other-trace").with_help(format!(
                    "copy the directory again from its source, or convert what this file has with \
                     `heaptap convert {} -o DIR`; existing results are kept",
                    quoted_path(path)
                ))
            }
            SymbolizeError::FewerNames { directory, .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "fewer-symbols").with_help(format!(
                    "provide the symbols (`--symbols DIR`, `--mapping FILE`), or convert without \
                     them: `heaptap convert {} -o DIR`",
                    quoted_path(directory.join(RAW_TRACE))
                ))
            }
            SymbolizeError::Interrupted => ErrorFacts::new(ErrorClass::Interrupted, "interrupted"),
        }
    }
}

/// Looks up symbols for a trace and writes them as packets. Blocks.
///
/// # Errors
/// Returns an error if the input contains no trace, or the output cannot be written. Missing
/// symbols are not an error.
pub fn symbolize(
    input: &Input,
    scope: PacketScope,
    output: Destination,
    names: NameOptions,
    kind: NameKind,
    control: LookupControl,
) -> Result<Symbolized, SymbolizeError> {
    let java = match kind {
        NameKind::Native => None,
        NameKind::All | NameKind::Java => Some(JavaNames::open(&names)?),
    };
    let name = output.name();
    let (traces, out) = packet_output::open(input, scope, output).map_err(of_hprof)?;
    let mut run = Run::new(names, control, Sink::Out { out, name, scope });
    run.java = java;
    run.is_native = kind != NameKind::Java;
    for trace in traces {
        run.trace(trace)?;
    }
    if !run.is_native && run.java.as_ref().is_some_and(JavaNames::is_empty) {
        return Err(SymbolizeError::NoMap);
    }
    run.finish()
}

/// Kinds of names to look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NameKind {
    /// Functions, files and lines of native frames, and Java names.
    #[default]
    All,
    /// Native frames only.
    Native,
    /// Java names only.
    Java,
}

/// The error for an HPROF, which is not a trace.
fn of_hprof(error: GoalError) -> SymbolizeError {
    match error {
        GoalError::Import(ImportError::NotATrace {
            name,
            what: Kind::Hprof,
        }) => SymbolizeError::Hprof { name },
        other => other.into(),
    }
}

/// Destination of the packets of a run.
enum Sink {
    Out {
        out: OpenDestination,
        name: String,
        scope: PacketScope,
    },
    /// A directory with the plain trace.
    Directory(PacketFiles, PathBuf),
}

struct Run {
    namer: Namer,
    is_native: bool,
    had_names: bool,
    java: Option<JavaNames>,
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
            is_native: true,
            had_names: false,
            java: None,
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
        let (source, copy) = heaptap_input::share(input.source);
        let mut surveyed = Surveyed::read(source)?;
        self.had_names |= surveyed.recording().has_names;
        self.whole_bytes = surveyed.whole_bytes();
        let named = match self.is_native {
            true => self
                .namer
                .name(surveyed.recording_mut(), LookupScope::Missing),
            false => Named::default(),
        };
        if self.control.is_cancelled() {
            return Err(SymbolizeError::Interrupted);
        }
        let java = self.java.as_ref();
        let renamed = java.map(|java| java.name(&mut surveyed)).transpose()?;
        self.findings.extend(named.findings());
        let libraries = named.symbolized.libraries.iter();
        self.wanted += libraries.map(|l| l.library.addresses.len()).sum::<usize>();
        let recording = surveyed.recording();
        let written = match &mut self.sink {
            Sink::Directory(files, _) => files.add_symbols(recording, |frame| named.has(frame)),
            Sink::Out { out, scope, .. } => {
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
        if let (Some(java), Some(renamed)) = (&mut self.java, renamed) {
            for finding in java.add(renamed, &mut trace)? {
                if !self.findings.contains(&finding) {
                    self.findings.push(finding);
                }
            }
        }
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
            Sink::Out { name, .. } => name.clone(),
            Sink::Directory(_, raw) => raw.with_file_name(SYMBOLS).display().to_string(),
        };
        GoalError::Write { name, source }.into()
    }

    fn finish(mut self) -> Result<Symbolized, SymbolizeError> {
        if self.control.is_cancelled() {
            return Err(SymbolizeError::Interrupted);
        }
        let mut java = None;
        if let (Sink::Out { out, .. }, Some(names)) = (&mut self.sink, self.java.take())
            && !names.is_empty()
        {
            let written = names.write(out.writer());
            let (done, findings) = written.map_err(|source| self.unwritable(source))?;
            self.findings.extend(findings);
            java = Some(done);
        }
        let mut files_written = None;
        let (name, finished) = match self.sink {
            Sink::Out { out, name, .. } => (name, out.finish()),
            Sink::Directory(files, raw) => {
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
            is_native: self.is_native,
            had_names: self.had_names,
            java,
            findings: self.findings,
        })
    }
}

/// Results for a recording directory.
#[derive(Debug)]
pub enum Refreshed {
    /// Symbols were written. There was no manifest, so the profiles do not belong to heaptap and
    /// are unchanged.
    Symbols(Box<Symbolized>),
    /// Symbols, profiles and manifest were written.
    Recording(Box<Recording>),
}

impl Refreshed {
    /// Returns the exit code class.
    pub fn class(&self) -> Option<ErrorClass> {
        match self {
            Refreshed::Symbols(symbolized) => symbolized.class(),
            Refreshed::Recording(recording) => recording.class,
        }
    }
}

/// A recording with updated symbols.
#[derive(Debug)]
pub struct Recording {
    /// Updated manifest.
    pub manifest: Manifest,
    /// Names of the files of packets that were written.
    pub packets: Vec<&'static str>,
    /// Updated heap summaries.
    pub heaps: Vec<HeapSummary>,
    /// Exit code class; `None` if everything was written.
    pub class: Option<ErrorClass>,
    /// True if an R8 mapping changed names of tracked Java allocations.
    pub names_allocations: bool,
    /// R8 mappings, with the results of each.
    pub mappings: Vec<manifest::MappingFile>,
}

/// Checks that [`refresh`] can update a directory.
///
/// # Errors
/// Returns an error if one of its files is a link, its trace differs from the recorded one, or its
/// session has not been fetched.
pub fn check(directory: &Path) -> Result<(), SymbolizeError> {
    let raw = directory.join(RAW_TRACE);
    // These files are written again: nothing is written through a link.
    for path in [raw.clone(), directory.join(manifest::FILE_NAME)] {
        if path.is_symlink() {
            return Err(SymbolizeError::Linked { path });
        }
    }
    if let Some(error) = heaptap_input::not_fetched(directory, &directory.display().to_string()) {
        return Err(error.into());
    }
    if !raw.is_file() || !directory.join(manifest::FILE_NAME).is_file() {
        return Ok(());
    }
    // Results of a complete trace are not replaced by results of a part of it.
    let Some(recorded) = Manifest::read(directory)?.trace else {
        return Ok(());
    };
    let name = raw.display().to_string();
    let unreadable = ImportError::unreadable(&name);
    match recorded::is_other(&raw, recorded.size, &recorded.sha256).map_err(unreadable)? {
        false => Ok(()),
        true => Err(SymbolizeError::OtherTrace { path: raw }),
    }
}

/// Updates a recording directory with the available symbols: `symbols`, `symbolized-trace`, the
/// profiles, and the symbolization in the manifest. `raw-trace` and everything else in the manifest
/// are unchanged. Blocks.
///
/// # Errors
/// Returns an error if the directory contains no trace, or cannot be written.
pub fn refresh(
    directory: &Path,
    names: NameOptions,
    control: LookupControl,
) -> Result<Refreshed, SymbolizeError> {
    check(directory)?;
    remove_abandoned(directory);
    let raw = directory.join(RAW_TRACE);
    if !directory.join(manifest::FILE_NAME).is_file() {
        let files = PacketFiles::new(directory);
        let mut run = Run::new(names, control, Sink::Directory(files, raw.clone()));
        for trace in heaptap_input::open(&raw)? {
            run.trace(trace)?;
        }
        return Ok(Refreshed::Symbols(Box::new(run.finish()?)));
    }
    let mut manifest = Manifest::read(directory)?;
    let symbolized = directory.join(SYMBOLIZED_TRACE);
    if !raw.is_file() && !symbolized.is_file() {
        return refresh_heap_files(directory, manifest, names);
    }
    let lists = tracked::known(&manifest);
    let is_damaged = || recorded::lacks_names(directory) || recorded::damage(directory).is_some();
    if raw.is_file() && is_own_file(&symbolized) && is_damaged() {
        // All parts of the trace exist, and `check` accepted the raw one, so no names are lost.
        let whole = whole_bytes(directory, &raw)?.unwrap_or(u64::MAX);
        let again = PacketFiles::new(directory).finish(&raw, whole, &mut Vec::new());
        again.map_err(|source| GoalError::Write {
            name: symbolized.display().to_string(),
            source,
        })?;
    }
    let has_own = is_own_file(&symbolized);
    let input = Input::Path(if has_own { directory } else { &raw }.to_owned());
    let mut request = convert::Request {
        pprof: manifest
            .profiles
            .as_ref()
            .map_or_else(PprofOptions::default, manifest::Profiles::options),
        dominators: manifest.dumps.java.iter().any(|d| d.dominators.is_some()),
        scope: LookupScope::Better,
        control,
        packets_for: Some(Plain {
            whole_bytes: whole_bytes(directory, &raw)?,
            path: raw,
        }),
        process_names: process_names(&manifest),
        ..convert::Request::new(input, directory, names)
    };
    let maps = request.maps().map_err(ConvertError::from)?;
    let was_named = |before: &manifest::Symbolization| {
        !before.libraries_named.is_empty() || before.mappings.iter().any(MappingFile::named_any)
    };
    if !has_own && manifest.symbolization.as_ref().is_some_and(was_named) {
        // The profiles might be the only place with the earlier names.
        let mut named = tempfile::Builder::new();
        let aside = named.prefix(UNFINISHED_PREFIX).tempdir_in(directory);
        let aside = aside.map_err(|source| GoalError::Write {
            name: directory.display().to_string(),
            source,
        })?;
        let output = std::mem::replace(&mut request.output, aside.path().to_owned());
        let packets = request.packets_for.take();
        let tried = convert::convert_with(&request, &maps)?;
        (request.output, request.packets_for) = (output, packets);
        check_names(
            directory,
            manifest.symbolization.as_ref(),
            &tried.symbolization,
        )?;
    }
    let converted = convert::convert_with(&request, &maps)?;
    let written = |f: &Finding| f.kind != findings::PACKETS_UNWRITTEN;
    let mut class = (!converted.findings.iter().all(written)).then_some(ErrorClass::HostWrite);
    // Earlier findings about symbols are repeated if they still apply.
    manifest
        .warnings
        .retain(|w| !findings::is_of_names(&w.kind));
    let is_tracked = lists.is_some();
    let mut names_allocations = false;
    if let Some(lists) = lists {
        let written = tracked::write(directory, directory, lists, &maps);
        let written = written.map_err(|source| GoalError::Write {
            name: directory.display().to_string(),
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
    // The packets of the earlier mappings still exist.
    if let (false, Some(now), Some(before)) = (named_any, &mut manifest.symbolization, before) {
        now.mappings = before.mappings;
    }
    manifest.write(directory)?;
    Ok(Refreshed::Recording(Box::new(Recording {
        manifest,
        packets: converted.packets,
        heaps: converted.heaps,
        class,
        names_allocations,
        mappings,
    })))
}

/// Rejects new profiles with fewer names than the existing ones.
fn check_names(
    directory: &Path,
    before: Option<&manifest::Symbolization>,
    now: &manifest::Symbolization,
) -> Result<(), SymbolizeError> {
    let Some(before) = before else {
        return Ok(());
    };
    let has_mapping = |of: &manifest::Symbolization| of.mappings.iter().any(MappingFile::named_any);
    // The packets of the earlier mappings might still exist.
    let lost_mapping =
        has_mapping(before) && !has_mapping(now) && !directory.join(DEOBFUSCATION).is_file();
    match now.frames_named < before.frames_named || lost_mapping {
        false => Ok(()),
        true => Err(SymbolizeError::FewerNames {
            directory: directory.to_owned(),
            before: before.frames_named,
            now: now.frames_named,
        }),
    }
}

/// Updates a recording that only has HPROFs: stores their names next to them. The HPROFs are
/// unchanged.
fn refresh_heap_files(
    directory: &Path,
    mut manifest: Manifest,
    names: NameOptions,
) -> Result<Refreshed, SymbolizeError> {
    let options = JavaOptions {
        names,
        ..JavaOptions::default()
    };
    let mut file = JavaFile::open(
        directory,
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
    let unwritten = packet_files::keep_maps(&mut manifest, &used, directory, &mut packets);
    let class = unwritten.is_some().then_some(ErrorClass::HostWrite);
    manifest.warnings.extend(unwritten);
    manifest.write(directory)?;
    Ok(Refreshed::Recording(Box::new(Recording {
        manifest,
        packets,
        heaps: Vec::new(),
        class,
        names_allocations: false,
        mappings: used.iter().map(UsedMap::in_manifest).collect(),
    })))
}

/// Returns the number of bytes in a directory's plain trace before its truncated packet, unless the
/// plain trace itself is read. If the symbolized trace is as long as its parts, that is the full
/// length; otherwise the trace is scanned.
fn whole_bytes(directory: &Path, raw: &Path) -> Result<Option<u64>, SymbolizeError> {
    if !is_own_file(&directory.join(SYMBOLIZED_TRACE)) {
        return Ok(None);
    }
    let size = |name: &str| std::fs::metadata(directory.join(name)).map_or(0, |m| m.len());
    let parts = size(RAW_TRACE) + size(SYMBOLS) + size(DEOBFUSCATION);
    if size(SYMBOLIZED_TRACE) == parts {
        return Ok(Some(size(RAW_TRACE)));
    }
    let trace = heaptap_input::open(raw)?.pop();
    let read = trace
        .map(|trace| Surveyed::read(trace.source))
        .transpose()?;
    Ok(read.map(|surveyed| surveyed.whole_bytes()))
}

/// Returns the process names in a manifest's dumps.
fn process_names(manifest: &Manifest) -> BTreeMap<u64, String> {
    let dumps = manifest.dumps.keys();
    dumps.map(|d| (d.pid, d.process.to_owned())).collect()
}
