//! Selection of the R8 mappings for a frame, computed once for each kind of code location.

use super::app_map::{AppMap, MapSource, Scope};
use super::owner::{Owner, Packages, SeenIn, is_native, is_platform, profiled_packages};
use heaptap_model::profile::{FrameId, Line, MappingId, Recording, StringId};
use std::collections::{BTreeSet, HashMap};

/// Index of a list of R8 mappings in [`Falls::choices`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ChoiceId(pub(super) usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NameQuery {
    pub(super) choice: ChoiceId,
    pub(super) name: StringId,
    /// In native code, names must not match classes of the R8 mapping by chance.
    pub(super) native: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct LineQuery {
    pub(super) choice: ChoiceId,
    pub(super) function: StringId,
    pub(super) line: u32,
    pub(super) native: bool,
}

pub(super) type Rows = HashMap<(ChoiceId, bool, Box<[Line]>), Vec<FrameId>>;

/// Frames with the R8 mappings that apply to them.
pub(super) struct Falls {
    /// Positions of R8 mappings; the first with a name wins.
    pub(super) choices: Vec<Vec<usize>>,
    frames: Vec<(FrameId, ChoiceId, bool)>,
}

impl Falls {
    /// Returns recorded names with the frames that have them.
    pub(super) fn names(&self, recording: &Recording) -> HashMap<NameQuery, Vec<FrameId>> {
        let mut names: HashMap<NameQuery, Vec<FrameId>> = HashMap::new();
        for &(frame, choice, native) in &self.frames {
            let name = recording.tables.frame(frame).name;
            let query = NameQuery {
                choice,
                name,
                native,
            };
            names.entry(query).or_default().push(frame);
        }
        names
    }

    /// Returns rows of lines with the frames that have them.
    pub(super) fn rows(&self, recording: &Recording) -> Rows {
        let mut rows = Rows::new();
        for &(frame, choice, native) in &self.frames {
            let lines = recording.symbols.lines(frame);
            if !lines.is_empty() {
                let key = (choice, native, Box::from(lines));
                rows.entry(key).or_default().push(frame);
            }
        }
        rows
    }
}

/// Selects the R8 mappings for each frame.
pub(super) fn fall(recording: &Recording, seen: &SeenIn, maps: &[AppMap]) -> Falls {
    let tables = &recording.tables;
    let owners: Vec<(Owner, bool, bool)> = tables
        .mappings()
        .iter()
        .map(|mapping| {
            let path = tables.string(mapping.path);
            (Owner::from_path(path), is_native(path), is_platform(path))
        })
        .collect();
    let mut choosing = Choosing::new(recording, seen, maps);
    let mut frames = Vec::new();
    let nobody = BTreeSet::new();
    for (at, frame) in tables.frames().iter().enumerate() {
        let id = FrameId(at as u32);
        let Some(MappingId(mapping)) = frame.mapping else {
            continue;
        };
        let (owner, native, platform) = &owners[mapping as usize];
        let pids = seen.get(&id).unwrap_or(&nobody);
        if let Some(choice) = choosing.choose(owner, pids, *platform) {
            frames.push((id, choice, *native));
        }
    }
    Falls {
        choices: choosing.choices,
        frames,
    }
}

/// Cached selections of R8 mappings.
struct Choosing<'a> {
    packages: Packages<'a>,
    /// Positions of R8 mappings by package, ascending.
    by_package: HashMap<String, Vec<usize>>,
    /// All R8 mappings, in the order of their package names.
    all: Vec<usize>,
    /// R8 mappings without a package that the trace does not assign to any.
    anywhere: Vec<usize>,
    choices: Vec<Vec<usize>>,
    known: HashMap<Vec<usize>, ChoiceId>,
    by_place: HashMap<(Place<'a>, bool), Option<ChoiceId>>,
}

/// Facts that identify the owner of a frame's code.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Place<'a> {
    Package(&'a str),
    Any(BTreeSet<u64>),
    Processes(BTreeSet<u64>),
}

