//! Request and results of a conversion.

use crate::names::frames::{LookupControl, LookupScope};
use crate::names::options::NameOptions;
use crate::names::r8_mappings::{MapsError, R8Mappings};
use crate::recording::conversion::java_summary::JavaSummary;
use crate::recording::conversion::selection::Selection;
use heaptap_base::error::ErrorClass;
use heaptap_export::pprof::PprofOptions;
use heaptap_model::profile::{Health, Package};
use heaptap_results::findings::{self, Finding};
use heaptap_results::manifest;
use heaptap_results::summary::HeapSummary;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Source of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A file or a recording directory.
    Path(PathBuf),
    /// Standard input.
    Stdin,
}

impl Input {
    /// Returns the input that was typed; `-` is standard input.
    pub fn from_typed(typed: &Path) -> Input {
        match typed == Path::new(heaptap_input::STDIN) {
            true => Input::Stdin,
            false => Input::Path(typed.to_owned()),
        }
    }

    /// Returns the path of a file or directory.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Input::Path(path) => Some(path),
            Input::Stdin => None,
        }
    }
}

/// A conversion request.
#[derive(Debug, Clone)]
pub struct Request {
    pub input: Input,
    /// Existing directory for the files.
    pub output: PathBuf,
    /// Selection of dumps.
    pub selection: Selection,
    /// Profile options.
    pub pprof: PprofOptions,
    /// If true, write dominator profiles of Java heaps as well.
    pub dominators: bool,
    /// If true, summarize the classes that retain most in Java heaps.
    pub java_summaries: bool,
    /// Symbol sources.
    pub names: NameOptions,
    /// Progress and cancellation of symbolization.
    pub control: LookupControl,
    /// True if an unusable given R8 mapping ends the conversion. Otherwise it is reported.
    pub bad_maps_fail: bool,
    /// Frames to look up.
    pub scope: LookupScope,
    /// The plain trace whose packet files are written to `output`, separately and appended to it;
    /// `None` to write only profiles.
    pub packets_for: Option<Plain>,
    /// Names of processes that might be unnamed in the trace, by ID.
    pub process_names: BTreeMap<u64, String>,
    /// Name for processes without a name in the trace or in `process_names`.
    pub only_process: Option<String>,
}

impl Request {
    /// Returns a request that converts everything and fails for unusable R8 mappings.
    pub fn new(input: Input, output: &Path, names: NameOptions) -> Request {
        Request {
            input,
            output: output.to_owned(),
            selection: Selection::default(),
            pprof: PprofOptions::default(),
            dominators: false,
            java_summaries: false,
            names,
            control: LookupControl::default(),
            bad_maps_fail: true,
            scope: LookupScope::Missing,
            packets_for: None,
            process_names: BTreeMap::new(),
            only_process: None,
        }
    }

    /// Returns the name of a process: from the trace, otherwise from the request.
    pub(super) fn process_of<'a>(&'a self, pid: u64, recorded: &'a str) -> &'a str {
        if !recorded.is_empty() {
            return recorded;
        }
        let known = self.process_names.get(&pid).or(self.only_process.as_ref());
        known.map_or("", String::as_str)
    }

    /// Opens the R8 mappings: only once, because pipes can be read only once.
    ///
    /// # Errors
    /// Returns an error if a given mapping is unusable and should end the conversion.
    pub fn maps(&self) -> Result<R8Mappings, MapsError> {
        match self.bad_maps_fail {
            true => R8Mappings::open(&self.names),
            false => Ok(R8Mappings::open_what_opens(&self.names)),
        }
    }
}

/// A trace as written by the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    pub path: PathBuf,
    /// Number of bytes before a truncated packet; `None` if it is the input, for which the
    /// conversion determines it.
    pub whole_bytes: Option<u64>,
}

/// Results of a conversion.
#[derive(Debug, Default)]
pub struct Converted {
    /// All selected dumps, in order; those with samples have a file.
    pub dumps: Vec<manifest::Dump>,
    /// All selected Java heap dumps, in order; those with objects have a file.
    pub java: Vec<manifest::JavaDump>,
    /// Per process and heap the totals and the largest callsites.
    pub heaps: Vec<HeapSummary>,
    /// Last Java heap of each process, if requested.
    pub java_heaps: Vec<JavaSummary>,
    /// Findings about the trace and the last dump of each heap.
    pub findings: Vec<Finding>,
    /// Symbolization coverage.
    pub symbolization: manifest::Symbolization,
    /// Names of the files of packets that were written.
    pub packets: Vec<&'static str>,
    /// Loss and damage, of each trace in the input.
    pub health: Vec<Health>,
    /// Packages of the device, if a trace lists them.
    pub packages: Vec<Package>,
}

impl Converted {
    /// Returns the exit code class; `None` if the data are complete.
    pub fn class(&self) -> Option<ErrorClass> {
        let empty = self.dumps.iter().all(|dump| dump.file.is_none())
            && self.java.iter().all(|dump| dump.file.is_none());
        match empty {
            true => findings::class_of_empty(&self.findings),
            false => findings::class(&self.findings),
        }
    }

    /// Returns whether a trace stops early: its data are intact, but later dumps are missing.
    pub fn is_cut(&self) -> bool {
        self.findings
            .iter()
            .any(|found| found.kind == findings::TRACE_CUT)
    }

    /// Converts the findings to manifest warnings.
    pub fn warnings(&self) -> Vec<manifest::Warning> {
        self.findings
            .iter()
            .map(|finding| manifest::Warning {
                dumps: {
                    let native = self.dumps.iter().map(manifest::Dump::id);
                    let java = self.java.iter().map(manifest::JavaDump::id);
                    let all = native.chain(java);
                    all.filter(|dump| finding.pid == Some(dump.pid)).collect()
                },
                ..finding.clone().into_warning()
            })
            .collect()
    }
}
