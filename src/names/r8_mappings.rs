//! Java names for the frames of traces: from R8 mappings given by the user, from the packets of the
//! trace, and from Gradle output in the project, in this order. Selects the files, and creates
//! findings about them.

use super::options::NameOptions;
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_base::host::Host;
use heaptap_base::parallel;
use heaptap_model::heap_graph::HeapGraph;
use heaptap_model::profile::{NameMaps, Process, Recording};
use heaptap_results::findings::Finding;
use heaptap_symbols::deobfuscate::{
    self, Discovered, MapError, MapFile, MapSource, SeenIn, is_same_map,
};
use heaptap_symbols::symbolize::find::project_around;
use perfetto_heap::{Surveyed, TraceError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

mod heaps;
mod packets;
mod used;

pub use heaps::{HeapMaps, MAPPING_MISSING, add_used, minified};
pub use packets::{WrittenPackage, write_known, write_packets};
use used::{ForApps, unused, warning};
pub use used::{GivenMap, Origin, UsedMap};

/// Perfetto's variable: `package=path`, several of them separated as lists of paths are.
pub const VARIABLE: &str = "PERFETTO_PROGUARD_MAP";
/// Separator of entries.
const SEPARATOR: char = Host::CURRENT.list_separator();

/// Mapping files that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MapsError {
    /// A given file is unusable.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The variable has an invalid format.
    #[error(
        "cannot parse {VARIABLE}: {entry:?} has no `=`; expected PACKAGE=FILE, separated by \
         `{SEPARATOR}`"
    )]
    Variable {
        /// The invalid entry.
        entry: String,
    },
}

impl Classified for MapsError {
    fn facts(&self) -> ErrorFacts {
        match self {
            MapsError::Map(error) => error.facts(),
            MapsError::Variable { .. } => ErrorFacts::new(ErrorClass::Usage, "mapping-variable")
                .with_help(format!(
                    "correct or unset it, or give a file without a package to `--mapping`: \
                     {VARIABLE}=com.example.app=mapping.txt"
                )),
        }
    }
}

/// The R8 mappings of a run.
#[derive(Debug)]
pub struct R8Mappings {
    given: Vec<GivenMap>,
    /// The project to search, and the files found in it.
    project: Option<PathBuf>,
    candidates: OnceLock<Vec<Discovered>>,
    /// Discovered files, opened once for all traces.
    opened: Mutex<BTreeMap<PathBuf, Option<Arc<MapFile>>>>,
    findings: Vec<Finding>,
}

/// The R8 mappings for one trace.
#[derive(Debug, Default)]
pub struct TraceMappings {
    /// The files with their apps, in order; an empty set means all apps.
    pub maps: Vec<(GivenMap, BTreeSet<String>)>,
    pub findings: Vec<Finding>,
}

/// Results of the R8 mappings for one trace.
#[derive(Debug, Default)]
pub struct Renamed {
    /// Frames of Java code that apps brought.
    pub java_frames: u64,
    /// Number of frames found in any mapping.
    pub frames_named: u64,
    /// The files, in order.
    pub maps: Vec<UsedMap>,
    /// Mappings for the Java heaps of the trace.
    pub heaps: HeapMaps,
    pub findings: Vec<Finding>,
}

impl Renamed {
    /// Returns whether each file named a frame or a class, so that further heaps do not change
    /// which ones are used.
    pub fn have_all_named(&self) -> bool {
        let mut maps = self.maps.iter().zip(self.heaps.classes_named());
        maps.all(|(map, &classes)| map.frames_named > 0 || classes > 0)
    }

    /// Adds the results for the Java heaps of the trace after naming them, and findings about files
    /// without any use.
    pub fn count_heaps(&mut self) {
        if self.heaps.heaps() == 0 {
            return;
        }
        for (used, of_heaps) in self.maps.iter_mut().zip(self.heaps.used()) {
            used.classes_named = of_heaps.classes_named;
        }
        let unused = unused(&self.maps, self.java_frames, true);
        self.findings.extend(unused);
    }
}

/// Results for a Java heap outside of a trace.
#[derive(Debug, Default)]
pub struct NamedHeap {
    /// Its R8 mappings, and the number of classes that each named.
    pub maps: Vec<UsedMap>,
    pub findings: Vec<Finding>,
}

