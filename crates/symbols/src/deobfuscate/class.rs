//! A renamed class with its members, from a block of a mapping file or from packets of a trace.
//! Defines the structures for the rules of [`super::retrace`].

use super::metadata::Notes;
use std::borrow::Cow;

/// Maximum number of members read for one class. A class file has at most 65,535 methods, each with
/// one entry for every range of its lines.
pub(super) const MAX_MEMBERS: usize = 1 << 18;

/// Class of an R8 mapping, by its name in the app.
#[derive(Debug, Clone)]
pub(super) struct Class<'a> {
    /// Name in the source.
    pub(super) original: &'a str,
    /// In order of their names in the app once finished; entries of one name in order of the file.
    pub(super) methods: Vec<Method<'a>>,
    pub(super) fields: Vec<Field<'a>>,
}

/// One entry of a method: a range of its lines, or all of them.
#[derive(Debug, Clone)]
pub(super) struct Method<'a> {
    /// Name in the app.
    pub(super) obfuscated: &'a str,
    /// Class that declares it in the source.
    pub(super) holder: &'a str,
    /// Name in the source.
    pub(super) name: &'a str,
    /// Types in the source; packets do not have them.
    pub(super) signature: Option<Signature<'a>>,
    /// Lines in the app that the entry applies to; `None` for any line.
    pub(super) lines: Option<LineRange>,
    pub(super) original: OriginalLines,
    /// Metadata of the entry.
    pub(super) notes: Option<Box<Notes>>,
}

/// Types of a method in the source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signature<'a> {
    /// Return type, such as `void` or `byte[][]`.
    pub(super) returns: &'a str,
    /// Parameter types, separated by commas.
    pub(super) parameters: &'a str,
}

impl<'a> Signature<'a> {
    /// Returns the parameters one by one.
    fn parameters(self) -> impl Iterator<Item = &'a str> {
        let all = self.parameters.split(',').map(str::trim);
        all.filter(|parameter| !parameter.is_empty())
    }
}

impl PartialEq for Signature<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.returns == other.returns
            && (self.parameters == other.parameters || self.parameters().eq(other.parameters()))
    }
}

impl Eq for Signature<'_> {}

/// Field of a class.
#[derive(Debug, Clone)]
pub(super) struct Field<'a> {
    /// Name in the app.
    pub(super) obfuscated: &'a str,
    /// Class that declares it in the source.
    pub(super) holder: &'a str,
    /// Name in the source.
    pub(super) name: &'a str,
    /// Type in the source; packets do not have it.
    pub(super) of_type: Option<&'a str>,
    pub(super) notes: Option<Box<Notes>>,
}

/// Line range, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineRange {
    pub(super) first: u32,
    pub(super) last: u32,
}

/// Range that R8 writes for a method whose code has a single position: it contains any line, and
/// frames without one.
const CATCH_ALL: LineRange = LineRange {
    first: 0,
    last: 65_535,
};

impl LineRange {
    /// Makes a range of two numbers: reversed ones are swapped, `n:0` is `n:n`.
    pub(super) fn new(first: u32, last: u32) -> LineRange {
        let last = if last == 0 { first } else { last };
        LineRange {
            first: first.min(last),
            last: first.max(last),
        }
    }

    pub(super) fn holds(self, line: u32) -> bool {
        self == CATCH_ALL || (self.first..=self.last).contains(&line)
    }

    pub(super) fn span(self) -> u32 {
        self.last - self.first
    }
}

/// Lines in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OriginalLines {
    /// Not written: the line stays the same.
    Same,
    /// One line for all; 0 is unknown.
    Line(u32),
    Range(LineRange),
}

impl OriginalLines {
    /// Makes the lines from the numbers after an entry's name: none, one or two.
    pub(super) fn new(first: Option<u32>, last: Option<u32>) -> OriginalLines {
        match (first, last) {
            (None, _) => OriginalLines::Same,
            (Some(line), None) => OriginalLines::Line(line),
            (Some(first), Some(last)) => {
                let range = LineRange::new(first, last);
                if range.span() == 0 {
                    OriginalLines::Line(range.first)
                } else {
                    OriginalLines::Range(range)
                }
            }
        }
    }
}

impl<'a> Class<'a> {
    pub(super) fn new(original: &'a str) -> Self {
        Class {
            original,
            methods: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// Returns whether the limit of members is reached.
    pub(super) fn is_full(&self) -> bool {
        self.methods.len() + self.fields.len() >= MAX_MEMBERS
    }

    /// Sorts members by name, for lookups; members with the same name keep their order.
    pub(super) fn finish(&mut self) {
        self.methods.sort_by_key(|method| method.obfuscated);
        self.fields.sort_by_key(|field| field.obfuscated);
    }

    /// Returns all entries of a method, in order of the file.
    pub(super) fn methods(&self, obfuscated: &str) -> &[Method<'a>] {
        let start = self.methods.partition_point(|m| m.obfuscated < obfuscated);
        let rest = &self.methods[start..];
        &rest[..rest.partition_point(|m| m.obfuscated == obfuscated)]
    }

    /// Returns all fields with a name, in order of the file.
    pub(super) fn fields(&self, obfuscated: &str) -> &[Field<'a>] {
        let start = self.fields.partition_point(|f| f.obfuscated < obfuscated);
        let rest = &self.fields[start..];
        &rest[..rest.partition_point(|f| f.obfuscated == obfuscated)]
    }
}

/// Returns class and name of a member; a name with a dot includes the class.
pub(super) fn qualified<'a>(class: &'a str, name: &'a str) -> (&'a str, &'a str) {
    name.rsplit_once('.').unwrap_or((class, name))
}

/// Returns the name of a member in packets: with its class if another class declares it.
pub(super) fn packet_name<'a>(class: &str, holder: &str, name: &'a str) -> Cow<'a, str> {
    if holder == class {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("{holder}.{name}"))
    }
}
