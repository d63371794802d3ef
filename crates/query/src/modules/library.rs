//! Macros and views of the library, written in SQL for heaptap.

use crate::table::{Catalog, LibraryMacro, MacroBody, View};

/// References that do not keep their target alive: referents of weak, finalizer and phantom
/// references.
const EXCLUDED: &str = "
    SELECT id
    FROM heap_graph_reference
    WHERE field_name = 'java.lang.ref.Reference.referent'
      AND owner_id IN (
        SELECT o.id FROM heap_graph_class c JOIN heap_graph_object o ON o.type_id = c.id
        WHERE c.kind IN (
          'KIND_WEAK_REFERENCE', 'KIND_FINALIZER_REFERENCE', 'KIND_PHANTOM_REFERENCE'))";

const VIEWS: [View; 3] = [
    View {
        name: "_ref_type_ids",
        module: Some("android.memory.heap_graph.excluded_refs"),
        about: "Reference classes that do not keep their referents alive.",
        sql: "SELECT id AS type_id FROM heap_graph_class
              WHERE kind IN ('KIND_WEAK_REFERENCE', 'KIND_FINALIZER_REFERENCE',
                             'KIND_PHANTOM_REFERENCE')",
    },
    View {
        name: "_excluded_refs",
        module: Some("android.memory.heap_graph.excluded_refs"),
        about: "References that do not keep their targets alive.",
        sql: EXCLUDED,
    },
    View {
        name: "_heap_graph_class_name_hash",
        module: Some("android.memory.heap_graph.helpers"),
        about: "Hash of each class name, equal for equal names.",
        sql: "SELECT id, hash(coalesce(deobfuscated_name, name, '')) AS name_hash
              FROM heap_graph_class",
    },
];

