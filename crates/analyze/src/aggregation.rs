//! Sums by class with the meaning of Perfetto's `android_heap_graph_class_aggregation`: over all
//! objects, over the reachable ones, and over everything that those dominate.

use heaptap_model::heap_graph::{ClassIndex, Dominators, HeapGraph, Retained};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassSums {
    pub class: ClassIndex,
    /// All instances.
    pub all: Retained,
    /// Reachable instances.
    pub reachable: Retained,
    /// Objects dominated by reachable instances, including those instances. Objects below another
    /// instance of the class count once.
    pub dominated: Retained,
    /// Whether the class is part of the core libraries or an array of primitives, and therefore
    /// does not describe the app by itself.
    pub is_libcore_or_array: bool,
}

/// Returns the sums of every class that has instances, in class order.
pub fn class_aggregation(graph: &HeapGraph, dominators: &Dominators) -> Vec<ClassSums> {
    let classes = graph.classes().len();
    let (mut all, mut reachable) = (
        vec![Retained::default(); classes],
        vec![Retained::default(); classes],
    );
    for object in graph.objects() {
        let class = graph.class_of(object).at();
        let own = Retained {
            count: 1,
            bytes: graph.shallow_bytes(object),
            native_bytes: graph.native_bytes(object),
        };
        all[class].add(own);
        if dominators.is_reachable(object) {
            reachable[class].add(own);
        }
    }
    let dominated = dominators.retained_by_class(graph);
    let classes = (0..classes as u32).map(ClassIndex);
    classes
        .filter(|class| all[class.at()].count > 0)
        .map(|class| ClassSums {
            class,
            all: all[class.at()],
            reachable: reachable[class.at()],
            dominated: dominated[class.at()],
            is_libcore_or_array: is_libcore_or_array(graph.class(class).shown()),
        })
        .collect()
}

/// Returns whether a class belongs to Java's or Kotlin's core libraries or to Android's
/// collections, or is an array of primitives, by Perfetto's list.
pub fn is_libcore_or_array(name: &str) -> bool {
    const PRIMITIVES: [&str; 8] = [
        "boolean[", "byte[", "char[", "double[", "float[", "int[", "long[", "short[",
    ];
    const LIBRARIES: [&str; 3] = ["j$.", "kotlinx.coroutines.", "kotlinx.atomicfu."];
    if name.starts_with("java.") {
        return !(name.starts_with("java.lang.Class<") && name.ends_with('>'));
    }
    let is_one_of = |all: &[&str]| all.iter().any(|start| name.starts_with(start));
    let is_collection = name
        .strip_prefix("android.util.")
        .is_some_and(|rest| rest.contains("Array"));
    is_one_of(&PRIMITIVES) || is_one_of(&LIBRARIES) || is_collection
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_arrays_are_told_from_the_app() {
        for (name, expected) in [
            ("java.lang.String", true),
            ("java.lang.Class", true),
            ("java.lang.Class<com.x.Main>", false),
            ("java.util.HashMap$Node[]", true),
            ("javax.crypto.Cipher", false),
            ("j$.util.Optional", true),
            ("int[]", true),
            ("long[][]", true),
            ("integers.Box", false),
            ("android.util.SparseArray", true),
            ("android.util.ArrayMap", true),
            ("android.util.Log", false),
            ("android.view.View[]", false),
            ("kotlinx.coroutines.JobImpl", true),
            ("kotlin.Lazy", false),
        ] {
            assert_eq!(is_libcore_or_array(name), expected, "{name}");
        }
    }
}
