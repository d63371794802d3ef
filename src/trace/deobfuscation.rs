//! `DeobfuscationMapping` (trace_packet.deobfuscation_mapping, field 64): what R8 and ProGuard
//! renamed, appended to a trace by package. Owns which map a frame falls under and which entry
//! of it names the frame; reading mapping files is not done here.
//!
//! A frame's key is its recorded name, `class.method` as obfuscated. Its package is that of the
//! APK it was loaded from (`/data/app/…/package-…/`), else that of a process it was seen in;
//! code without a file (`/memfd:`) may belong to any. With a known line, all entries whose
//! range holds it are the inlined chain, innermost first; without, all distinct names stand
//! side by side.

use super::symbols::DEEPEST;
use super::wire::{Fields, WireError};
use crate::profile::{FrameId, Line, Lines, MappingId, Recording, StringId};
use std::collections::{BTreeSet, HashMap};

/// All maps of a trace, by package.
#[derive(Debug, Default)]
pub(super) struct DeobfuscationMaps {
    maps: HashMap<String, Map>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    /// Class and method as written in the source.
    name: String,
    /// Obfuscated lines, inclusive; a missing bound is open.
    first: Option<u64>,
    last: Option<u64>,
    source_line: u64,
}

impl DeobfuscationMaps {
    /// Adds a packet. Maps of no package rename classes of heap graphs only and are left out.
    ///
    /// # Errors
    /// Where it is damaged; nothing of it is kept then, since half a map gives wrong names.
    pub(super) fn add(&mut self, message: &[u8]) -> Result<(), WireError> {
        let mut package = String::new();
        let mut members = Vec::new();
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => package = value.text(),
                3 => read_class(value.bytes(), &mut members)?,
                _ => {}
            }
        }
        if !package.is_empty() {
            let map = self.maps.entry(package).or_default();
            for (key, member) in members {
                map.entry(key).or_default().push(member);
            }
        }
        Ok(())
    }

    /// Whether there is anything to apply.
    pub(super) fn is_empty(&self) -> bool {
        self.maps.is_empty()
    }

    /// Names all frames that a map knows. `pids` gives the processes that frames were seen in.
    pub(super) fn apply(&self, recording: &mut Recording, pids: &HashMap<FrameId, BTreeSet<u64>>) {
        let by_path: Vec<Owner> = recording
            .tables
            .mappings()
            .iter()
            .map(|mapping| owner(recording.tables.string(mapping.path)))
            .collect();
        let mut choices = Choices::new(self);
        let mut names: HashMap<(ChoiceId, StringId), Option<StringId>> = HashMap::new();
        let mut chains: HashMap<(ChoiceId, StringId, u32), Vec<&Member>> = HashMap::new();
        let mut rows: HashMap<(ChoiceId, Box<[Line]>), Option<Lines>> = HashMap::new();
        for at in 0..recording.tables.frames().len() {
            let id = FrameId(at as u32);
            let frame = *recording.tables.frame(id);
            let Some(MappingId(mapping)) = frame.mapping else {
                continue;
            };
            let choice = match &by_path[mapping as usize] {
                Owner::Package(package) => choices.package(package),
                Owner::Any => Some(choices.any()),
                Owner::Unknown => choices.uids(recording, pids.get(&id)),
            };
            let Some(choice) = choice else { continue };
            let name = *names.entry((choice, frame.name)).or_insert_with(|| {
                let members = choices.find(choice, recording.tables.string(frame.name))?;
                let names: BTreeSet<&str> = members.iter().map(|m| m.name.as_str()).collect();
                let shown: Vec<&str> = names.into_iter().take(DEEPEST).collect();
                Some(recording.tables.intern_str(&shown.join(" | ")))
            });
            if let Some(name) = name {
                recording.symbols.set_name(id, name);
            }
            let lines = recording.symbols.lines(id);
            if lines.is_empty() {
                continue;
            }
            let key = (choice, Box::from(lines));
            let row = match rows.get(&key) {
                Some(row) => *row,
                None => {
                    let mut renamed = Vec::new();
                    for line in &key.1 {
                        let chain = chains
                            .entry((choice, line.function, line.line))
                            .or_insert_with(|| {
                                let function = recording.tables.string(line.function);
                                let members = choices.find(choice, function);
                                let there = |member: &&Member| member.holds(line.line.into());
                                let all = members.into_iter().flatten();
                                all.filter(there).take(DEEPEST).collect()
                            });
                        renamed.extend(chain.iter().map(|member| {
                            let function = recording.tables.intern_str(&member.name);
                            Line {
                                function,
                                linkage: function,
                                file: line.file,
                                line: u32::try_from(member.source_line).unwrap_or(0),
                            }
                        }));
                        if chain.is_empty() {
                            renamed.push(*line);
                        }
                        if renamed.len() >= DEEPEST {
                            renamed.truncate(DEEPEST);
                            break;
                        }
                    }
                    let changed = *renamed != *key.1;
                    let row = changed.then(|| recording.symbols.add_lines(&renamed));
                    *rows.entry(key).or_insert(row.flatten())
                }
            };
            if let Some(row) = row {
                recording.symbols.set_lines(id, row);
            }
        }
    }
}

