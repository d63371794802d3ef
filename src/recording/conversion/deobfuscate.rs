//! Java names of a trace from mapping files, as packets that any Perfetto tool accepts after it.
//! `symbolize` writes them with the symbols.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde::Serialize;

use crate::names::options::NameOptions;
use crate::names::r8_mappings::{
    MapsError, R8Mappings, Renamed, UsedMap, WrittenPackage, add_used, write_packets,
};
use heaptap_base::error::ErrorClass;
use heaptap_results::findings::Finding;
use perfetto_heap::{Surveyed, Trace, TraceError};

/// Java names that were written.
#[derive(Debug, Default, Serialize)]
pub struct Deobfuscated {
    /// The mapping files, by package.
    #[serde(rename = "mappings")]
    pub maps: Vec<WrittenPackage>,
    /// Java frames of apps in the trace.
    pub java_frames: u64,
    /// Java frames named by the mapping files and the trace.
    pub frames_named: u64,
    /// Classes of Java heaps that the mapping files name.
    pub classes_named: u64,
    /// Whether heaps were skipped, so that there can be more such classes.
    pub classes_counted_in_part: bool,
}

/// The mapping files for the traces of an input, and their results.
pub(super) struct JavaNames {
    maps: R8Mappings,
    used: Vec<UsedMap>,
    done: Deobfuscated,
}

impl JavaNames {
    /// Opens the mapping files.
    ///
    /// # Errors
    /// Returns an error if a given mapping file cannot be used.
    pub(super) fn open(names: &NameOptions) -> Result<JavaNames, MapsError> {
        Ok(JavaNames {
            maps: R8Mappings::open(names)?,
            used: Vec::new(),
            done: Deobfuscated::default(),
        })
    }

    /// Names the frames of a trace.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read.
    pub(super) fn name(&self, surveyed: &mut Surveyed) -> Result<Renamed, TraceError> {
        self.maps.name(surveyed)
    }

    /// Names the Java heaps of a trace and counts them. Returns findings for the user.
    ///
    /// # Errors
    /// Returns an error if a heap cannot be read.
    pub(super) fn add(
        &mut self,
        mut renamed: Renamed,
        trace: &mut Trace,
    ) -> Result<Vec<Finding>, TraceError> {
        for at in 0..trace.java_dumps().len() {
            // A heap takes seconds to read, and no packet is written for it.
            if at > 0 && renamed.have_all_named() {
                self.done.classes_counted_in_part = true;
                break;
            }
            let mut graph = trace.read_java_dump(at)?;
            renamed.heaps.name(&mut graph, trace.recording());
        }
        renamed.count_heaps();
        self.done.java_frames += renamed.java_frames;
        self.done.frames_named += renamed.frames_named;
        add_used(&mut self.used, renamed.maps);
        Ok(renamed.findings)
    }

    /// Returns true if no mapping file applies to these traces.
    pub(super) fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// Writes the packets. Returns the written names and findings for the user.
    ///
    /// # Errors
    /// Returns an error if `out` fails.
    pub(super) fn write(mut self, out: &mut dyn Write) -> io::Result<(Deobfuscated, Vec<Finding>)> {
        self.done.classes_named = self.used.iter().map(|used| used.classes_named).sum();
        self.done.maps = write_packets(&self.used, out)?;
        let findings = nothing_renamed(&self.used)
            .into_iter()
            .chain(nameless(&self.done.maps))
            .collect();
        Ok((self.done, findings))
    }
}

/// Returns a finding if mapping files name nothing in the traces.
fn nothing_renamed(used: &[UsedMap]) -> Option<Finding> {
    (!used.iter().any(UsedMap::named_any)).then(|| {
        let message = format!("no name changed: {}", known_to_none(used.len()));
        Finding::new("mapping-renamed-nothing", ErrorClass::Incomplete, message).with_help(
            "give the mapping file of the build on the device; --mapping PACKAGE=FILE names its \
             app",
        )
    })
}

/// Returns why mapping files changed nothing.
pub fn known_to_none(files: usize) -> &'static str {
    match files {
        0 => "no mapping file was given or found",
        1 => "the mapping file has none of the recorded classes",
        _ => "the mapping files have none of the recorded classes",
    }
}

/// Returns a finding about mapping files without a package.
fn nameless(maps: &[WrittenPackage]) -> Option<Finding> {
    let nameless = maps.iter().filter(|map| map.package.is_empty());
    let paths: BTreeSet<String> = nameless.map(|map| map.path.display().to_string()).collect();
    let paths: Vec<String> = paths.into_iter().collect();
    (!paths.is_empty()).then(|| {
        let message = format!(
            "the app of {} is unknown: it names Java heap dumps, but no frames",
            paths.join(", ")
        );
        Finding::new("mapping-without-package", None, message)
            .with_help("name its app: --mapping PACKAGE=FILE")
    })
}
