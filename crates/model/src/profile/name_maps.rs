//! Names that a compiler changed, from the packets of a trace: classes, fields and methods, by
//! package. Stored in rows over one text, because a map can be as large as its app. The choice of a
//! frame's name is made elsewhere.

use std::collections::BTreeMap;

/// Maps of all packages, in order of their names; several packets of one package are merged.
#[derive(Debug, Clone, Default)]
pub struct NameMaps {
    maps: BTreeMap<String, NameMap>,
}

impl NameMaps {
    /// Returns the map of a package for additions.
    pub fn entry(&mut self, package: &str) -> &mut NameMap {
        if !self.maps.contains_key(package) {
            self.maps.insert(package.to_owned(), NameMap::default());
        }
        self.maps.get_mut(package).expect("inserted just above")
    }

    /// Returns the map of a package. The map without a package (`""`) is for classes of heap
    /// graphs.
    pub fn get(&self, package: &str) -> Option<&NameMap> {
        self.maps.get(package)
    }

    /// Returns all maps, in order of their packages.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &NameMap)> {
        self.maps.iter().map(|(package, map)| (&**package, map))
    }

    /// Returns whether there are no maps.
    pub fn is_empty(&self) -> bool {
        self.maps.is_empty()
    }
}

/// Changed names of one package.
#[derive(Debug, Clone, Default)]
pub struct NameMap {
    text: String,
    classes: Vec<ClassRow>,
    members: Vec<MemberRow>,
}

/// Position and lengths of two names, which are adjacent in the text.
#[derive(Debug, Clone, Copy)]
struct Names {
    start: usize,
    obfuscated: u32,
    original: u32,
}

#[derive(Debug, Clone)]
struct ClassRow {
    names: Names,
    first_member: usize,
}

#[derive(Debug, Clone)]
struct MemberRow {
    names: Names,
    is_method: bool,
    lines: PacketLines,
}

/// Lines of a renamed method; `None` for those missing in the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketLines {
    /// First line in the obfuscated method.
    pub obfuscated_start: Option<u32>,
    /// Last line in the obfuscated method, inclusive.
    pub obfuscated_end: Option<u32>,
    /// First line in the source.
    pub source_start: Option<u32>,
    /// Last line in the source, inclusive.
    pub source_end: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
pub struct RenamedClass<'a> {
    /// Name in the app.
    pub obfuscated: &'a str,
    /// Name in the source.
    pub original: &'a str,
    map: &'a NameMap,
    first_member: usize,
    end: usize,
}

/// A field or method of a [`RenamedClass`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenamedMember<'a> {
    /// Name in the app.
    pub obfuscated: &'a str,
    /// Name in the source. With a dot it is complete, including the class: the member was merged or
    /// inlined from another class.
    pub original: &'a str,
    /// True for a method, false for a field.
    pub is_method: bool,
    /// Lines of a method.
    pub lines: PacketLines,
}

impl NameMap {
    /// Adds a class; the members added next belong to it.
    pub fn add_class(&mut self, obfuscated: &str, original: &str) {
        let names = self.add_names(obfuscated, original);
        self.classes.push(ClassRow {
            names,
            first_member: self.members.len(),
        });
    }

    /// Adds a field of the last added class.
    pub fn add_field(&mut self, obfuscated: &str, original: &str) {
        self.add_member(obfuscated, original, false, PacketLines::default());
    }

    /// Adds a method of the last added class.
    pub fn add_method(&mut self, obfuscated: &str, original: &str, lines: PacketLines) {
        self.add_member(obfuscated, original, true, lines);
    }

    fn add_member(
        &mut self,
        obfuscated: &str,
        original: &str,
        is_method: bool,
        lines: PacketLines,
    ) {
        debug_assert!(!self.classes.is_empty(), "a member belongs to a class");
        let names = self.add_names(obfuscated, original);
        self.members.push(MemberRow {
            names,
            is_method,
            lines,
        });
    }

    fn add_names(&mut self, obfuscated: &str, original: &str) -> Names {
        let start = self.text.len();
        let length = |name: &str| u32::try_from(name.len()).expect("a packet is below 2^32 bytes");
        let names = Names {
            start,
            obfuscated: length(obfuscated),
            original: length(original),
        };
        self.text.push_str(obfuscated);
        self.text.push_str(original);
        names
    }

    fn names(&self, names: Names) -> (&str, &str) {
        let middle = names.start + names.obfuscated as usize;
        let end = middle + names.original as usize;
        (&self.text[names.start..middle], &self.text[middle..end])
    }

    /// Returns the number of classes.
    pub fn class_count(&self) -> usize {
        self.classes.len()
    }

    /// Returns the class at a position, in order of addition.
    pub fn class(&self, at: usize) -> RenamedClass<'_> {
        let (obfuscated, original) = self.names(self.classes[at].names);
        RenamedClass {
            obfuscated,
            original,
            map: self,
            first_member: self.classes[at].first_member,
            end: self
                .classes
                .get(at + 1)
                .map_or(self.members.len(), |next| next.first_member),
        }
    }
}

impl<'a> RenamedClass<'a> {
    /// Returns the fields and methods, in order of addition.
    pub fn members(self) -> impl Iterator<Item = RenamedMember<'a>> {
        let rows = self.map.members[self.first_member..self.end].iter();
        rows.map(move |row| {
            let (obfuscated, original) = self.map.names(row.names);
            RenamedMember {
                obfuscated,
                original,
                is_method: row.is_method,
                lines: row.lines,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_belong_to_the_class_before_them() {
        let mut maps = NameMaps::default();
        let map = maps.entry("com.x");
        map.add_class("a", "com.x.Main");
        map.add_field("a", "count");
        let lines = PacketLines {
            obfuscated_start: Some(1),
            ..PacketLines::default()
        };
        map.add_method("b", "run", lines);
        maps.entry("com.x").add_class("b", "com.x.Other");
        let map = maps.get("com.x").unwrap();
        assert_eq!(map.class_count(), 2);
        let main = map.class(0);
        assert_eq!((main.obfuscated, main.original), ("a", "com.x.Main"));
        let members: Vec<_> = main
            .members()
            .map(|m| (m.obfuscated, m.original, m.is_method, m.lines))
            .collect();
        assert_eq!(
            members,
            [
                ("a", "count", false, PacketLines::default()),
                ("b", "run", true, lines)
            ]
        );
        assert_eq!(map.class(1).members().count(), 0);
        assert!(maps.get("com.y").is_none());
    }
}
