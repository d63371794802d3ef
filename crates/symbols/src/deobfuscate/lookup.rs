//! Lookup of a frame's name or line in R8 mappings: the first R8 mapping that has it, the matching
//! entries, and the text shown in a profile.

use super::app_map::MapSource;
use super::class::{Class, Method};
use super::file::MapFile;
use super::frame_name::{FrameName, FrameTypes};
use super::packets::PacketMap;
use super::retrace::{self, Answer, Group, Overloads, answer, chains, outermost, partitions};
use super::retracer::has_descriptor;
use super::types::{descriptor, parameters_descriptor};
use std::collections::{BTreeSet, HashMap};

/// Separator between alternative names.
pub(super) const OR: &str = " | ";
/// Maximum number of names for one frame.
const MAX_COUNT: usize = 256;
/// Budget of entries checked for lines and types; beyond it, a hostile R8 mapping gives only names.
const EFFORT: u64 = 1 << 25;
/// Cost of comparing the types of one entry, relative to only visiting it.
const TYPES: u64 = 16;

/// R8 mapping to look classes up in.
pub(super) enum Lookup<'a> {
    File(&'a MapFile),
    Packets(PacketMap<'a>),
}

impl<'a> Lookup<'a> {
    pub(super) fn from_source(source: MapSource<'a>) -> Self {
        match source {
            MapSource::File(file) => Lookup::File(file),
            MapSource::Packets(map) => Lookup::Packets(PacketMap::new(map)),
        }
    }

    fn class(&self, obfuscated: &str) -> Option<Class<'a>> {
        match self {
            Lookup::File(file) => file.class(obfuscated),
            Lookup::Packets(map) => map.class(obfuscated),
        }
    }

    /// Returns the overloads that match the types of the frame, or all if none matches.
    fn with_types<'m>(
        &self,
        groups: Vec<Group<'m, 'a>>,
        types: Option<FrameTypes>,
    ) -> Vec<Group<'m, 'a>> {
        let (Lookup::File(file), Some(types)) = (self, types) else {
            return groups;
        };
        let parameters = parameters_descriptor(types.parameters, str::to_owned);
        let returns = types
            .returns
            .map(|of_type| descriptor(of_type, str::to_owned));
        let same = |residual: &str| {
            let rest = residual.strip_prefix(&parameters);
            rest.is_some_and(|rest| returns.as_ref().is_none_or(|returns| returns == rest))
        };
        let left: Vec<Group> = partitions(&groups, Overloads::ByTypes)
            .filter(|partition| has_descriptor(file, partition, same))
            .flatten()
            .copied()
            .collect();
        if left.is_empty() { groups } else { left }
    }

    /// Returns the source file of a class of the source, as far as known.
    fn file_of(&self, class: Option<&str>) -> SourceFile {
        match (self, class) {
            (Lookup::File(file), Some(class)) => match file.source_file(class) {
                Some(file) => SourceFile::Known(file),
                None => SourceFile::OfClass(class.to_owned()),
            },
            _ => SourceFile::AsRecorded,
        }
    }
}

/// Resolver of names and lines. Queries of one class should be adjacent.
pub(super) struct Resolver<'l, 'a> {
    lookups: &'l [Lookup<'a>],
    classes: Classes<'l, 'a>,
    effort: u64,
}

/// Cache of the class that was looked up last, by R8 mapping.
struct Classes<'l, 'a> {
    lookups: &'l [Lookup<'a>],
    last: Option<(String, HashMap<usize, Option<Known<'a>>>)>,
}

/// Class with the cached names of its methods: among many frames of one method, only the first
/// costs more than a lookup.
struct Known<'a> {
    class: Class<'a>,
    names: HashMap<String, (String, Option<&'a str>)>,
}

impl<'a> Known<'a> {
    /// Returns the name of a method, regardless of types and lines; `None` if it is unknown.
    fn name_of(&mut self, method: &str) -> Option<&(String, Option<&'a str>)> {
        if !self.names.contains_key(method) {
            let groups = retrace::groups(self.class.methods(method));
            if groups.is_empty() {
                return None;
            }
            let names = outermost_names(groups.into_iter().map(outermost));
            let holder = only_holder(&names);
            self.names.insert(method.to_owned(), (join(names), holder));
        }
        self.names.get(method)
    }
}

impl<'a> Classes<'_, 'a> {
    /// Returns the class with a name in each of the R8 mappings that have it.
    fn of(&mut self, maps: &[usize], class: &str) -> &mut HashMap<usize, Option<Known<'a>>> {
        let (_, known) = match self.last.take() {
            Some(last) if last.0 == class => self.last.insert(last),
            _ => self.last.insert((class.to_owned(), HashMap::new())),
        };
        for &map in maps {
            known.entry(map).or_insert_with(|| {
                self.lookups[map].class(class).map(|class| Known {
                    class,
                    names: HashMap::new(),
                })
            });
        }
        known
    }
}

pub(super) struct Found<'a> {
    pub(super) name: String,
    /// Position of the R8 mapping.
    pub(super) by: usize,
    /// Class that declares the method in the source, if it is the same for all alternatives.
    holder: Option<&'a str>,
}

