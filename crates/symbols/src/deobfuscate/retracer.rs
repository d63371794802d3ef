//! Names of the app to names of the source, for whoever asks one at a time: frames, methods,
//! fields, classes and types, as R8's retrace answers. [`super::apply`] names the frames of a
//! whole recording; stack traces with their outlines are in [`super::stack`].

use super::class::{Class, Field, Method};
use super::file::MapFile;
use super::metadata::MergedClasses;
use super::retrace::{
    Answer, Chain, Group, MOST, Overloads, SourceFrame, SourceMethod, answer, chains, groups,
    methods, outermost, partitions,
};
use super::source_file;
use super::types::{Type, descriptor, parameters_descriptor};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Classes whose members are kept once read; then all are read again.
const KEPT: usize = 4096;

/// Answers questions about one mapping file. Reads a class when it is first asked for and keeps
/// it; answers borrow from the file. For one thread: another makes its own.
#[derive(Debug)]
pub struct Retracer<'f> {
    file: &'f MapFile,
    classes: RefCell<HashMap<String, Option<Rc<Class<'f>>>>>,
}

/// A class of the app, as the source has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceClass<'f> {
    /// Its name.
    pub name: &'f str,
    /// The file it was written in, where the map says.
    pub file: Option<String>,
    /// Made by the compiler.
    pub synthesized: bool,
    /// Classes that were merged into one, where the map says which.
    pub merged: Option<MergedClasses>,
}

/// A field of the app, as the source has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceField<'f> {
    /// The class it was written in.
    pub class: &'f str,
    /// Its name.
    pub name: &'f str,
    /// Its type.
    pub of_type: Option<&'f str>,
    /// Made by the compiler.
    pub synthesized: bool,
}

/// What is known of a field's type in the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType<'t> {
    /// Nothing.
    Unknown,
    /// The type, as Java or the class file writes it: `int`, `a.b[]`, `La/b;`.
    Exactly(&'t str),
    /// Some class or array: all that an HPROF says.
    Object,
}

/// The frames that one frame of the app may stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retraced<'f> {
    /// The map does not know the class.
    Unknown,
    /// The map knows the class, here as the source has it, but not the method, or not the line.
    Class(&'f str),
    /// One chain for each alternative, sorted; at most 256. An empty one is a frame that only the compiler
    /// made; no source has it.
    Frames(Vec<Chain<'f>>),
}

impl<'f> Retracer<'f> {
    /// Asks a mapping file.
    pub fn new(file: &'f MapFile) -> Self {
        Retracer {
            file,
            classes: RefCell::default(),
        }
    }

    pub(super) fn read(&self, obfuscated: &str) -> Option<Rc<Class<'f>>> {
        let mut classes = self.classes.borrow_mut();
        if let Some(known) = classes.get(obfuscated) {
            return known.clone();
        }
        if classes.len() >= KEPT {
            classes.clear();
        }
        let class = self.file.class(obfuscated).map(Rc::new);
        classes.insert(obfuscated.to_owned(), class.clone());
        class
    }

    /// A class, by its name in the app.
    pub fn class(&self, obfuscated: &str) -> Option<SourceClass<'f>> {
        let class = self.read(obfuscated)?;
        Some(SourceClass {
            name: class.original,
            file: self.file.source_file(class.original),
            synthesized: class.synthesized,
            merged: class.merged.as_deref().cloned(),
        })
    }

    /// A type as the source writes it: classes, primitives, arrays of them (`a[]`, `[La/b;`),
    /// `a/b`, and `java.lang.Class<a.b>` as heap graphs call a class's statics. What the map
    /// does not know stays.
    pub fn type_name(&self, obfuscated: &str) -> String {
        Type::parse(obfuscated).written(|class| self.original(class))
    }

    fn original(&self, class: &str) -> String {
        self.file.original(class).unwrap_or(class).to_owned()
    }

    fn obfuscated(&self, class: &str) -> String {
        self.file.obfuscated(class).unwrap_or(class).to_owned()
    }

    /// The methods that a method of the app may be: one for each overload, inlined ones not
    /// among them. What a sampled stack shows, and a profile. Empty where the map has none.
    pub fn method(&self, class: &str, method: &str) -> Vec<SourceMethod<'f>> {
        let Some(class) = self.read(class) else {
            return Vec::new();
        };
        methods(&groups(class.methods(method)))
    }

    /// The same, for the method with a descriptor in the app, such as `(La/b;I)V`. What comes
    /// back for one that the map does not have is empty.
    pub fn method_with_descriptor(
        &self,
        class: &str,
        method: &str,
        descriptor: &str,
    ) -> Vec<SourceMethod<'f>> {
        let Some(class) = self.read(class) else {
            return Vec::new();
        };
        let groups = groups(class.methods(method));
        let chosen: Vec<_> = partitions(&groups, Overloads::ByTypes)
            .filter(|partition| {
                has_descriptor(self.file, partition, |residual| residual == descriptor)
            })
            .flatten()
            .copied()
            .collect();
        methods(&chosen)
    }

    /// The fields that a field of the app may be, in order of the map; several only where one
    /// name stands for fields of several types, and the type leaves it open. Empty where the
    /// map has none.
    pub fn field(&self, class: &str, field: &str, of_type: FieldType) -> Vec<SourceField<'f>> {
        let Some(class) = self.read(class) else {
            return Vec::new();
        };
        let fields = class.fields(field).iter();
        let chosen = fields.filter(|field| self.is_of_type(field, of_type));
        chosen
            .map(|field| SourceField {
                class: field.holder,
                name: field.name,
                of_type: field.of_type,
                synthesized: field.notes.as_deref().is_some_and(|n| n.synthesized),
            })
            .collect()
    }

    fn is_of_type(&self, field: &Field, wanted: FieldType) -> bool {
        let written = field.of_type.unwrap_or_default();
        let residual = field.notes.as_deref().and_then(|n| n.residual.as_deref());
        match wanted {
            FieldType::Unknown => true,
            FieldType::Object => Type::parse(residual.unwrap_or(written)).is_object(),
            FieldType::Exactly(wanted) => {
                // A lone letter may be a class, and a primitive as the class file has it.
                let as_type = descriptor(wanted, str::to_owned);
                let same = |has: &str| has == as_type || has == wanted;
                match residual {
                    Some(residual) => same(residual),
                    None => {
                        same(&descriptor(written, |class| self.obfuscated(class)))
                            || same(&descriptor(written, str::to_owned))
                    }
                }
            }
        }
    }

    /// What a frame of the app stands for, looked at alone. Without a line, or with line 0, as
    /// for a stack trace that has none; a profile asks [`Retracer::method`].
    pub fn frame(&self, class: &str, method: &str, line: Option<u32>) -> Retraced<'f> {
        let Some(class) = self.read(class) else {
            return Retraced::Unknown;
        };
        let groups = groups(class.methods(method));
        let line = line.unwrap_or(0);
        match answer(&groups, Overloads::ByTypes, line) {
            Answer::Groups(found) => sorted(
                found
                    .into_iter()
                    .flat_map(|group| chains(group, line).into_iter().map(without_synthesized)),
            ),
            Answer::Outermost(methods) if !methods.is_empty() => {
                sorted(methods.into_iter().map(alone))
            }
            Answer::Outermost(_) | Answer::Nothing => Retraced::Class(class.original),
        }
    }

    /// The source file of a class of the source: what the map says, else what its name and that
    /// of the file that the app's frame names make likely.
    pub fn source_file(&self, original: &str, recorded: Option<&str>) -> String {
        self.file
            .source_file(original)
            .unwrap_or_else(|| source_file::infer(original, recorded))
    }
}