pub(super) const MACROS: [LibraryMacro; 8] = [
    LibraryMacro {
        name: "_tree_reachable_ancestors_or_self",
        module: Some("graphs.hierarchy"),
        about: "The given nodes of a tree and all their ancestors, without duplicates.",
        arguments: &["tree", "start_nodes"],
        body: MacroBody::Text(
            "(
          WITH RECURSIVE
            tree_above AS MATERIALIZED (SELECT id, parent_id FROM $tree),
            reached (id) AS (
              SELECT id FROM $start_nodes
              UNION
              SELECT t.parent_id FROM reached r JOIN tree_above t ON t.id = r.id
              WHERE t.parent_id IS NOT NULL)
          SELECT id FROM reached)",
        ),
    },
    LibraryMacro {
        name: "graph_next_sibling",
        module: Some("graphs.search"),
        about: "Nodes, each with its next sibling.",
        arguments: &["graph_table"],
        body: MacroBody::Text(
            "(
          SELECT node_id,
                 lead(node_id) OVER (PARTITION BY node_parent_id ORDER BY sort_key) AS next_node_id
          FROM $graph_table)",
        ),
    },
    LibraryMacro {
        name: "android_heap_graph_class_find_descendants",
        module: Some("android.memory.heap_graph.class_relationship"),
        about: "The given classes with all their descendants.",
        arguments: &["ancestor_class_ids"],
        body: MacroBody::Text(
            "(
          WITH RECURSIVE descends (id, ancestor_class_id) AS (
            SELECT id, id FROM $ancestor_class_ids
            UNION
            SELECT c.id, d.ancestor_class_id
            FROM descends d JOIN heap_graph_class c ON c.superclass_id = d.id)
          SELECT d.id, d.ancestor_class_id, c.name AS ancestor_class_name
          FROM descends d JOIN heap_graph_class c ON c.id = d.ancestor_class_id)",
        ),
    },
    LibraryMacro {
        name: "_callstacks_for_stack_profile_samples",
        module: Some("callstacks.stack_profile"),
        about: "Callstacks of the sampled callsites, including all callers.",
        arguments: &["spc_samples"],
        body: MacroBody::Text(
            "(
          SELECT f.id, f.parent_id, f.callsite_id, f.name, m.name AS mapping_name,
                 f.source_file, f.line_number, f.inlined, f.is_leaf_function_in_callsite_frame
          FROM _tree_reachable_ancestors_or_self!(
            _callstack_spc_forest,
            (SELECT leaf.id
             FROM $spc_samples sample
             JOIN _callstack_spc_forest leaf ON leaf.callsite_id = sample.callsite_id
             WHERE leaf.is_leaf_function_in_callsite_frame)) reached
          JOIN _callstack_spc_forest f ON f.id = reached.id
          JOIN stack_profile_mapping m ON m.id = f.mapping_id)",
        ),
    },
    LibraryMacro {
        name: "_callstacks_for_callsites",
        module: Some("callstacks.stack_profile"),
        about: "Callstacks, each with the number of samples that end in it.",
        arguments: &["samples"],
        body: MacroBody::Text(
            "(
          WITH sampled AS MATERIALIZED (
            SELECT callsite_id, count() AS self_count FROM $samples GROUP BY callsite_id)
          SELECT c.id, c.parent_id, c.name, c.mapping_name, c.source_file, c.line_number,
                 iif(c.is_leaf_function_in_callsite_frame, coalesce(s.self_count, 0), 0)
                   AS self_count
          FROM _callstacks_for_stack_profile_samples!(sampled) c
          LEFT JOIN sampled s ON s.callsite_id = c.callsite_id)",
        ),
    },
    LibraryMacro {
        name: "_callstacks_for_callsites_weighted",
        module: Some("callstacks.stack_profile"),
        about: "Callstacks, each with the sum of the values of samples that end in it.",
        arguments: &["samples"],
        body: MacroBody::Text(
            "(
          WITH sampled AS MATERIALIZED (
            SELECT callsite_id, sum(value) AS self_value FROM $samples GROUP BY callsite_id)
          SELECT c.id, c.parent_id, c.name, c.mapping_name, c.source_file, c.line_number,
                 iif(c.is_leaf_function_in_callsite_frame, coalesce(s.self_value, 0), 0)
                   AS self_value
          FROM _callstacks_for_stack_profile_samples!(sampled) c
          LEFT JOIN sampled s ON s.callsite_id = c.callsite_id)",
        ),
    },
    LibraryMacro {
        name: "_callstacks_self_to_cumulative",
        module: Some("callstacks.stack_profile"),
        about: "Callstacks, each with the sum of `self_count` over it and all callstacks below.",
        arguments: &["callstacks"],
        body: MacroBody::Text(
            "(
          WITH RECURSIVE
            given AS MATERIALIZED (SELECT id, parent_id, self_count FROM $callstacks),
            handed (id, self_count) AS (
              SELECT id, self_count FROM given WHERE self_count <> 0
              UNION ALL
              SELECT g.parent_id, h.self_count FROM handed h JOIN given g ON g.id = h.id
              WHERE g.parent_id IS NOT NULL)
          SELECT g.id, coalesce(sum(h.self_count), 0) AS cumulative_count
          FROM given g LEFT JOIN handed h ON h.id = g.id GROUP BY g.id)",
        ),
    },
    LibraryMacro {
        name: "_android_heap_profile_callstacks_for_allocations",
        module: Some("android.memory.heap_profile.callstacks"),
        about: "Callstacks, each with the unreleased and allocated memory of the given \
                allocations.",
        arguments: &["allocations"],
        body: MacroBody::Text(
            "(
          WITH sampled AS MATERIALIZED (
            SELECT callsite_id, sum(size) AS self_size, sum(count) AS self_count,
                   sum(alloc_size) AS self_alloc_size, sum(alloc_count) AS self_alloc_count
            FROM $allocations GROUP BY callsite_id)
          SELECT c.id, c.parent_id, c.name, c.mapping_name, c.source_file, c.line_number,
                 coalesce(s.self_size, 0) AS self_size, coalesce(s.self_count, 0) AS self_count,
                 coalesce(s.self_alloc_size, 0) AS self_alloc_size,
                 coalesce(s.self_alloc_count, 0) AS self_alloc_count
          FROM _callstacks_for_stack_profile_samples!(sampled) c
          LEFT JOIN sampled s ON s.callsite_id = c.callsite_id)",
        ),
    },
];

/// Modules without contents of their own.
const EMPTY: [&str; 3] = [
    "prelude.after_eof.memory",
    "android.memory.heap_graph.experimental_flamegraph",
    "android.memory.heap_graph.class_tree",
];

pub(super) fn add(catalog: &mut Catalog) {
    for module in EMPTY {
        catalog.module(module);
    }
    for one in MACROS {
        catalog.library_macro(one);
    }
    for view in VIEWS {
        catalog.view(view);
    }
}