impl Member {
    /// Whether an obfuscated line is one of its lines.
    fn holds(&self, line: u64) -> bool {
        self.first.is_none_or(|first| first <= line) && self.last.is_none_or(|last| line <= last)
    }
}

type Map = HashMap<String, Vec<Member>>;

/// Which maps a frame falls under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ChoiceId(usize);

/// All choices of maps that frames of a trace fall under, each worked out once.
struct Choices<'a> {
    maps: &'a HashMap<String, Map>,
    /// The maps of a choice, the first one to know a key wins.
    choices: Vec<Vec<&'a Map>>,
    packages: HashMap<String, Option<ChoiceId>>,
    /// By app ids.
    uids: HashMap<BTreeSet<u64>, Option<ChoiceId>>,
    any: Option<ChoiceId>,
    /// What the maps of `any` say together.
    merged: HashMap<&'a str, &'a [Member]>,
}

impl<'a> Choices<'a> {
    fn new(maps: &'a DeobfuscationMaps) -> Self {
        Choices {
            maps: &maps.maps,
            choices: Vec::new(),
            packages: HashMap::new(),
            uids: HashMap::new(),
            any: None,
            merged: HashMap::new(),
        }
    }

    fn add(&mut self, maps: Vec<&'a Map>) -> ChoiceId {
        self.choices.push(maps);
        ChoiceId(self.choices.len() - 1)
    }

    fn package(&mut self, package: &str) -> Option<ChoiceId> {
        if let Some(&known) = self.packages.get(package) {
            return known;
        }
        let choice = self.maps.get(package).map(|map| self.add(vec![map]));
        self.packages.insert(package.to_owned(), choice);
        choice
    }

    /// All maps, in order of their packages' names.
    fn any(&mut self) -> ChoiceId {
        if let Some(any) = self.any {
            return any;
        }
        let mut all: Vec<(&String, &Map)> = self.maps.iter().collect();
        all.sort_unstable_by_key(|(package, _)| *package);
        for (key, members) in all.into_iter().flat_map(|(_, map)| map) {
            self.merged.entry(key).or_insert(members);
        }
        let any = self.add(Vec::new());
        *self.any.insert(any)
    }

    /// Maps of the packages with the app id of a process that was seen.
    fn uids(&mut self, recording: &Recording, pids: Option<&BTreeSet<u64>>) -> Option<ChoiceId> {
        const USERS: u64 = 100_000;
        let uids: BTreeSet<u64> = pids
            .into_iter()
            .flatten()
            .filter_map(|pid| recording.processes.get(pid)?.uid)
            .map(|uid| uid % USERS)
            .collect();
        if let Some(&known) = self.uids.get(&uids) {
            return known;
        }
        let maps: Vec<&Map> = recording
            .packages
            .iter()
            .filter(|package| uids.contains(&(package.uid % USERS)))
            .filter_map(|package| self.maps.get(&package.name))
            .collect();
        let choice = (!maps.is_empty()).then(|| self.add(maps));
        self.uids.insert(uids, choice);
        choice
    }

    fn find(&self, ChoiceId(choice): ChoiceId, key: &str) -> Option<&'a [Member]> {
        if self.any == Some(ChoiceId(choice)) {
            return self.merged.get(key).copied();
        }
        let mut maps = self.choices[choice].iter();
        maps.find_map(|map| map.get(key)).map(Vec::as_slice)
    }
}

/// Whose code a mapping holds.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    Package(String),
    /// Compiled in memory: the path does not tell, any map may name it.
    Any,
    /// To be told by the processes it was seen in.
    Unknown,
}