impl<'a> Choosing<'a> {
    fn new(recording: &'a Recording, seen: &SeenIn, maps: &[AppMap]) -> Self {
        let mut by_package: HashMap<String, Vec<usize>> = HashMap::new();
        let mut claimed: BTreeSet<&str> = BTreeSet::new();
        for (at, map) in maps.iter().enumerate() {
            if let Scope::Package(package) = &map.scope {
                by_package.entry(package.clone()).or_default().push(at);
                if map.source.claims() {
                    claimed.insert(package);
                }
            }
        }
        let mut anywhere = Vec::new();
        let free = (0..maps.len()).filter(|&at| maps[at].scope == Scope::Unclaimed);
        for at in free {
            let packages =
                packages_for(recording, seen, &BTreeSet::new(), maps[at].source, &claimed);
            if packages.is_empty() {
                anywhere.push(at);
            }
            for package in packages {
                by_package.entry(package).or_default().push(at);
            }
        }
        for maps in by_package.values_mut() {
            maps.sort_unstable();
        }
        let mut all: Vec<usize> = (0..maps.len()).collect();
        all.sort_by_key(|&at| match &maps[at].scope {
            Scope::Package(package) => Some(package),
            Scope::Unclaimed => None,
        });
        Choosing {
            packages: Packages::from_recording(recording),
            by_package,
            all,
            anywhere,
            choices: Vec::new(),
            known: HashMap::new(),
            by_place: HashMap::new(),
        }
    }

    /// Returns the R8 mappings for a frame, in order of precedence, or `None` if none applies.
    fn choose(
        &mut self,
        owner: &Owner<'a>,
        pids: &BTreeSet<u64>,
        platform: bool,
    ) -> Option<ChoiceId> {
        let place = match owner {
            Owner::Package(package) => Place::Package(package),
            Owner::Any => Place::Any(pids.clone()),
            Owner::Unknown => Place::Processes(pids.clone()),
        };
        let key = (place, platform);
        if let Some(&known) = self.by_place.get(&key) {
            return known;
        }
        let of_package = |package: &str| self.by_package.get(package).into_iter().flatten();
        let of_pids = |pids: &BTreeSet<u64>| {
            let packages = pids.iter().flat_map(|&pid| self.packages.of_process(pid));
            packages.flat_map(of_package).copied().collect()
        };
        let is_known = |pid: &u64| !self.packages.of_process(*pid).is_empty();
        let mut maps: Vec<usize> = match &key.0 {
            Place::Package(package) => of_package(package).copied().collect(),
            // If the app is known, R8 mappings of other apps do not apply.
            Place::Any(pids) if pids.iter().any(is_known) => of_pids(pids),
            Place::Any(_) => self.all.clone(),
            Place::Processes(pids) => of_pids(pids),
        };
        if maps.is_empty() && !platform {
            maps.extend(&self.anywhere);
        }
        let mut seen = BTreeSet::new();
        maps.retain(|&map| seen.insert(map));
        let choice = (!maps.is_empty()).then(|| {
            let next = ChoiceId(self.choices.len());
            *self.known.entry(maps).or_insert_with_key(|maps| {
                self.choices.push(maps.clone());
                next
            })
        });
        self.by_place.insert(key, choice);
        choice
    }
}

/// Returns the packages that an R8 mapping without a package applies to: those of the profiled apps
/// without a file of their own. Of several packages, only those with classes in the R8 mapping
/// remain, if any.
pub fn packages_for(
    recording: &Recording,
    seen: &SeenIn,
    dumped: &BTreeSet<u64>,
    map: MapSource,
    claimed: &BTreeSet<&str>,
) -> BTreeSet<String> {
    let mut packages = profiled_packages(recording, seen, dumped);
    packages.retain(|package| !claimed.contains(package.as_str()));
    if let MapSource::File(file) = map
        && packages.len() > 1
    {
        let mentioned = file.mentioned(&packages);
        if !mentioned.is_empty() {
            return mentioned;
        }
    }
    packages
}
