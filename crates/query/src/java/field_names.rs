//! Names of fields as `heaptap_field` takes them. Refuses those of no class: otherwise a misspelled
//! name would be NULL for every object, and a check would look clean.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::sync::Mutex;

use super::heaps::Heaps;
use heaptap_base::parallel::lock;
use heaptap_base::suggest::nearest;
use heaptap_model::heap_graph::{Class, ClassIndex, FieldDecl};

/// Element count of an array, which is not a field.
pub(super) const LENGTH: &str = "length";

/// A name: `field` or `Class.field`.
pub(super) struct FieldName<'a> {
    class: Option<&'a str>,
    field: &'a str,
}

impl<'a> FieldName<'a> {
    pub(super) fn parse(name: &'a str) -> FieldName<'a> {
        match name.rsplit_once('.') {
            Some((class, field)) => FieldName {
                class: Some(class),
                field,
            },
            None => FieldName {
                class: None,
                field: name,
            },
        }
    }

    /// Returns whether this is the name of a field that `class` declares.
    pub(super) fn is(&self, class: Option<&Class>, field: &str) -> bool {
        field == self.field
            && self
                .class
                .is_none_or(|of| class.is_some_and(|class| class.name == of || class.shown() == of))
    }

    /// Returns the name to suggest: the field of a class of that name, even without its package, or
    /// of its superclass, otherwise the most similar one.
    fn suggestion(&self, heaps: &Heaps, name: &str) -> Option<String> {
        let is_of = |class: &Class, of: &str| {
            let rest = class.shown().strip_suffix(of);
            class.name == of
                || rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(['.', '$']))
        };
        for graph in heaps.all().iter().map(|heap| &heap.graph) {
            let classes = graph.classes().iter().zip(0..);
            let classes =
                classes.filter(|(class, _)| self.class.is_some_and(|of| is_of(class, of)));
            for above in classes.flat_map(|(_, at)| graph.ancestry(ClassIndex(at))) {
                let class = graph.class(above);
                if class.fields.iter().any(|field| shown(field) == self.field) {
                    return Some(format!("{}.{}", class.shown(), self.field));
                }
            }
        }
        // Only names of a similar length can be similar, and a dump can have long ones.
        let is_close = |length: usize| length.abs_diff(name.len()) <= 1 + name.len() / 4;
        let mut names = BTreeSet::new();
        let _ = each_field(heaps, &mut |class, field| {
            let class = class.filter(|_| self.class.is_some()).map(Class::shown);
            let length = class.map_or(0, |class| class.len() + 1) + field.len();
            if is_close(length) {
                names.insert(match class {
                    Some(class) => format!("{class}.{field}"),
                    None => field.to_owned(),
                });
            }
            ControlFlow::Continue(())
        });
        nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
    }
}

/// Names that statements have asked for and that a class has. Only the first object without the
/// field pays for the search.
#[derive(Default)]
pub(super) struct KnownNames(Mutex<HashSet<String>>);

impl KnownNames {
    /// Checks the name of a field that an object does not have.
    ///
    /// # Errors
    /// Returns the message if no class of any heap declares a field of that name.
    pub(super) fn check(&self, heaps: &Heaps, name: &str) -> Result<(), String> {
        let mut known = lock(&self.0);
        // Tables have such names for elements, and for references that are not fields.
        let is_within = |first, last| name.starts_with(first) && name.ends_with(last);
        let is_other = name == LENGTH || is_within('[', ']') || is_within('<', '>');
        if is_other || known.contains(name) {
            return Ok(());
        }
        let wanted = FieldName::parse(name);
        let found = each_field(heaps, &mut |class, field| match wanted.is(class, field) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        if found.is_break() {
            known.insert(name.to_owned());
            return Ok(());
        }
        let near = wanted.suggestion(heaps, name);
        let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        Err(format!(
            "heaptap_field: no class has the field `{name}`{near}"
        ))
    }
}

fn shown(field: &FieldDecl) -> &str {
    field.deobfuscated.as_deref().unwrap_or(&field.name)
}

/// Passes the fields of all classes, also static ones, with the class that declares them.
fn each_field(
    heaps: &Heaps,
    visit: &mut dyn FnMut(Option<&Class>, &str) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for graph in heaps.all().iter().map(|heap| &heap.graph) {
        for class in graph.classes() {
            for field in &class.fields {
                visit(Some(class), shown(field))?;
            }
            let mut flow = ControlFlow::Continue(());
            if let Some(object) = class.object {
                graph.contents().fields(graph, object, &mut |field| {
                    let class = field.declared_in.map(|class| graph.class(class));
                    flow = field.name.map_or(flow, |name| visit(class, name));
                    flow
                });
            }
            flow?;
        }
    }
    ControlFlow::Continue(())
}