fn owner(path: &str) -> Owner {
    if path.starts_with("/memfd:") {
        return Owner::Any;
    }
    // Also "dex extracted in memory from /data/app/…".
    let Some(at) = path.find("/data/app/") else {
        return Owner::Unknown;
    };
    let mut parts = path[at + "/data/app/".len()..].split('/');
    let folder = match parts.next() {
        Some(random) if random.starts_with("~~") => parts.next(),
        other => other,
    };
    match folder.and_then(|folder| folder.split_once('-')) {
        Some((package, _)) if !package.is_empty() => Owner::Package(package.to_owned()),
        _ => Owner::Unknown,
    }
}

fn read_class(message: &[u8], members: &mut Vec<(String, Member)>) -> Result<(), WireError> {
    let (mut obfuscated, mut class) = (String::new(), String::new());
    let mut methods = Vec::new();
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => obfuscated = value.text(),
            2 => class = value.text(),
            4 => methods.push(value.bytes()),
            _ => {}
        }
    }
    for message in methods {
        let (mut key, mut name) = (String::new(), String::new());
        let (mut first, mut last, mut source_line) = (None, None, 0);
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => key = value.text(),
                2 => name = value.text(),
                3 => first = Some(value.number()),
                4 => last = Some(value.number()),
                5 => source_line = value.number(),
                _ => {}
            }
        }
        // A name with a dot is whole: the method was merged or inlined from another class.
        if !name.contains('.') {
            name = format!("{class}.{name}");
        }
        members.push((
            format!("{obfuscated}.{key}"),
            Member {
                name,
                first,
                last,
                source_line,
            },
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_apk_names_its_package() {
        for (path, package) in [
            ("/data/app/com.x-Ab1==/base.apk", Some("com.x")),
            (
                "/data/app/~~r4nd==/com.x-Ab1==/oat/arm64/base.odex",
                Some("com.x"),
            ),
            (
                "/[anon:dalvik-classes2.dex extracted in memory from /data/app/~~r==/com.x-A/base.apk]",
                Some("com.x"),
            ),
            ("/data/app/com.x/base.apk", None),
            ("/system/priv-app/X/X.apk", None),
        ] {
            let expected = package.map_or(Owner::Unknown, |p| Owner::Package(p.to_owned()));
            assert_eq!(owner(path), expected, "{path}");
        }
        assert_eq!(owner("/memfd:jit-cache (deleted)"), Owner::Any);
    }

    #[test]
    fn open_ranges_do_not_multiply() {
        use crate::profile::{Frame, Mapping};
        let member = |n: usize| Member {
            name: format!("C.m{n}"),
            first: None,
            last: None,
            source_line: 1,
        };
        let map = HashMap::from([("a.b".to_owned(), (0..1000).map(member).collect())]);
        let maps = DeobfuscationMaps {
            maps: HashMap::from([("com.x".to_owned(), map)]),
        };
        let mut recording = Recording::default();
        let tables = &mut recording.tables;
        let (key, path) = (tables.intern_str("a.b"), tables.intern_str("/memfd:jit"));
        let mapping = tables.intern_mapping(Mapping {
            path,
            build_id: crate::units::BuildId::default(),
            start: 0,
            end: 0,
            exact_offset: 0,
            start_offset: 0,
            load_bias: 0,
        });
        let line = Line {
            function: key,
            linkage: key,
            file: StringId::default(),
            line: 3,
        };
        for n in 0..500 {
            let frame = tables.intern_frame(Frame {
                mapping: Some(mapping),
                rel_pc: n,
                name: key,
                file: StringId::default(),
                line: 0,
            });
            let row = recording.symbols.add_lines(&[line; 9]).unwrap();
            recording.symbols.set_lines(frame, row);
        }
        let before = recording.symbols.held();
        maps.apply(&mut recording, &HashMap::new());
        assert_eq!(recording.symbols.held() - before, DEEPEST);
        assert_eq!(recording.symbols.lines(FrameId(499)).len(), DEEPEST);
        let name = recording.symbols.name(FrameId(0)).unwrap();
        let name = recording.tables.string(name);
        assert!(name.starts_with("C.m0 | C.m1 | C.m10 | "), "{name}");
        assert_eq!(name.split(" | ").count(), DEEPEST);
    }
}