impl R8Mappings {
    /// Opens the given files. Unusable files of the environment are reported and skipped.
    ///
    /// # Errors
    /// Returns an error if a file of `--mapping` is unusable, or the variable has an invalid
    /// format.
    pub fn open(names: &NameOptions) -> Result<R8Mappings, MapsError> {
        let mut maps = R8Mappings::empty(names);
        for option in &names.mappings {
            let file = MapFile::open(&option.path)?;
            maps.take(option.package.clone(), file, Origin::Given);
        }
        maps.take_variable(names, MapFile::open)?;
        Ok(maps)
    }

    /// Opens the given files at the end of a recording, which is complete without them: unusable
    /// files are reported and skipped. Does not wait for pipes.
    pub fn open_what_opens(names: &NameOptions) -> R8Mappings {
        let mut maps = R8Mappings::empty(names);
        for option in &names.mappings {
            match MapFile::open_copied(&option.path) {
                Ok(file) => maps.take(option.package.clone(), file, Origin::Given),
                Err(error) => maps.findings.push(finding(&error)),
            }
        }
        if let Err(error) = maps.take_variable(names, MapFile::open_copied) {
            maps.findings.push(finding(&error));
        }
        maps
    }

    /// Checks that the given files will be usable at the end of a recording.
    ///
    /// # Errors
    /// As [`R8Mappings::open`]; also if a file is not regular, so that it can be read only once.
    pub fn check(names: &NameOptions) -> Result<(), MapsError> {
        for option in &names.mappings {
            MapFile::open_copied(&option.path)?;
        }
        entries(names.variable(VARIABLE).unwrap_or_default()).map(drop)
    }

    /// Returns the given files for an app, including those for all apps.
    pub(crate) fn files_for(&self, package: &str) -> Vec<&MapFile> {
        let fits = |map: &&GivenMap| map.package.as_deref().is_none_or(|of| of == package);
        self.given
            .iter()
            .filter(fits)
            .map(|map| &*map.file)
            .collect()
    }

    fn empty(names: &NameOptions) -> R8Mappings {
        let project = names.project.clone();
        let around = || {
            let directory = &names.directory;
            let known = names.discover && !directory.as_os_str().is_empty();
            known.then(|| project_around(directory)).flatten()
        };
        R8Mappings {
            given: Vec::new(),
            project: project.or_else(around).filter(|_| names.symbolize),
            candidates: OnceLock::new(),
            opened: Mutex::default(),
            findings: Vec::new(),
        }
    }

    fn take(&mut self, package: Option<String>, file: MapFile, origin: Origin) {
        self.findings.extend(of_survey(&file));
        self.given.push(GivenMap {
            package,
            file: Arc::new(file),
            origin,
        });
    }

    fn take_variable(
        &mut self,
        names: &NameOptions,
        open: fn(&Path) -> Result<MapFile, MapError>,
    ) -> Result<(), MapsError> {
        for (package, path) in entries(names.variable(VARIABLE).unwrap_or_default())? {
            let package = (!package.is_empty()).then(|| package.to_owned());
            match open(&names.directory.join(path)) {
                Ok(file) => self.take(package, file, Origin::Variable),
                Err(error) => self.findings.push(finding(&error)),
            }
        }
        Ok(())
    }

    /// Returns the files for a trace: the given ones, and those of the project for apps without
    /// given files or packets in the trace. `dumped` are the processes with Java heaps.
    pub fn for_trace(
        &self,
        recording: &Recording,
        own: &NameMaps,
        seen: &SeenIn,
        dumped: &BTreeSet<u64>,
    ) -> TraceMappings {
        let mut found = TraceMappings {
            findings: self.findings.clone(),
            ..TraceMappings::default()
        };
        let named = self.given.iter().filter_map(|map| map.package.as_deref());
        let claimed: BTreeSet<&str> = named.collect();
        let ids = deobfuscate::map_ids(recording);
        for map in &self.given {
            let packages = match &map.package {
                Some(package) => BTreeSet::from([package.clone()]),
                None => {
                    let source = MapSource::File(&map.file);
                    deobfuscate::packages_for(recording, seen, dumped, source, &claimed)
                }
            };
            found.findings.extend(other_build(&map.file, &ids));
            found.maps.push((map.clone(), packages));
        }
        let all_claimed = self.given.iter().any(|map| map.package.is_none());
        if let Some(project) = self.project.as_deref().filter(|_| !all_claimed) {
            let mut left = deobfuscate::profiled_packages(recording, seen, dumped);
            left.retain(|package| !claimed.contains(&**package) && own.get(package).is_none());
            self.discover(project, &left, &ids, &mut found);
        }
        found
    }

