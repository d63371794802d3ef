//! Macros and views of the library, in SQL of our own.

use crate::query::table::{Catalog, View};

/// References that keep nothing: referents of weak, finalizer and phantom references.
const EXCLUDED: &str = "
    SELECT r.id
    FROM heap_graph_class c
    CROSS JOIN heap_graph_object o ON o.type_id = c.id
    CROSS JOIN heap_graph_reference r ON r.owner_id = o.id
    WHERE c.kind IN ('KIND_WEAK_REFERENCE', 'KIND_FINALIZER_REFERENCE', 'KIND_PHANTOM_REFERENCE')
      AND r.field_name = 'java.lang.ref.Reference.referent'";

const VIEWS: [View; 3] = [
    View {
        name: "_ref_type_ids",
        module: Some("android.memory.heap_graph.excluded_refs"),
        about: "Classes of references that do not keep what they refer to.",
        sql: "SELECT id AS type_id FROM heap_graph_class
              WHERE kind IN ('KIND_WEAK_REFERENCE', 'KIND_FINALIZER_REFERENCE',
                             'KIND_PHANTOM_REFERENCE')",
    },
    View {
        name: "_excluded_refs",
        module: Some("android.memory.heap_graph.excluded_refs"),
        about: "References that keep nothing.",
        sql: EXCLUDED,
    },
    View {
        name: "_heap_graph_class_name_hash",
        module: Some("android.memory.heap_graph.helpers"),
        about: "A number for the name of each class, equal for equal names.",
        sql: "SELECT id, hash(coalesce(deobfuscated_name, name, '')) AS name_hash
              FROM heap_graph_class",
    },
];

pub(super) fn add(catalog: &mut Catalog) {
    for view in VIEWS {
        catalog.view(view);
    }
}
