//! Fields of an object by their source names, deobfuscated if an R8 mapping was applied, each with
//! the class that declares it.

use heaptap_model::heap_graph::{ClassIndex, Field, FieldDecl, HeapGraph, ObjectIndex, Value};
use std::ops::ControlFlow;

/// Field with its deobfuscated name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NamedField<'a> {
    /// Name; `None` for array elements, and if the dump does not contain it.
    pub name: Option<&'a str>,
    /// Array index of an element.
    pub element: Option<u32>,
    /// Declaring class, if known.
    pub declared_in: Option<ClassIndex>,
    /// Whether the field is a static of the class that this class object represents.
    pub is_static: bool,
    /// Name of the type in Java syntax, if known.
    pub type_name: Option<&'a str>,
    pub value: Value,
}

/// Calls `each` with the fields of an object in dump order until it breaks.
pub fn visit(
    graph: &HeapGraph,
    object: ObjectIndex,
    mut each: impl FnMut(NamedField<'_>) -> ControlFlow<()>,
) {
    // Fields come in declared order, so the nth of a class is its nth declaration. This separates
    // fields to which an obfuscator gave the same name.
    let (mut class, mut nth) = (None, 0);
    graph.contents().fields(graph, object, &mut |field| {
        if field.declared_in != class {
            (class, nth) = (field.declared_in, 0);
        }
        let declared = declaration(graph, &field, nth);
        nth += 1;
        let renamed = declared.and_then(|d| d.deobfuscated.as_deref());
        let told = declared.and_then(|d| d.type_name.as_deref());
        each(NamedField {
            name: renamed.or(field.name),
            element: field.element,
            declared_in: field.declared_in,
            is_static: field.is_static,
            type_name: field.type_name.or(told),
            value: field.value,
        })
    });
}

fn declaration<'a>(graph: &'a HeapGraph, field: &Field<'_>, nth: usize) -> Option<&'a FieldDecl> {
    let name = field.name?;
    let class = field.declared_in.filter(|_| !field.is_static)?;
    let declared = &graph.class(class).fields;
    let by_place = declared.get(nth).filter(|d| d.name == name);
    let basic = field.value.basic_type();
    by_place.or_else(|| {
        let fits = |d: &&FieldDecl| d.name == name && d.basic.is_none_or(|b| b == basic);
        declared.iter().find(fits)
    })
}
