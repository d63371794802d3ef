//! Class loaders that load what another one has loaded already: a plugin, a script or a test that
//! was restarted while its previous instance is still held, with all its classes and statics.

use std::collections::{BTreeMap, BTreeSet};

use super::parts::Scope;
use heaptap_model::heap_graph::{ObjectId, ObjectIndex};

/// Class loader whose classes exist a second time.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RepeatedLoader {
    #[serde(skip)]
    pub object: ObjectIndex,
    /// ID in the dump.
    pub id: ObjectId,
    /// Display name of its class.
    pub class: String,
    /// Number of classes that it loaded.
    pub classes: u64,
    /// Number of those classes that another loader loaded too.
    pub repeated: u64,
    /// One of those classes.
    pub example: String,
    /// Name of a holder.
    pub held_by: Option<String>,
}

/// Returns loaders that repeat each other, most classes first.
pub(super) fn find(scope: &Scope<'_>, limit: usize) -> Vec<RepeatedLoader> {
    let graph = scope.graph;
    let mut by_name: BTreeMap<&str, BTreeSet<ObjectIndex>> = BTreeMap::new();
    let mut by_loader: BTreeMap<ObjectIndex, Vec<&str>> = BTreeMap::new();
    for class in graph.classes() {
        // Hidden classes are created for each lambda and differ.
        let hidden = class.shown().contains("$$Lambda") || class.shown().contains("LambdaForm");
        let (Some(object), Some(loader)) = (class.object, class.loader) else {
            continue;
        };
        if class.is_array() || hidden || !scope.counts(object) || !scope.counts(loader) {
            continue;
        }
        by_name.entry(class.shown()).or_default().insert(loader);
        by_loader.entry(loader).or_default().push(class.shown());
    }
    let mut all: Vec<RepeatedLoader> = by_loader
        .into_iter()
        .filter_map(|(loader, classes)| {
            let repeats = |name: &&&str| by_name.get(**name).is_some_and(|l| l.len() > 1);
            let repeated = classes.iter().filter(repeats).count() as u64;
            let example = classes.iter().find(repeats)?;
            Some(RepeatedLoader {
                object: loader,
                id: graph.id(loader),
                class: graph.class(graph.class_of(loader)).shown().to_owned(),
                classes: classes.len() as u64,
                repeated,
                example: (*example).to_owned(),
                held_by: None,
            })
        })
        .collect();
    all.sort_by_key(|row| (std::cmp::Reverse(row.repeated), row.object));
    all.truncate(limit);
    all
}
