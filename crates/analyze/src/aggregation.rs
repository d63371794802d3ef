//! Sums by class as Perfetto's `android_heap_graph_class_aggregation` has them: over all
//! objects, over those that roots reach, and over all that those dominate.

use heaptap_model::heap_graph::{ClassIndex, Dominators, HeapGraph};

/// Numbers and sizes of some objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Objects.
    pub count: u64,
    /// Their shallow sizes.
    pub bytes: u64,
    /// Native bytes that they own.
    pub native_bytes: u64,
}

/// The sums of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassSums {
    /// The class.
    pub class: ClassIndex,
    /// All its instances.
    pub all: Sums,
    /// Those that roots reach.
    pub reachable: Sums,
    /// All that those dominate, themselves included; what is below another instance of the class
    /// counts once.
    pub dominated: Sums,
    /// Of the core libraries, or an array of primitives: says nothing of the app by itself.
    pub is_libcore_or_array: bool,
}

impl Sums {
    fn add(&mut self, bytes: u64, native_bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.native_bytes = self.native_bytes.saturating_add(native_bytes);
    }
}

/// Sums of every class that has instances, in order of classes.
pub fn class_aggregation(graph: &HeapGraph, dominators: &Dominators) -> Vec<ClassSums> {
    let classes = graph.classes().len();
    let (mut all, mut reachable) = (
        vec![Sums::default(); classes],
        vec![Sums::default(); classes],
    );
    for object in graph.objects() {
        let class = graph.class_of(object).at();
        let (bytes, native) = (graph.shallow_bytes(object), graph.native_bytes(object));
        all[class].add(bytes, native);
        if dominators.is_reachable(object) {
            reachable[class].add(bytes, native);
        }
    }
    let dominated = dominators.retained_by_class(graph);
    let classes = (0..classes as u32).map(ClassIndex);
    classes
        .filter(|class| all[class.at()].count > 0)
        .map(|class| {
            let dominated = dominated[class.at()];
            ClassSums {
                class,
                all: all[class.at()],
                reachable: reachable[class.at()],
                dominated: Sums {
                    count: dominated.count,
                    bytes: dominated.bytes,
                    native_bytes: dominated.native_bytes,
                },
                is_libcore_or_array: is_libcore_or_array(graph.class(class).shown()),
            }
        })
        .collect()
}

/// Whether a class belongs to Java's and Kotlin's core libraries or Android's collections, or is
/// an array of primitives, by Perfetto's list.
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
