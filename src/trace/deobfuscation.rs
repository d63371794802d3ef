//! `DeobfuscationMapping` (trace_packet.deobfuscation_mapping, field 64): what R8 and ProGuard
//! renamed, appended to a trace by package. Owns which map a frame falls under and which entry
//! of it names the frame; reading mapping files is not done here.
//!
//! A frame's key is its recorded name, `class.method` as obfuscated. Its package is that of the
//! APK it was loaded from (`/data/app/…/package-…/`), else that of a process it was seen in;
//! code without a file (`/memfd:`) may belong to any. With a known line, all entries whose
//! range holds it are the inlined chain, innermost first; without, all distinct names stand
//! side by side.

use super::wire::{Fields, WireError};
use crate::profile::{FrameId, Line, MappingId, Recording};
use std::collections::{BTreeSet, HashMap};

/// All maps of a trace, by package.
#[derive(Debug, Default)]
pub(super) struct DeobfuscationMaps {
    maps: HashMap<String, HashMap<String, Vec<Member>>>,
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
        for at in 0..recording.tables.frames().len() {
            let id = FrameId(at as u32);
            let frame = *recording.tables.frame(id);
            let Some(MappingId(mapping)) = frame.mapping else {
                continue;
            };
            let seen = match &by_path[mapping as usize] {
                Owner::Package(package) => vec![package.clone()],
                Owner::Any => {
                    let mut all: Vec<String> = self.maps.keys().cloned().collect();
                    all.sort_unstable();
                    all
                }
                Owner::Unknown => packages_of(recording, pids.get(&id)),
            };
            let maps: Vec<_> = seen.iter().filter_map(|name| self.maps.get(name)).collect();
            if maps.is_empty() {
                continue;
            }
            let find = |key: &str| maps.iter().find_map(|map| map.get(key));
            if let Some(members) = find(recording.tables.string(frame.name)) {
                let names: BTreeSet<&str> = members.iter().map(|m| m.name.as_str()).collect();
                let name = names.into_iter().collect::<Vec<_>>().join(" | ");
                let name = recording.tables.intern_str(&name);
                recording.symbols.set_name(id, name);
            }
            let lines = recording.symbols.lines(id).to_vec();
            let mut renamed = Vec::new();
            for line in &lines {
                let key = recording.tables.string(line.function).to_owned();
                let chain = find(&key).into_iter().flatten().filter(|member| {
                    let at = u64::from(line.line);
                    member.first.is_none_or(|first| first <= at)
                        && member.last.is_none_or(|last| at <= last)
                });
                let before = renamed.len();
                for member in chain {
                    renamed.push(Line {
                        function: recording.tables.intern_str(&member.name),
                        file: line.file,
                        line: u32::try_from(member.source_line).unwrap_or(0),
                    });
                }
                if renamed.len() == before {
                    renamed.push(*line);
                }
            }
            if renamed != lines {
                recording.symbols.set_lines(id, renamed);
            }
        }
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

/// Packages with the app id of a process that was seen.
fn packages_of(recording: &Recording, pids: Option<&BTreeSet<u64>>) -> Vec<String> {
    const USERS: u64 = 100_000;
    let uids: BTreeSet<u64> = pids
        .into_iter()
        .flatten()
        .filter_map(|pid| recording.processes.get(pid)?.uid)
        .map(|uid| uid % USERS)
        .collect();
    recording
        .packages
        .iter()
        .filter(|package| uids.contains(&(package.uid % USERS)))
        .map(|package| package.name.clone())
        .collect()
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
}