pub(super) struct NamedLine {
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) file: SourceFile,
}

/// Source file of a line, as far as known.
pub(super) enum SourceFile {
    /// Unchanged: packets do not have source files.
    AsRecorded,
    Known(String),
    /// To be inferred from the class.
    OfClass(String),
}

impl<'l, 'a> Resolver<'l, 'a> {
    pub(super) fn new(lookups: &'l [Lookup<'a>]) -> Self {
        Resolver {
            lookups,
            classes: Classes {
                lookups,
                last: None,
            },
            effort: EFFORT,
        }
    }

    /// Returns the name of a frame.
    pub(super) fn name(&mut self, maps: &[usize], raw: &str, native: bool) -> Option<Found<'a>> {
        let frame = FrameName::parse(raw)?;
        let lookups = self.lookups;
        let classes = self.classes.of(maps, frame.class);
        for &by in maps {
            let (Some(method), Some(Some(known))) = (frame.method, classes.get_mut(&by)) else {
                continue;
            };
            let entries = known.class.methods(method);
            if entries.is_empty() {
                continue;
            }
            let cost = entries.len() as u64 * TYPES;
            if frame.types.is_some() && self.effort >= cost {
                self.effort -= cost;
                let groups = lookups[by].with_types(retrace::groups(entries), frame.types);
                let names = outermost_names(groups.into_iter().map(outermost));
                let holder = only_holder(&names);
                let name = frame.prefix.to_owned() + &join(names);
                return Some(Found { name, by, holder });
            }
            let (name, holder) = known.name_of(method)?;
            return Some(Found {
                name: frame.prefix.to_owned() + name,
                by,
                holder: *holder,
            });
        }
        if native {
            return None;
        }
        let mut known = maps
            .iter()
            .filter_map(|by| Some((*by, classes[by].as_ref()?)));
        let (by, known) = known.next()?;
        let method = frame.method_or_unknown();
        Some(Found {
            name: format!("{}{}.{method}", frame.prefix, known.class.original),
            by,
            holder: Some(known.class.original),
        })
    }

    /// Returns the calls at a line of a method, innermost first.
    pub(super) fn chain(
        &mut self,
        maps: &[usize],
        raw: &str,
        line: u32,
        native: bool,
    ) -> Option<Vec<NamedLine>> {
        let exact = self.exact_chain(maps, raw, line);
        exact.or_else(|| {
            // Outside all ranges the line is unknown, but the method is still known.
            let found = self.name(maps, raw, native)?;
            Some(vec![NamedLine {
                file: self.lookups[found.by].file_of(found.holder),
                name: found.name,
                line: 0,
            }])
        })
    }

    fn exact_chain(&mut self, maps: &[usize], raw: &str, line: u32) -> Option<Vec<NamedLine>> {
        let frame = FrameName::parse(raw)?;
        let method = frame.method.filter(|_| line != 0 && self.effort > 0)?;
        let lookups = self.lookups;
        let classes = self.classes.of(maps, frame.class);
        let mut all = maps
            .iter()
            .filter_map(|&at| Some((at, classes[&at].as_ref()?.class.methods(method))));
        let (by, entries) = all.find(|(_, entries)| !entries.is_empty())?;
        let lookup = &lookups[by];
        let each = if frame.types.is_some() { TYPES } else { 1 };
        self.effort = self.effort.saturating_sub(entries.len() as u64 * each);
        let groups = lookup.with_types(retrace::groups(entries), frame.types);
        let Answer::Groups(found) = answer(&groups, Overloads::ByName, line) else {
            return None;
        };
        let names = outermost_names(found.iter().map(|group| outermost(group)));
        let chain = if names.len() == 1 {
            let chain = chains(found[0], line).swap_remove(0);
            let named = chain.into_iter().map(|frame| NamedLine {
                name: format!("{}.{}", frame.method.class, frame.method.name),
                line: frame.line.unwrap_or(0),
                file: lookup.file_of(Some(frame.method.class)),
            });
            named.collect()
        } else {
            vec![NamedLine {
                file: lookup.file_of(only_holder(&names)),
                name: join(names),
                line: 0,
            }]
        };
        Some(chain)
    }
}

fn outermost_names<'m, 'a: 'm>(
    methods: impl Iterator<Item = &'m Method<'a>>,
) -> BTreeSet<(&'a str, &'a str)> {
    methods.map(|method| (method.holder, method.name)).collect()
}

fn only_holder<'a>(names: &BTreeSet<(&'a str, &'a str)>) -> Option<&'a str> {
    let first = names.first()?.0;
    (names.last()?.0 == first).then_some(first)
}

/// Joins the possible names of a method, sorted.
fn join(names: BTreeSet<(&str, &str)>) -> String {
    let mut names: Vec<String> = names
        .into_iter()
        .map(|(holder, name)| format!("{holder}.{name}"))
        .collect();
    names.sort_unstable();
    names.truncate(MAX_COUNT);
    names.join(OR)
}
