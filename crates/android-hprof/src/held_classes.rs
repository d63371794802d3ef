//! Classes that are held only by their own instances. An object keeps its class, and the class
//! keeps its loader with all classes of that loader: this is how a class loader leaks. Dumps do not
//! have that reference. A reference from every object would make the class the dominator of
//! everything, so instances refer to their class only if it is not reachable otherwise.

use heaptap_model::heap_graph::{ClassIndex, Follow, HeapGraph, ObjectIndex, Positions, Reachable};

/// Loaders that the runtime itself keeps.
const SYSTEM_LOADERS: [&str; 6] = [
    "java.lang.BootClassLoader",
    "jdk.internal.loader.ClassLoaders$AppClassLoader",
    "jdk.internal.loader.ClassLoaders$BootClassLoader",
    "jdk.internal.loader.ClassLoaders$PlatformClassLoader",
    "sun.misc.Launcher$AppClassLoader",
    "sun.misc.Launcher$ExtClassLoader",
];

/// Adds the references; returns by class whether its instances got one.
pub(super) fn hold(graph: &mut HeapGraph) -> Vec<bool> {
    let classes = graph.classes();
    let is_system = |loader: ObjectIndex| {
        let name = graph.class(graph.class_of(loader)).name.as_str();
        SYSTEM_LOADERS.contains(&name)
    };
    let may_leak =
        |class: &heaptap_model::heap_graph::Class| class.loader.is_some_and(|l| !is_system(l));
    if graph.roots().is_empty() || !classes.iter().any(may_leak) {
        return Vec::new();
    }
    let reached = Reachable::new(graph, Follow::default());
    let held = classes.iter().map(|class| {
        let object = class.object.filter(|_| may_leak(class));
        object.is_some_and(|object| !reached.contains(object))
    });
    let held: Vec<bool> = held.collect();
    let more = graph
        .objects()
        .filter(|&object| held[graph.class_of(object).at()])
        .count();
    let all = (graph.targets.len() + graph.referents.len()).saturating_add(more);
    if more == 0 || all >= u32::MAX as usize {
        return Vec::new();
    }
    insert(graph, &held, more);
    held
}

/// Moves references up, starting with the last, to make room for one more after those of each
/// instance.
fn insert(graph: &mut HeapGraph, held: &[bool], more: usize) {
    let mut end = graph.targets.len();
    graph.targets.reserve_exact(more);
    graph.targets.resize(end + more, ObjectIndex::NONE);
    let mut to = graph.targets.len();
    let mut starts = vec![0; graph.len() + 1];
    for object in (0..graph.len()).rev() {
        let class: ClassIndex = graph.class_of(ObjectIndex(object as u32));
        let from = graph.starts.get(object);
        starts[object + 1] = to as u32;
        if held[class.at()] {
            to -= 1;
            graph.targets[to] = graph.class(class).object.unwrap_or(ObjectIndex::NONE);
        }
        to -= end - from;
        graph.targets.copy_within(from..end, to);
        end = from;
    }
    graph.starts = Positions::from(&starts[..]);
}
