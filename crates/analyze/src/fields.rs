//! The fields of an object as the source code names them: deobfuscated where a mapping file
//! told, each with the class that declares it.

use heaptap_model::heap_graph::{ClassIndex, Field, FieldDecl, HeapGraph, ObjectIndex, Value};
use std::ops::ControlFlow;

/// A field with the name it had before it was obfuscated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NamedField<'a> {
    /// Its name; `None` for elements of arrays, and where the dump does not tell.
    pub name: Option<&'a str>,
    /// Index of the element, in arrays.
    pub element: Option<u32>,
    /// The class that declares it, where that is known.
    pub declared_in: Option<ClassIndex>,
    /// Whether it is a static of the class that this class object stands for.
    pub is_static: bool,
    /// The name of its type as Java writes it, where that is known.
    pub type_name: Option<&'a str>,
    /// What it holds.
    pub value: Value,
}

/// Hands out the fields of an object in the dump's order, until `each` breaks.
pub fn visit(
    graph: &HeapGraph,
    object: ObjectIndex,
    mut each: impl FnMut(NamedField<'_>) -> ControlFlow<()>,
) {
    // Fields come in declared order, so the nth of a class is its nth declaration. That tells
    // apart fields that an obfuscator gave one name.
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
