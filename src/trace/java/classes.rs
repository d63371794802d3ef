//! Classes of a dump out of the types of its chains: what the model keeps of them, and the chain
//! of fields by which references get their names.

use super::tables::{FieldName, NONE, Tables, UNDEFINED};
use crate::heap_graph::{Class, ClassIndex, FieldDecl, ObjectId};
use std::collections::HashMap;

/// The field by which a `java.lang.ref.Reference` refers to what it is about.
pub(super) const REFERENT: &str = "java.lang.ref.Reference.referent";

/// A field name, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    /// As it stands on the wire: `type declaring.class.field`.
    text: Box<str>,
    /// The class that declares it, where the dump has it.
    pub(super) declared_in: Option<ClassIndex>,
    /// Its name before it was obfuscated.
    pub(super) original: Option<Box<str>>,
    /// The same of its type.
    pub(super) original_type: Option<Box<str>>,
}

impl Name {
    pub(super) fn parts(&self) -> FieldName<'_> {
        FieldName::parse(&self.text)
    }
}

/// What names references.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Of all chains.
    pub(super) names: Vec<Name>,
    /// By class: its own fields in `fields`.
    own: Vec<(u32, u32)>,
    /// Numbers of names; [`NONE`] where the trace does not define one.
    fields: Vec<u32>,
    /// By class: the superclass of its type; [`NONE`] where it has none.
    supers: Vec<u32>,
    /// By class: whether references are named by the chain of its fields.
    named: Vec<bool>,
}

impl Names {
    /// Numbers of the names of a class's references, most specific class first. Ends where the
    /// chain does, or comes back to where it was.
    pub(super) fn of_class(&self, class: ClassIndex) -> impl Iterator<Item = u32> + '_ {
        let at = class.at();
        let first = self.named.get(at).is_some_and(|&named| named);
        let mut next = if first { at as u32 } else { NONE };
        // A chain of more links than there are classes goes in a circle.
        let mut left = self.supers.len();
        std::iter::from_fn(move || {
            if next == NONE || left == 0 {
                return None;
            }
            left -= 1;
            let now = next as usize;
            next = self.supers[now];
            let (from, to) = self.own[now];
            Some(&self.fields[from as usize..to as usize])
        })
        .flatten()
        .copied()
    }

    /// Whether a class's references are named by the fields of its types.
    pub(super) fn names_references(&self, class: ClassIndex) -> bool {
        self.named.get(class.at()).is_some_and(|&named| named)
    }
}

/// The classes of all chains, one after another, and their names of fields.
/// Also says which objects loaded them.
pub(super) fn build(chains: &[Tables]) -> (Vec<Class>, Names, Vec<(ClassIndex, ObjectId)>) {
    let mut classes = Vec::new();
    let mut loaders = Vec::new();
    let mut names = Names::default();
    for tables in chains {
        let (first, first_name) = (classes.len() as u32, names.names.len() as u32);
        names.names.extend(tables.names.iter().map(|text| Name {
            text: text.as_str().into(),
            declared_in: None,
            original: None,
            original_type: None,
        }));
        for one in &tables.types {
            let from = names.fields.len() as u32;
            names
                .fields
                .extend(one.fields.iter().map(|&id| match tables.name(id) {
                    NONE => NONE,
                    name => first_name + name,
                }));
            names.own.push((from, names.fields.len() as u32));
            let superclass = match one.superclass_id {
                0 => None,
                id => tables.known_type(id).map(|number| first + number),
            };
            names.supers.push(superclass.unwrap_or(NONE));
            names.named.push(one.names_references());
            if one.classloader_id != 0 {
                let class = ClassIndex(classes.len() as u32);
                loaders.push((class, ObjectId(one.classloader_id)));
            }
            let own = &names.fields[from as usize..];
            let fields = own.iter().filter(|&&name| name != NONE);
            classes.push(Class {
                name: match one.defined {
                    true => one.name.clone(),
                    false => UNDEFINED.to_owned(),
                },
                location: tables.location(one.location_id).map(str::to_owned),
                superclass: superclass.map(ClassIndex),
                kind: one.kind,
                instance_bytes: (one.object_size != 0).then_some(one.object_size),
                fields: fields
                    .map(|&name| {
                        let parts = names.names[name as usize].parts();
                        FieldDecl {
                            name: parts.field.to_owned(),
                            type_name: parts.type_name.map(str::to_owned),
                            ..FieldDecl::default()
                        }
                    })
                    .collect(),
                ..Class::default()
            });
        }
    }
    let by_name = by_name(&classes);
    for name in &mut names.names {
        name.declared_in = FieldName::parse(&name.text)
            .class
            .and_then(|class| by_name.get(class).copied());
    }
    (classes, names, loaders)
}

/// The first class of each name.
fn by_name(classes: &[Class]) -> HashMap<&str, ClassIndex> {
    let mut all = HashMap::with_capacity(classes.len());
    for (at, class) in classes.iter().enumerate() {
        all.entry(class.name.as_str())
            .or_insert(ClassIndex(at as u32));
    }
    all
}

/// The class that a type of class objects stands for, by its name: `X` of `java.lang.Class<X>`.
pub(super) fn behind(name: &str) -> Option<&str> {
    name.strip_prefix("java.lang.Class<")?.strip_suffix('>')
}

/// For each class whose type is one of class objects, the class they stand for: of the same name
/// and location, where the dump has it.
pub(super) fn stands_for(classes: &[Class]) -> Vec<Option<ClassIndex>> {
    let mut known: HashMap<(&str, Option<&str>), ClassIndex> = HashMap::new();
    for (at, class) in classes.iter().enumerate() {
        known
            .entry((class.name.as_str(), class.location.as_deref()))
            .or_insert(ClassIndex(at as u32));
    }
    let by_name = by_name(classes);
    let find = |class: &Class| {
        let name = behind(&class.name)?;
        let exact = known.get(&(name, class.location.as_deref()));
        exact.or_else(|| by_name.get(name)).copied()
    };
    classes.iter().map(find).collect()
}