    /// Returns the mappings in a project for some packages: the one with the ID in the trace, if it
    /// has one; otherwise the newest for these apps.
    fn discover(
        &self,
        project: &Path,
        packages: &BTreeSet<String>,
        ids: &[String],
        found: &mut TraceMappings,
    ) {
        if packages.is_empty() {
            return;
        }
        let candidates = self.candidates();
        let mut taken: BTreeSet<Option<&str>> = BTreeSet::new();
        for (at, candidate) in candidates.iter().enumerate() {
            let package = candidate.package.as_deref();
            let its = packages.iter().find(|its| package == Some(its.as_str()));
            if taken.contains(&package) || package.is_some() != its.is_some() {
                continue;
            }
            let Some(file) = self.open_discovered(&candidate.path) else {
                continue;
            };
            let fits = if !ids.is_empty() {
                let id = file.survey().id.as_deref();
                id.is_some_and(|id| ids.iter().any(|other| is_same_map(id, other)))
            } else {
                package.is_some() || !file.mentioned(packages).is_empty()
            };
            if !fits {
                continue;
            }
            taken.insert(package);
            let same = |other: &&Discovered| other.package.as_deref() == package;
            let packages = match its {
                Some(package) => BTreeSet::from([package.clone()]),
                None => file.mentioned(packages),
            };
            found.findings.extend(of_survey(&file));
            let map = GivenMap {
                package: candidate.package.clone(),
                file,
                origin: Origin::Discovered {
                    variant: candidate.variant.clone(),
                    older: candidates[at + 1..].iter().filter(same).count(),
                },
            };
            found.maps.push((map, packages));
        }
        if taken.is_empty() && !ids.is_empty() && !candidates.is_empty() {
            let message = format!(
                "the app uses the R8 mapping {}, but none of the {} mapping files in {} is \
                 that one",
                ids.join(", "),
                candidates.len(),
                project.display()
            );
            found.findings.push(
                Finding::new("mapping-not-found", None, message)
                    .with_help("give the mapping file of that build with `--mapping`"),
            );
        }
    }

    /// Returns the mappings in the project, searched once.
    fn candidates(&self) -> &[Discovered] {
        self.candidates.get_or_init(|| {
            let project = self.project.as_deref();
            project.map_or_else(Vec::new, deobfuscate::discover)
        })
    }

    fn open_discovered(&self, path: &Path) -> Option<Arc<MapFile>> {
        let mut opened = parallel::lock(&self.opened);
        // Unusable files are ignored, because the user did not name them.
        let open = || MapFile::open_copied(path).ok().map(Arc::new);
        opened.entry(path.to_owned()).or_insert_with(open).clone()
    }

    /// Deobfuscates the frames of a trace, by these files and by its own packets. Reads its samples
    /// if necessary to find the app of a frame.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read.
    pub fn name(&self, surveyed: &mut Surveyed) -> Result<Renamed, TraceError> {
        let own = Arc::clone(surveyed.name_maps());
        let java_frames = deobfuscate::java_frames(surveyed.recording());
        let dumped = surveyed.java_pids();
        let has_java = java_frames > 0 || !dumped.is_empty();
        let may_discover = has_java && !self.candidates().is_empty();
        if self.given.is_empty() && own.is_empty() && !may_discover {
            return Ok(Renamed {
                java_frames,
                findings: self.findings.clone(),
                ..Renamed::default()
            });
        }
        let seen = surveyed.frames_by_process()?;
        let TraceMappings { maps, mut findings } =
            self.for_trace(surveyed.recording(), &own, &seen, &dumped);
        let (given, discovered) = given_first(maps);
        let of_trace = own.iter().filter(|(package, _)| !package.is_empty());
        let all = heaps::in_order(&given, of_trace, &discovered);
        let named = deobfuscate::apply(surveyed.recording_mut(), &seen, &all);
        let files = given.iter().chain(&discovered);
        let counts = heaps::of_files(&named, given.len(), discovered.len());
        let maps: Vec<UsedMap> = files
            .zip(counts)
            .map(|(file, frames_named)| UsedMap {
                frames_named,
                ..UsedMap::new(file)
            })
            .collect();
        // The use for Java heaps is known after reading them.
        if dumped.is_empty() {
            findings.extend(unused(&maps, java_frames, false));
        }
        Ok(Renamed {
            java_frames,
            frames_named: named.iter().sum(),
            maps,
            heaps: HeapMaps::new(given, own, discovered),
            findings,
        })
    }

