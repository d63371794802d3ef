//! `deobfuscate`: mapping files as packets that name Java frames, classes and fields in any
//! Perfetto tool, alone or behind the trace.

use std::collections::BTreeSet;
use std::io::{self, Read as _};

use crate::conversion::convert::Input;
use crate::conversion::goal::{self, GoalError, Out, PacketOutput, PacketScope};
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::heaps::trace_findings;
use crate::import::{self, ImportError, Kind};
use crate::naming::names::NameOptions;
use crate::naming::r8_mappings::{
    MapsError, R8Mappings, UsedMap, WrittenPackage, add_used, write_packets,
};
use crate::results::findings::Finding;
use crate::trace::{Surveyed, TraceError};

/// What came of it.
#[derive(Debug, Default)]
pub struct Deobfuscated {
    /// The maps that were written.
    pub maps: Vec<WrittenPackage>,
    /// Java frames of apps in the trace, and how many of them the maps and the trace name.
    pub java_frames: u64,
    /// Frames that have their names now.
    pub frames_named: u64,
    /// Classes of Java heaps that have their names now.
    pub classes_named: u64,
    /// Whether heaps were passed over, so that there may be more such classes.
    pub classes_counted_in_part: bool,
    /// What the user should know.
    pub findings: Vec<Finding>,
}

impl Deobfuscated {
    /// What the exit code tells of.
    pub fn class(&self) -> Option<ErrorClass> {
        ErrorClass::first_of(self.findings.iter().filter_map(|finding| finding.class))
    }
}

/// Why a trace got no maps.
#[derive(Debug, thiserror::Error)]
pub enum DeobfuscateError {
    /// A mapping file that was given can't be used.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// There is none.
    #[error("there is no mapping file for this trace")]
    NoMap,
    /// It is an HPROF.
    #[error("{name} was not changed: an HPROF has no place for names")]
    Hprof {
        /// The input.
        name: String,
    },
    /// The input holds no trace, or the packets have no place.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// The trace can't be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl Classified for DeobfuscateError {
    fn facts(&self) -> ErrorFacts {
        match self {
            DeobfuscateError::Maps(error) => error.facts(),
            DeobfuscateError::Goal(error) => error.facts(),
            DeobfuscateError::Trace(error) => error.facts(),
            DeobfuscateError::NoMap => ErrorFacts::new(ErrorClass::Usage, "no-mapping").with_help(
                "give one with --mapping [PACKAGE=]FILE; R8 writes it beside the app, in \
                 Gradle's build/outputs/mapping/<variant>/mapping.txt",
            ),
            DeobfuscateError::Hprof { .. } => {
                ErrorFacts::new(ErrorClass::Incomplete, "hprof-unchanged").with_help(
                    "give --mapping to the command that looks at it, such as `heaptap top`, or \
                     deobfuscate the folder of its recording, which keeps the names",
                )
            }
        }
    }
}

/// Finds the maps for a trace and writes them as packets. Blocks.
///
/// # Errors
/// Where the input holds no trace, there is no map for it or one that cannot be used, or the
/// output can't be written.
pub fn deobfuscate(
    input: &Input,
    scope: PacketScope,
    output: PacketOutput,
    names: &NameOptions,
) -> Result<Deobfuscated, DeobfuscateError> {
    let maps = R8Mappings::open(names)?;
    let traces = goal::open(input, scope, &output).map_err(of_hprof)?;
    let mut out = Out::open(output)?;
    let unwritable = |name: String| move |source| GoalError::Write { name, source };
    let mut done = Deobfuscated::default();
    let mut used: Vec<UsedMap> = Vec::new();
    for trace in traces {
        let (source, copy) = import::share(trace.source);
        let mut surveyed = Surveyed::read(source)?;
        let mut renamed = maps.name(&mut surveyed)?;
        let whole_bytes = surveyed.whole_bytes();
        let mut sealed = surveyed.seal();
        let heaps = sealed.java_dumps().len();
        for at in 0..heaps {
            // A heap takes seconds to read, and no packet is written for it.
            if at > 0 && renamed.have_all_named() {
                done.classes_counted_in_part = true;
                break;
            }
            let mut graph = sealed.read_java_dump(at)?;
            renamed.heaps.name(&mut graph, sealed.recording());
        }
        renamed.count_heaps();
        done.java_frames += renamed.java_frames;
        done.frames_named += renamed.frames_named;
        add_used(&mut used, renamed.maps);
        if let Some(what) = trace.damage {
            done.findings
                .push(trace_findings::damaged(&trace.name, &what));
        }
        for finding in renamed.findings {
            if !done.findings.contains(&finding) {
                done.findings.push(finding);
            }
        }
        if scope == PacketScope::WholeTrace {
            let whole = &mut copy.take(whole_bytes);
            io::copy(whole, out.writer()).map_err(unwritable(out.name()))?;
        }
    }
    if used.is_empty() {
        return Err(DeobfuscateError::NoMap);
    }
    done.classes_named = used.iter().map(|used| used.classes_named).sum();
    done.findings.extend(nothing_renamed(&used));
    done.maps = write_packets(&used, true, out.writer()).map_err(unwritable(out.name()))?;
    done.findings.extend(nameless(&done.maps));
    let name = out.name();
    out.finish().map_err(unwritable(name))?;
    Ok(done)
}

/// What is to be said of an HPROF, which is no trace.
fn of_hprof(error: GoalError) -> DeobfuscateError {
    match error {
        GoalError::Import(ImportError::NotATrace {
            name,
            what: Kind::Hprof,
        }) => DeobfuscateError::Hprof { name },
        other => other.into(),
    }
}

/// That no map knows anything of the trace.
fn nothing_renamed(used: &[UsedMap]) -> Option<Finding> {
    (!used.iter().any(UsedMap::named_any)).then(|| Finding {
        kind: "mapping-renamed-nothing",
        class: Some(ErrorClass::Incomplete),
        message: format!("no name changed: {}", known_to_none(used.len())),
        help: Some(
            "give the mapping file of the build on the phone; --mapping PACKAGE=FILE says which \
             app it is of"
                .to_owned(),
        ),
        pid: None,
    })
}

/// Why mapping files changed nothing.
pub fn known_to_none(files: usize) -> &'static str {
    match files {
        0 => "no mapping file was given or found",
        1 => "the mapping file knows none of the classes that were recorded",
        _ => "the mapping files know none of the classes that were recorded",
    }
}

/// Maps that were written for no package.
fn nameless(maps: &[WrittenPackage]) -> Option<Finding> {
    let nameless = maps.iter().filter(|map| map.package.is_empty());
    let paths: BTreeSet<String> = nameless.map(|map| map.path.display().to_string()).collect();
    let paths: Vec<String> = paths.into_iter().collect();
    (!paths.is_empty()).then(|| Finding {
        kind: "mapping-without-package",
        class: None,
        message: format!(
            "the trace does not tell which app {} is of: it will name Java heap dumps, but no \
             frames",
            paths.join(", ")
        ),
        help: Some("say it: --mapping PACKAGE=FILE".to_owned()),
        pid: None,
    })
}
