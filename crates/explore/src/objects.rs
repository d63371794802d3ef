//! Lists of objects.

use crate::answer::{Page, Size, Table};
use crate::explorer::Explorer;
use crate::lists::{ObjectList, ObjectSort};
use crate::ranking::largest_first;
use crate::top::Top;
use heaptap_analyze::{inspect, label};
use heaptap_model::heap_graph::{ObjectIndex, ObjectSet};
use serde::Serialize;
use std::sync::Arc;

/// Request for a part of a list.
#[derive(Debug, Clone)]
pub struct ObjectQuery {
    pub list: ObjectList,
    pub sort: ObjectSort,
    /// Smallest first.
    pub reverse: bool,
    pub page: Page,
}

/// Object in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObjectRow {
    /// ID in the dump, hexadecimal.
    pub id: String,
    /// Class; `class X` for class objects.
    pub name: String,
    /// Beginning of a string's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    pub shallow_bytes: u64,
    pub native_bytes: u64,
    /// `None` if the object is unreachable.
    pub retained: Option<Size>,
}

/// Maximum length of a text in a list, in characters.
const MAX_TEXT: usize = 120;

impl Explorer {
    /// Returns a part of a list.
    pub fn objects(&self, query: &ObjectQuery) -> Table<ObjectRow> {
        let (total, page) = match query.reverse {
            false => self.part(query, query.page),
            true => {
                let (total, _) = self.part(query, Page::new(0, 0));
                let (total, mut page) = self.part(query, query.page.reversed(total));
                page.reverse();
                (total, page)
            }
        };
        Table {
            total: total as u64,
            rows: page.into_iter().map(|object| self.row(object)).collect(),
        }
    }

    /// Returns the length of a list, and a page of it, largest first.
    fn part(&self, query: &ObjectQuery, page: Page) -> (usize, Vec<ObjectIndex>) {
        let dominators = self.dominators();
        let ranking = || self.ranking();
        let heap = (self.graph().as_ref(), dominators.as_ref());
        let of = |list: &[ObjectIndex]| (list.len(), page.of(list).to_vec());
        let is_shallow = query.sort == ObjectSort::Shallow;
        match &query.list {
            ObjectList::All if is_shallow => ranking().by_shallow(heap, page),
            ObjectList::All => of(ranking().all()),
            ObjectList::Class(name) if !ranking().has_class(name) => {
                let objects = ranking().of_class_in_any_run(name);
                match objects.is_empty() {
                    true => (0, objects),
                    false => of(&self.sorted(|| objects.iter().copied(), query)),
                }
            }
            ObjectList::Class(name) if is_shallow => ranking()
                .of_class_by_shallow(heap, name, page)
                .unwrap_or_else(|| {
                    of(&self.sorted(|| ranking().of_class(name).iter().copied(), query))
                }),
            ObjectList::Class(name) => of(ranking().of_class(name)),
            ObjectList::Dominated(object) => self.below_part(Some(*object), query, page),
            ObjectList::Top => self.below_part(None, query, page),
        }
    }

    pub(crate) fn row(&self, object: ObjectIndex) -> ObjectRow {
        let (graph, dominators) = (self.graph(), self.dominators());
        ObjectRow {
            id: graph.id(object).to_string(),
            name: label::object_name(graph, object).into_owned(),
            text: self.text(object, MAX_TEXT),
            shallow_bytes: graph.shallow_bytes(object),
            native_bytes: graph.native_bytes(object),
            retained: dominators
                .is_reachable(object)
                .then(|| dominators.retained(object).into()),
        }
    }

    /// Returns the text of a string, cut to that many characters.
    pub(crate) fn text(&self, object: ObjectIndex, most: usize) -> Option<String> {
        if !self.shows_contents() {
            return None;
        }
        let text = self.graph().contents().string(self.graph(), object)?;
        Some(inspect::cut(text, most))
    }

    /// Returns the number of objects below another one in the dominator tree, and a page of them: the first
    /// one without sorting all objects.
    fn below_part(
        &self,
        above: Option<ObjectIndex>,
        query: &ObjectQuery,
        page: Page,
    ) -> (usize, Vec<ObjectIndex>) {
        let below = || self.dominators().retained_below(above);
        if page.limit == 0 {
            return (below().count(), Vec::new());
        }
        if page.offset == 0 {
            let (mut top, mut total) = (Top::new(page.limit), 0);
            for (object, retained) in below() {
                let bytes = match query.sort {
                    ObjectSort::Retained => retained.total_bytes(),
                    ObjectSort::Shallow => self.graph().shallow_bytes(object),
                };
                top.add(object, bytes);
                total += 1;
            }
            return (total, top.into_sorted());
        }
        let all = self.sorted(|| below().map(|(object, _)| object), query);
        (all.len(), page.of(&all).to_vec())
    }

    /// Returns any list, sorted.
    fn sorted<Objects: Iterator<Item = ObjectIndex>>(
        &self,
        list: impl Fn() -> Objects,
        query: &ObjectQuery,
    ) -> Arc<Vec<ObjectIndex>> {
        let sorted = || {
            let mut objects = list().collect();
            ObjectSet::sort(self.graph().len(), &mut objects);
            largest_first(
                || objects.iter().copied(),
                |object| match query.sort {
                    ObjectSort::Retained => self.dominators().retained(object).total_bytes(),
                    ObjectSort::Shallow => self.graph().shallow_bytes(object),
                },
            )
        };
        self.sorted_lists().get((&query.list, query.sort), sorted)
    }
}
