//! Opened traces with their symbols: symbols and R8 mappings from the command line are applied
//! before dumps are read.

use super::error::InputError;
use super::options::LookOptions;
use crate::heaps::java::{ProgressReporter, ReadTrace};
use crate::names::frames::{LookupScope, Named, Namer};
use crate::names::r8_mappings::{HeapMaps, R8Mappings, UsedMap};
use heaptap_input::OpenTrace;
use heaptap_results::findings::Finding;
use heaptap_results::manifest;
use perfetto_heap::{Surveyed, Trace};

/// A trace of an input, with the final names of its frames.
pub struct LookTrace {
    /// File name for messages.
    pub name: String,
    /// The trace: tables, symbols, and locations of dumps.
    pub trace: Trace,
    /// Names for its Java heaps.
    pub heaps: HeapMaps,
    /// Damage of its file.
    pub damage: Option<String>,
    /// Findings about its symbols.
    pub findings: Vec<Finding>,
    /// Findings about its R8 mappings.
    pub renamed: Vec<Finding>,
    /// Mapping files that were used.
    pub mappings: Vec<manifest::MappingFile>,
    pub(super) named: Named,
}

impl From<LookTrace> for ReadTrace {
    fn from(trace: LookTrace) -> ReadTrace {
        ReadTrace {
            name: trace.name,
            trace: trace.trace,
            heaps: trace.heaps,
            damage: trace.damage,
            findings: trace.renamed,
        }
    }
}

/// Reads the common data of each trace's dumps, and names its frames.
pub(super) fn open_all(
    traces: Vec<OpenTrace>,
    options: &LookOptions,
    progress: &ProgressReporter,
) -> Result<Vec<LookTrace>, InputError> {
    let maps = R8Mappings::open(&options.names)?;
    let namer = Namer::new(options.names.clone(), options.control.clone());
    let mut all = Vec::with_capacity(traces.len());
    for input in traces {
        progress.begin(&format!("reading {}", input.name));
        let mut surveyed = Surveyed::read(input.source)?;
        let named = namer.name(surveyed.recording_mut(), LookupScope::Missing);
        if options.control.is_cancelled() {
            return Err(InputError::Interrupted);
        }
        let findings = named.findings();
        let renamed = maps.name(&mut surveyed)?;
        all.push(LookTrace {
            name: input.name,
            damage: input.damage,
            trace: surveyed.seal(),
            heaps: renamed.heaps,
            findings,
            renamed: renamed.findings,
            mappings: renamed.maps.iter().map(UsedMap::in_manifest).collect(),
            named,
        });
    }
    Ok(all)
}