/// Whether an overload has a descriptor in the app for which `same` holds: what the map notes
/// of it, else the types of the source with classes renamed, or, as R8 has it, as they are
/// written. One whose types are not known may have any.
pub(super) fn has_descriptor(
    file: &MapFile,
    partition: &[Group],
    same: impl Fn(&str) -> bool,
) -> bool {
    let mut entries = partition.iter().copied().flatten();
    let noted = entries.find_map(|entry| entry.notes.as_deref()?.residual.as_deref());
    if let Some(noted) = noted {
        return same(noted);
    }
    let Some(signature) = partition
        .last()
        .and_then(|group| outermost(group).signature)
    else {
        return true;
    };
    let as_descriptor = |rename: &dyn Fn(&str) -> String| {
        parameters_descriptor(signature.parameters, rename) + &descriptor(signature.returns, rename)
    };
    let renamed = |class: &str| file.obfuscated(class).unwrap_or(class).to_owned();
    same(&as_descriptor(&renamed)) || same(&as_descriptor(&str::to_owned))
}

pub(super) fn alone<'a>(method: &Method<'a>) -> Chain<'a> {
    let frame = SourceFrame {
        method: SourceMethod::of(method),
        line: None,
    };
    without_synthesized(vec![frame])
}

/// A chain without its outermost frame where the compiler made that; what was inlined into it
/// stays.
pub(super) fn without_synthesized(mut chain: Chain) -> Chain {
    chain.pop_if(|outermost| outermost.method.synthesized);
    chain
}

/// Alternatives in order, each once: of two that differ in types alone, the first. No more than
/// anyone reads.
pub(super) fn sorted<'a>(chains: impl Iterator<Item = Chain<'a>>) -> Retraced<'a> {
    let mut all: Vec<Chain> = chains.take(MOST).collect();
    let key = |chain: &Chain<'a>| -> Vec<(&'a str, &'a str, Option<u32>)> {
        let frames = chain.iter();
        frames
            .map(|frame| (frame.method.class, frame.method.name, frame.line))
            .collect()
    };
    all.sort_by_key(key);
    all.dedup_by_key(|chain| key(chain));
    Retraced::Frames(all)
}
