//! All paths from the objects of a class to roots, merged by class and field.

use crate::answer::Table;
use crate::explorer::Explorer;
use heaptap_analyze::holders::{Holders, KindedReferrers, Reading, Search};
use heaptap_analyze::label;
use heaptap_model::heap_graph::{ClassIndex, ObjectSet};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Objects of one class that refer by one field to those of the row above.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HolderRow {
    /// Index of the row whose objects they refer to; `None` for those that refer to the class.
    pub above: Option<u32>,
    /// The reference; the class where it is not known.
    pub name: String,
    pub count: u64,
    /// Why they are roots; `None` if they are none.
    pub root: Option<String>,
}

/// Maximum number of rows of a class: the nearest ones, so that one with many holders does not displace
/// others.
const MAX_ROWS: usize = 300;

/// Maximum number of classes whose objects are found in one pass: a set of objects for each.
const MAX_SETS: usize = 8;

impl Explorer {
    /// Reverses the references, each with its kind, for [`Explorer::holders_of`] of several classes.
    /// [`Explorer::referrers_of`] needs the same.
    pub fn kinded_referrers(&self) -> KindedReferrers<'_> {
        let mut kinded = None;
        let referrers = self.referrers_by(|paths| {
            let (graph, follow) = (self.graph(), self.follow());
            let new = KindedReferrers::new(graph, follow, Reading::Ahead, Some(paths));
            Arc::clone(kinded.insert(new).referrers())
        });
        let known = Arc::clone(referrers);
        kinded.unwrap_or_else(|| KindedReferrers::over(self.graph(), self.follow(), known))
    }

    /// Returns the holders of a class: as [`Explorer::holders_of`] does.
    pub fn holders(&self, class: &str) -> Table<HolderRow> {
        let referrers = Arc::clone(self.referrers());
        let kinded = KindedReferrers::over(self.graph(), self.follow(), referrers);
        let mut found = self.holders_of(kinded, &[class.to_owned()]);
        let (_, table) = found.pop().expect("each class has a table");
        table
    }

    /// Returns the holders of classes. Names with addresses match without them, as in comparisons.
    pub fn holders_of(&self, referrers: KindedReferrers<'_>, classes: &[String]) -> Vec<HeldClass> {
        let graph = self.graph();
        let mut search = Search::new(referrers, self.reachable());
        let mut found: Vec<HeldClass> = Vec::new();
        for part in classes.chunks(MAX_SETS) {
            let mut places: HashMap<Cow<'_, str>, usize> = HashMap::new();
            for (name, place) in part.iter().zip(0..) {
                places.entry(label::without_address(name)).or_insert(place);
            }
            let place_of = |class| {
                let name = label::class_name(graph, ClassIndex(class));
                places.get(&label::without_address(name)).copied()
            };
            let place_of: Vec<Option<usize>> =
                (0..graph.classes().len() as u32).map(place_of).collect();
            let mut sets: Vec<ObjectSet> = Vec::new();
            sets.resize_with(part.len(), || ObjectSet::new(graph.len()));
            for object in graph.objects() {
                if let Some(place) = place_of[graph.class_of(object).at()] {
                    sets[place].insert(object);
                }
            }
            let first = found.len();
            for (name, objects) in part.iter().zip(sets) {
                let place = places[&label::without_address(name)];
                let table = match found.get(first + place) {
                    Some((_, same)) => same.clone(),
                    None => table(&search.holders(name, objects), self.shows_contents()),
                };
                found.push((name.clone(), table));
            }
        }
        found
    }
}

/// Holders of a class, by its name.
pub type HeldClass = (String, Table<HolderRow>);

fn table(holders: &Holders, texts: bool) -> Table<HolderRow> {
    let mut rows = Vec::new();
    // The first node contains the objects themselves.
    let mut queue: VecDeque<(usize, Option<u32>)> = holders
        .nodes
        .first()
        .into_iter()
        .flat_map(|first| first.holders.iter().map(|&at| (at, None)))
        .collect();
    while let Some((at, above)) = queue.pop_front() {
        if rows.len() == MAX_ROWS {
            break;
        }
        let node = &holders.nodes[at];
        let place = rows.len() as u32;
        rows.push(HolderRow {
            above,
            name: match &node.link {
                Some(link) => link.to_string(),
                None => node.name.clone(),
            },
            count: node.count,
            root: (node.roots.first()).map(|(reason, _)| reason.clone().in_words(texts)),
        });
        queue.extend(node.holders.iter().map(|&next| (next, Some(place))));
    }
    // The first node is not one of the rows.
    let total = holders.nodes.len().saturating_sub(1) as u64;
    Table { total, rows }
}
