//! Output of `leaks --json`. Fields are a contract: docs/reference/formats.md lists them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::heaps::java::facts::HeapFacts;
use heaptap_analyze::growth::Growth;
use heaptap_analyze::leaks::{LeakGroup, Leaks, Unheld};
use heaptap_analyze::waste::Waste;
use heaptap_model::heap_graph::{Dominators, Retained};

#[derive(Debug, Clone, Serialize)]
pub struct LeaksDocument {
    /// Dumps, oldest first; all findings except growth are about the last one.
    pub heaps: Vec<HeapFacts>,
    /// Notes about the series.
    pub notes: Vec<String>,
    /// Leaks; null if not requested.
    pub leaks: Option<LeaksRows>,
    /// Waste; null if not requested.
    pub waste: Option<Waste>,
    /// Growth; null unless two dumps are complete.
    pub growth: Option<Growth>,
}

#[derive(Debug, Clone, Serialize)]
pub struct LeaksRows {
    /// Number of leaking objects.
    pub objects: u64,
    /// Their retained bytes.
    #[serde(rename = "retained")]
    pub kept: Retained,
    /// Number of groups; `groups` can be truncated.
    pub groups_total: u64,
    /// Number of those that are known leaks, which are not the app's; they come last.
    pub groups_known: u64,
    /// Number of groups that the filter hides.
    pub groups_hidden: u64,
    /// Leaks by cause and class.
    pub groups: Vec<LeakGroup>,
    /// Objects whose lifecycle has ended and that no lasting reference in the dump holds.
    #[serde(rename = "unreachable")]
    pub unheld: Vec<Unheld>,
    /// `Build.VERSION.SDK_INT`.
    pub sdk: Option<i64>,
    /// `Build.MANUFACTURER`.
    pub manufacturer: Option<String>,
    /// Questions that the dump cannot answer.
    #[serde(rename = "not_analyzed")]
    pub untold: Vec<String>,
}

/// Returns the leaks of a heap, each list truncated to `limit`.
pub(crate) fn leaks(
    found: &Leaks,
    hidden: usize,
    dominators: Option<&Dominators>,
    earlier: Option<&BTreeMap<(String, String), u64>>,
    limit: usize,
) -> LeaksRows {
    let mut kept = Retained::default();
    for group in &found.groups {
        kept.add(group.kept);
    }
    let group = |group: &LeakGroup| {
        let key = (group.signature.clone(), group.class.clone());
        let mut group = group.clone();
        group.count_before = earlier.map(|all| all.get(&key).copied().unwrap_or(0));
        if let Some(dominators) = dominators {
            for leak in &group.leaks {
                group.dominated.add(dominators.retained(leak.object));
            }
        }
        group.leaks.truncate(limit);
        group
    };
    LeaksRows {
        objects: found.groups.iter().map(|group| group.count).sum(),
        kept,
        groups_total: found.groups.len() as u64,
        groups_known: found.groups.iter().filter(|g| g.library.is_some()).count() as u64,
        groups_hidden: hidden as u64,
        groups: found.groups.iter().take(limit).map(group).collect(),
        unheld: found.unheld.clone(),
        sdk: found.sdk,
        manufacturer: found.manufacturer.clone(),
        untold: found.untold.clone(),
    }
}
