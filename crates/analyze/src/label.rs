//! Display names of classes, packages and objects, the same for all dump formats.

use heaptap_model::heap_graph::{ClassIndex, HeapGraph, ObjectIndex};
use std::borrow::Cow;

/// Class of all class objects.
pub const CLASS: &str = "java.lang.Class";
/// Package name for arrays of primitives.
pub const PRIMITIVES: &str = "(arrays of primitives)";
/// Package name for classes without a package.
pub const NO_PACKAGE: &str = "(no package)";

/// Returns the name by which a class's objects are grouped. A heap graph has a type
/// `java.lang.Class<X>` for each class object; they all belong to one class.
pub fn class_name(graph: &HeapGraph, class: ClassIndex) -> &str {
    let name = graph.class(class).shown();
    match represented(name) {
        Some(_) => CLASS,
        None => name,
    }
}

/// Returns `X` of `java.lang.Class<X>`.
pub fn represented(name: &str) -> Option<&str> {
    let inner = name.strip_prefix(CLASS)?;
    inner.strip_prefix('<')?.strip_suffix('>')
}

/// Returns the name of the class that a class object represents; `None` for other objects.
pub fn class_behind(graph: &HeapGraph, object: ObjectIndex) -> Option<&str> {
    let class = graph.class_of(object);
    match graph.class_behind(object) {
        Some(class) => Some(graph.class(class).shown()),
        None => represented(graph.class(class).shown()),
    }
}

/// Returns by class whether its instances are class objects.
pub fn is_class(graph: &HeapGraph) -> Vec<bool> {
    let classes = 0..graph.classes().len() as u32;
    classes
        .map(|class| class_name(graph, ClassIndex(class)) == CLASS)
        .collect()
}

pub fn class_objects(graph: &HeapGraph) -> impl Iterator<Item = ObjectIndex> {
    let is_class = is_class(graph);
    let objects = graph.objects();
    objects.filter(move |&object| is_class[graph.class_of(object).at()])
}

/// Returns the display name of an object: its class, or `class X` for the class object of `X`.
pub fn object_name(graph: &HeapGraph, object: ObjectIndex) -> Cow<'_, str> {
    match class_behind(graph, object) {
        Some(name) => Cow::Owned(format!("class {name}")),
        None => Cow::Borrowed(graph.class(graph.class_of(object)).shown()),
    }
}

/// Returns whether a class name is that of a platform collection or a part of one.
pub fn is_collection(name: &str) -> bool {
    [
        "java.util.",
        "android.util.",
        "androidx.collection.",
        "kotlin.collections.",
    ]
    .iter()
    .any(|package| name.starts_with(package))
}

/// Returns the package of a class name; for an array, that of its elements.
pub fn package(name: &str) -> &str {
    let element = name.trim_end_matches("[]");
    match element.rsplit_once('.') {
        Some((package, _)) => package,
        None if element.len() < name.len() && is_primitive(element) => PRIMITIVES,
        None => NO_PACKAGE,
    }
}

/// Returns whether a type name is that of a primitive.
pub(crate) fn is_primitive(name: &str) -> bool {
    matches!(
        name,
        "boolean" | "byte" | "char" | "short" | "int" | "long" | "float" | "double"
    )
}

/// Returns a class name without the part that differs from run to run: the address in the name of a
/// hidden class (`Foo$$Lambda$2+0x00007f02c10052e0`, `Foo$$Lambda/0x0000000800c03800`,
/// `Foo$$Lambda$1/834600351`).
pub fn without_address(name: &str) -> Cow<'_, str> {
    let element = name.trim_end_matches("[]");
    let dimensions = &name[element.len()..];
    let Some(at) = element.rfind(['+', '/']) else {
        return Cow::Borrowed(name);
    };
    let suffix = &element[at + 1..];
    let hexadecimal = suffix
        .strip_prefix("0x")
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit()));
    let decimal = element.as_bytes()[at] == b'/'
        && !suffix.is_empty()
        && suffix.bytes().all(|b| b.is_ascii_digit());
    match hexadecimal || decimal {
        true if dimensions.is_empty() => Cow::Borrowed(&name[..at]),
        true => Cow::Owned(format!("{}{dimensions}", &name[..at])),
        false => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_those_of_elements() {
        for (name, of) in [
            ("java.lang.String", "java.lang"),
            ("java.lang.String[][]", "java.lang"),
            ("byte[]", PRIMITIVES),
            ("A", NO_PACKAGE),
            ("A[]", NO_PACKAGE),
            ("byte", NO_PACKAGE),
            ("", NO_PACKAGE),
        ] {
            assert_eq!(package(name), of, "{name}");
        }
    }

    #[test]
    fn addresses_of_hidden_classes_are_folded() {
        for (name, folded) in [
            ("a.B$$Lambda$2+0x00007f02c10052e0", "a.B$$Lambda$2"),
            ("a.B$$Lambda/0x00007f02c10052e0", "a.B$$Lambda"),
            ("a.B$$Lambda$1/834600351", "a.B$$Lambda$1"),
            ("a.B$$Lambda$2+0x1f[][]", "a.B$$Lambda$2[][]"),
            ("a.B+C", "a.B+C"),
            ("a.B+12", "a.B+12"),
            ("a.B+0x", "a.B+0x"),
            ("a.B", "a.B"),
        ] {
            assert_eq!(without_address(name), folded, "{name}");
        }
    }
}
