//! `deobfuscate`: mapping files as packets that name Java frames, classes and fields in any
//! Perfetto tool, alone or behind the trace.

use std::collections::BTreeSet;
use std::io::{self, Read as _};

use super::convert::Input;
use super::findings::Finding;
use super::goal::{self, Extent, Goal, GoalError, Out};
use super::maps::{Maps, MapsError, UsedMap, WrittenPackage, write_packets};
use super::names::NameOptions;
use super::trace_findings;
use crate::error::{Classified, ErrorClass};
use crate::import;
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
    /// The input holds no trace, or the packets have no place.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// The trace can't be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl Classified for DeobfuscateError {
    fn class(&self) -> ErrorClass {
        match self {
            DeobfuscateError::Maps(error) => error.class(),
            DeobfuscateError::NoMap => ErrorClass::Usage,
            DeobfuscateError::Goal(error) => error.class(),
            DeobfuscateError::Trace(error) => error.class(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            DeobfuscateError::Maps(error) => error.kind(),
            DeobfuscateError::NoMap => "no-mapping",
            DeobfuscateError::Goal(error) => error.kind(),
            DeobfuscateError::Trace(error) => error.kind(),
        }
    }

    fn help(&self) -> Option<String> {
        match self {
            DeobfuscateError::Maps(error) => error.help(),
            DeobfuscateError::NoMap => Some(
                "give one with --mapping [PACKAGE=]FILE; R8 writes it beside the app, in \
                 Gradle's build/outputs/mapping/<variant>/mapping.txt"
                    .to_owned(),
            ),
            DeobfuscateError::Goal(error) => error.help(),
            DeobfuscateError::Trace(error) => error.help(),
        }
    }
}

/// Finds the maps for a trace and writes them as packets. Blocks.
///
/// # Errors
/// Where the input holds no trace, there is no map for it or one that cannot be used, or the
/// goal can't be written.
pub fn deobfuscate(
    input: &Input,
    extent: Extent,
    goal: Goal,
    names: &NameOptions,
) -> Result<Deobfuscated, DeobfuscateError> {
    let maps = Maps::open(names)?;
    let traces = goal::open(input, extent, &goal)?;
    let mut out = Out::open(goal)?;
    let unwritable = |name: String| move |source| GoalError::Write { name, source };
    let mut done = Deobfuscated::default();
    let mut used: Vec<UsedMap> = Vec::new();
    for trace in traces {
        let (source, copy) = import::share(trace.source);
        let mut surveyed = Surveyed::read(source)?;
        let renamed = maps.name(&mut surveyed)?;
        done.java_frames += renamed.java_frames;
        done.frames_named += renamed.frames_named;
        take(&mut used, renamed.maps);
        if let Some(what) = trace.damage {
            done.findings
                .push(trace_findings::packing(&trace.name, what));
        }
        for finding in renamed.findings {
            if !done.findings.contains(&finding) {
                done.findings.push(finding);
            }
        }
        if extent == Extent::WholeTrace {
            let whole = &mut copy.take(surveyed.whole_bytes());
            io::copy(whole, out.writer()).map_err(unwritable(out.name()))?;
        }
    }
    if used.is_empty() {
        return Err(DeobfuscateError::NoMap);
    }
    done.maps = write_packets(&used, true, out.writer()).map_err(unwritable(out.name()))?;
    done.findings.extend(nameless(&done.maps));
    let name = out.name();
    out.finish().map_err(unwritable(name))?;
    Ok(done)
}

/// Adds what was used for one trace to what was used for others.
fn take(all: &mut Vec<UsedMap>, more: Vec<UsedMap>) {
    for used in more {
        let same = |known: &&mut UsedMap| {
            known.map.file.path() == used.map.file.path() && known.map.package == used.map.package
        };
        match all.iter_mut().find(same) {
            Some(known) => {
                known.packages.extend(used.packages);
                known.frames_named += used.frames_named;
            }
            None => all.push(used),
        }
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