    /// Deobfuscates the classes and fields of a Java heap outside of a trace. `own` are the names
    /// stored by its recording.
    pub fn name_heap(&self, graph: &mut HeapGraph, own: &Arc<NameMaps>) -> NamedHeap {
        let mut recording = Recording::default();
        let pid = graph.facts.pid.unwrap_or(0);
        let process = Process {
            name: graph.facts.process.clone(),
            uid: None,
            ..Process::default()
        };
        recording.processes = BTreeMap::from([(pid, process)]);
        let found = self.for_trace(&recording, own, &SeenIn::new(), &BTreeSet::from([pid]));
        let (given, discovered) = given_first(found.maps);
        let mut maps = HeapMaps::new(given, Arc::clone(own), discovered);
        maps.name(graph, &recording);
        let mut findings = found.findings;
        findings.extend(maps.unused());
        NamedHeap {
            maps: maps.used(),
            findings,
        }
    }
}

/// Separates given files, which have priority over the packets of the trace, from discovered ones,
/// which come last.
fn given_first(maps: Vec<ForApps>) -> (Vec<ForApps>, Vec<ForApps>) {
    maps.into_iter().partition(|(map, _)| !map.is_discovered())
}

/// Packages and paths of Perfetto's variable.
fn entries(variable: &str) -> Result<Vec<(&str, &str)>, MapsError> {
    let all = variable.split(SEPARATOR).filter(|entry| !entry.is_empty());
    all.map(|entry| {
        entry.split_once('=').ok_or_else(|| MapsError::Variable {
            entry: entry.to_owned(),
        })
    })
    .collect()
}

fn finding(error: &impl Classified) -> Finding {
    Finding {
        class: None,
        ..Finding::from_error(error)
    }
}

/// Returns findings about problems of a usable R8 mapping.
fn of_survey(file: &MapFile) -> Vec<Finding> {
    let survey = file.survey();
    let name = file.path().display();
    let mut findings = Vec::new();
    if survey.bad_lines > 0 {
        let first: Vec<String> = survey
            .first_bad_lines
            .iter()
            .map(|bad| format!("line {}: {}", bad.line, bad.fault))
            .collect();
        let more = survey.bad_lines - first.len() as u64;
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let message = format!("{name} has invalid lines: {}{more}", first.join("; "));
        let help =
            "names from those lines are missing; check whether the file was truncated or edited";
        findings.push(warning("mapping-bad-lines", message, help));
    }
    if survey.duplicates > 0 {
        let more = survey.duplicates - survey.first_duplicates.len() as u64;
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let message = format!(
            "{name} has several classes called {}{more} in the app; the last one is used",
            survey.first_duplicates.join(", ")
        );
        let help = "check whether mapping files of several builds were merged";
        findings.push(warning("mapping-duplicates", message, help));
    }
    if survey.foreign_version {
        let message =
            format!("{name} uses a version of the format that heaptap supports only partially");
        let help =
            "names and lines are used; unknown metadata (such as compiler-made code) is ignored";
        findings.push(warning("mapping-version", message, help));
    }
    findings
}

/// Returns a finding if a trace contains the mapping IDs of its apps, and the file has another one.
fn other_build(file: &MapFile, ids: &[String]) -> Option<Finding> {
    let id = file.survey().id.as_deref()?;
    if ids.is_empty() || ids.iter().any(|other| is_same_map(id, other)) {
        return None;
    }
    let message = format!(
        "{} is the R8 mapping {id}, but the app on the device uses {}: your build differs from it",
        file.path().display(),
        ids.join(", ")
    );
    let help = "its names might be wrong; give the mapping file of the build on the device";
    Some(warning("mapping-other-build", message, help))
}

#[cfg(test)]
mod tests;
