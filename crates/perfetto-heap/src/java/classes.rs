//! Classes of a dump, built from the types of its chains: the classes of the model, and the chain
//! of fields from which references get their names.

use super::tables::{FieldName, NONE, Tables, UNDEFINED};
use heaptap_base::units::Allowance;
use heaptap_model::heap_graph::{
    Class, ClassIndex, ClassKind, FieldDecl, Losses, ObjectId, upwards,
};
use heaptap_model::profile::index::FastHash;
use std::collections::HashMap;

/// The field with the target of a `java.lang.ref.Reference`.
pub(super) const REFERENT: &str = "java.lang.ref.Reference.referent";

/// A field name and its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    /// Name in the trace: `type declaring.class.field`.
    text: Box<str>,
    /// The class that declares it, if the dump has that class.
    pub(super) declared_in: Option<ClassIndex>,
    /// The original class and name before obfuscation.
    pub(super) original: Option<(Box<str>, Box<str>)>,
    /// The original name of its type.
    pub(super) original_type: Option<Box<str>>,
}

impl Name {
    pub(super) fn parts(&self) -> FieldName<'_> {
        FieldName::parse(&self.text)
    }
}

/// Names of references.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Names of all chains.
    pub(super) names: Vec<Name>,
    /// Range of each class's own fields in `fields`.
    own: Vec<(u32, u32)>,
    /// Numbers of names; [`NONE`] if the trace does not define one.
    fields: Vec<u32>,
    /// Superclass of each class's type; [`NONE`] if absent.
    supers: Vec<u32>,
    /// Marks the classes whose references are named by the chain of fields.
    named: Vec<bool>,
}

impl Names {
    /// Returns the numbers of the names of a class's references, most specific class first. Ends
    /// with the chain, at the depth limit, or at a cycle.
    pub(super) fn of_class(&self, class: ClassIndex) -> impl Iterator<Item = u32> + '_ {
        self.chain(class)
            .flat_map(|at| self.own_fields(at))
            .copied()
    }

    /// Returns the classes whose fields name a class's references, most specific first.
    fn chain(&self, class: ClassIndex) -> impl Iterator<Item = usize> + '_ {
        let first = Some(class.at()).filter(|_| self.names_references(class));
        let above = |at: usize| match self.supers[at] {
            NONE => None,
            superclass => Some(superclass as usize),
        };
        first.into_iter().flat_map(move |at| upwards(at, above))
    }

    fn own_fields(&self, class: usize) -> &[u32] {
        let (from, to) = self.own[class];
        &self.fields[from as usize..to as usize]
    }

    /// Returns the number of names that each class gives to references; `None` if it gives none.
    /// Fields are counted once, regardless of the number of subclasses.
    pub(super) fn counts(&self) -> Vec<Option<u32>> {
        let own: Vec<u32> = (0..self.own.len())
            .map(|at| self.own_fields(at).iter().filter(|&&n| n != NONE).count() as u32)
            .collect();
        let of_class = |class| {
            let all = self.chain(class).map(|at| own[at]);
            let named = self.names_references(class);
            named.then(|| all.fold(0, u32::saturating_add))
        };
        (0..self.own.len() as u32)
            .map(|class| of_class(ClassIndex(class)))
            .collect()
    }

    /// Marks the names that are `Reference.referent`.
    pub(super) fn referents(&self) -> Vec<bool> {
        let names = self.names.iter();
        names.map(|n| n.parts().qualified == REFERENT).collect()
    }

    /// Returns the position of `Reference.referent` among the references of each class, given the
    /// names that denote it. Fields are searched once, regardless of the number of subclasses.
    pub(super) fn positions_of_referent(&self, referents: &[bool]) -> Vec<Option<u32>> {
        let own: Vec<Option<u32>> = (0..self.own.len())
            .map(|at| position_of_referent(self.own_fields(at), referents))
            .collect();
        let of_class = |class| {
            let mut before = 0u32;
            for at in self.chain(class) {
                if let Some(position) = own[at] {
                    return before.checked_add(position);
                }
                before = before.checked_add(self.own_fields(at).len() as u32)?;
            }
            None
        };
        (0..self.own.len() as u32)
            .map(|class| of_class(ClassIndex(class)))
            .collect()
    }

    /// Returns whether a class's references are named by the fields of its types.
    pub(super) fn names_references(&self, class: ClassIndex) -> bool {
        self.named.get(class.at()).is_some_and(|&named| named)
    }
}

