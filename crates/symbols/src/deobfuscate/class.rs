//! A renamed class with its members, wherever it was read from: one block of a mapping file, or
//! the packets of a trace. Owns the shape that the rules of [`super::retrace`] work on.

use super::metadata::Notes;
use std::borrow::Cow;

/// Members of one class that are read. A class file has at most 65,535 methods, each with an entry
/// for every range of its lines.
pub(super) const MOST_MEMBERS: usize = 1 << 18;

/// A class of a map, by its name in the app.
#[derive(Debug, Clone)]
pub(super) struct Class<'a> {
    /// Name in the source.
    pub(super) original: &'a str,
    /// In order of their names in the app; those of one name in order of the file.
    methods: Vec<Method<'a>>,
    fields: Vec<Field<'a>>,
    /// Made by the compiler.
    pub(super) synthesized: bool,
    /// Classes that were merged into one, where the map says which.
    pub(super) merged: Option<Box<super::MergedClasses>>,
}

/// One entry of a method: a range of its lines, or all of them.
#[derive(Debug, Clone)]
pub(super) struct Method<'a> {
    /// Name in the app.
    pub(super) obfuscated: &'a str,
    /// The class it was written in.
    pub(super) holder: &'a str,
    /// Name in the source.
    pub(super) name: &'a str,
    /// Types as written in the source; packets do not say.
    pub(super) signature: Option<Signature<'a>>,
    /// Lines in the app that the entry is for; `None` is any.
    pub(super) lines: Option<LineRange>,
    pub(super) original: OriginalLines,
    /// What metadata says of the entry.
    pub(super) notes: Option<Box<Notes>>,
}

/// Types of a method, as written.
#[derive(Debug, Clone, Copy)]
pub struct Signature<'a> {
    /// What it returns, such as `void` or `byte[][]`.
    pub returns: &'a str,
    /// Between the brackets, separated by commas.
    pub parameters: &'a str,
}

impl<'a> Signature<'a> {
    /// The parameters one by one.
    pub fn parameters(self) -> impl Iterator<Item = &'a str> {
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

/// A field.
#[derive(Debug, Clone)]
pub(super) struct Field<'a> {
    /// Name in the app.
    pub(super) obfuscated: &'a str,
    /// The class it was written in.
    pub(super) holder: &'a str,
    /// Name in the source.
    pub(super) name: &'a str,
    /// Type as written in the source; packets do not say.
    pub(super) of_type: Option<&'a str>,
    pub(super) notes: Option<Box<Notes>>,
}

/// Lines, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineRange {
    pub(super) first: u32,
    pub(super) last: u32,
}

/// What R8 gives a method all of whose code has one position: it holds any line, and none.
const CATCH_ALL: LineRange = LineRange {
    first: 0,
    last: 65_535,
};

impl LineRange {
    /// From two numbers as written: reversed ones are swapped, `n:0` is `n:n`.
    pub(super) fn of(first: u32, last: u32) -> LineRange {
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
    /// Not written: the line stays as it is.
    Same,
    /// One for all; 0 is unknown.
    Line(u32),
    Range(LineRange),
}

impl OriginalLines {
    /// From what an entry has behind its name: nothing, a line, or two.
    pub(super) fn of(first: Option<u32>, last: Option<u32>) -> OriginalLines {
        match (first, last) {
            (None, _) => OriginalLines::Same,
            (Some(line), None) => OriginalLines::Line(line),
            (Some(first), Some(last)) => {
                let range = LineRange::of(first, last);
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
            synthesized: false,
            merged: None,
        }
    }

    /// Whether it takes no more members.
    pub(super) fn is_full(&self) -> bool {
        self.methods.len() + self.fields.len() >= MOST_MEMBERS
    }

    /// Takes members in order of the file. Not to be asked before [`Class::finish`].
    pub(super) fn add_method(&mut self, method: Method<'a>) {
        self.methods.push(method);
    }

    pub(super) fn add_field(&mut self, field: Field<'a>) {
        self.fields.push(field);
    }

    /// What is noted of the method that was added last.
    pub(super) fn last_method_notes(&mut self) -> Option<&mut Option<Box<Notes>>> {
        self.methods.last_mut().map(|method| &mut method.notes)
    }

    /// What is noted of the field that was added last.
    pub(super) fn last_field_notes(&mut self) -> Option<&mut Option<Box<Notes>>> {
        self.fields.last_mut().map(|field| &mut field.notes)
    }

    /// Puts members in order of their names; those of one name keep theirs.
    pub(super) fn finish(&mut self) {
        self.methods.sort_by_key(|method| method.obfuscated);
        self.fields.sort_by_key(|field| field.obfuscated);
    }

    /// All entries of a method, in order of the file.
    pub(super) fn methods(&self, obfuscated: &str) -> &[Method<'a>] {
        let start = self.methods.partition_point(|m| m.obfuscated < obfuscated);
        let rest = &self.methods[start..];
        &rest[..rest.partition_point(|m| m.obfuscated == obfuscated)]
    }

    /// All fields of a name, in order of the file.
    pub(super) fn fields(&self, obfuscated: &str) -> &[Field<'a>] {
        let start = self.fields.partition_point(|f| f.obfuscated < obfuscated);
        let rest = &self.fields[start..];
        &rest[..rest.partition_point(|f| f.obfuscated == obfuscated)]
    }

    /// All fields, in order of their names in the app.
    pub(super) fn all_fields(&self) -> &[Field<'a>] {
        &self.fields
    }

    /// All entries of methods, in order of their names in the app.
    pub(super) fn all_methods(&self) -> &[Method<'a>] {
        &self.methods
    }
}

/// A member's class and name: a name with a dot is whole.
pub(super) fn qualified<'a>(class: &'a str, name: &'a str) -> (&'a str, &'a str) {
    name.rsplit_once('.').unwrap_or((class, name))
}

/// A member's name as a packet has it: whole where it was written in another class.
pub(super) fn packet_name<'a>(class: &str, holder: &str, name: &'a str) -> Cow<'a, str> {
    if holder == class {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("{holder}.{name}"))
    }
}