/// Returns the position of `Reference.referent` in a list of names, given the names that denote it.
pub(super) fn position_of_referent(list: &[u32], referents: &[bool]) -> Option<u32> {
    let is_referent = |&name: &u32| referents.get(name as usize).is_some_and(|&is| is);
    list.iter().position(is_referent).map(|at| at as u32)
}

/// Returns the classes of all chains, one chain after another, their names of fields, and the
/// objects that loaded them. Fields and locations, which many classes can share, are kept up to the
/// memory limit.
pub(super) fn build(
    chains: &[Tables],
    allowance: &mut Allowance,
    losses: &mut Losses,
) -> (Vec<Class>, Names, Vec<(ClassIndex, ObjectId)>) {
    let mut left_out = 0u64;
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
            let fields = fields.take_while(|&&name| {
                let cost = size_of::<FieldDecl>() + names.names[name as usize].text.len();
                let is_paid = allowance.take(cost);
                left_out += u64::from(!is_paid);
                is_paid
            });
            let fields: Vec<&u32> = fields.collect();
            let location = tables.location(one.location_id);
            let location = location.filter(|location| {
                let is_paid = allowance.take(location.len());
                left_out += u64::from(!is_paid);
                is_paid
            });
            classes.push(Class {
                name: match one.defined {
                    true => one.name.clone(),
                    false => UNDEFINED.to_owned(),
                },
                location: location.map(str::to_owned),
                superclass: superclass.map(ClassIndex),
                kind: one.kind,
                instance_bytes: (one.object_size != 0).then_some(one.object_size),
                fields: fields
                    .into_iter()
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
    if left_out > 0 {
        losses.malformed += 1;
        losses.note(format!(
            "memory limit for a dump of this size exceeded; \
             left out field lists or locations: {left_out}"
        ));
    }
    let by_name = by_name(&classes);
    for name in &mut names.names {
        name.declared_in = FieldName::parse(&name.text)
            .class
            .and_then(|class| by_name.get(class).copied());
    }
    (classes, names, loaders)
}

/// Returns the first class of each name.
fn by_name(classes: &[Class]) -> HashMap<&str, ClassIndex, FastHash> {
    let mut all = HashMap::with_capacity_and_hasher(classes.len(), FastHash::default());
    for (at, class) in classes.iter().enumerate() {
        all.entry(class.name.as_str())
            .or_insert(ClassIndex(at as u32));
    }
    all
}

/// Returns the kind of a class of references by its name.
pub(super) fn kind_of_reference(name: &str) -> ClassKind {
    match name.rsplit(['.', '$']).next().unwrap_or(name) {
        name if name.contains("Weak") => ClassKind::WeakReference,
        name if name.contains("Soft") => ClassKind::SoftReference,
        "FinalizerReference" | "FinalReference" => ClassKind::FinalizerReference,
        name if name.contains("Phantom") || name.contains("Cleaner") => ClassKind::PhantomReference,
        _ => ClassKind::WeakReference,
    }
}

/// Returns the classes that have class objects, but no type.
pub(super) fn without_types(classes: &[Class]) -> Vec<Class> {
    let stand_for = stands_for(classes);
    let objects = classes.iter().zip(stand_for);
    let missing = objects.filter(|(_, found)| found.is_none());
    let class = |class: &Class| {
        Some(Class {
            name: behind(&class.name)?.to_owned(),
            location: class.location.clone(),
            ..Class::default()
        })
    };
    missing.filter_map(|(of, _)| class(of)).collect()
}

/// Returns the class that a type of class objects represents, by its name: `X` of
/// `java.lang.Class<X>`.
pub(super) fn behind(name: &str) -> Option<&str> {
    name.strip_prefix("java.lang.Class<")?.strip_suffix('>')
}

/// Returns, for each class whose type is one of class objects, the class they represent: one with
/// the same name and location, if the dump has it.
pub(super) fn stands_for(classes: &[Class]) -> Vec<Option<ClassIndex>> {
    let mut known = HashMap::with_capacity_and_hasher(classes.len(), FastHash::default());
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
