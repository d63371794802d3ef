//! The largest objects, of all and of each class: found in one pass, without the lists of all objects.

use crate::answer::Table;
use crate::explorer::Explorer;
use crate::objects::ObjectRow;
use heaptap_analyze::label;
use heaptap_model::heap_graph::{ClassIndex, ObjectIndex};
use heaptap_model::parallel;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Number of objects that are worth a second thread.
const WORTH: usize = 100_000;

/// The first rows of the lists of objects, in the order of retained bytes.
pub struct Largest {
    pub all: Table<ObjectRow>,
    /// By class name.
    pub of_class: Vec<(String, Table<ObjectRow>)>,
}

/// Objects of a list that are the largest so far; equal ones in the order of their IDs.
pub(crate) struct Top {
    most: usize,
    total: usize,
    /// At most twice as many as wanted, the others are removed at times.
    kept: Vec<(Reverse<u64>, ObjectIndex)>,
    /// Place of an object among the largest: none that comes later is one of them.
    last: (Reverse<u64>, ObjectIndex),
}

impl Top {
    pub(crate) fn new(most: usize) -> Top {
        Top {
            most,
            total: 0,
            kept: Vec::new(),
            last: (Reverse(0), ObjectIndex::NONE),
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, object: ObjectIndex, bytes: u64) {
        self.total += 1;
        let place = (Reverse(bytes), object);
        if place <= self.last && self.most > 0 {
            self.keep(place);
        }
    }

    #[cold]
    fn keep(&mut self, place: (Reverse<u64>, ObjectIndex)) {
        if self.kept.len() == 2 * self.most {
            let (_, &mut last, _) = self.kept.select_nth_unstable(self.most - 1);
            self.kept.truncate(self.most);
            self.last = last;
        }
        self.kept.push(place);
    }

    fn join(&mut self, other: Top) {
        self.total += other.total;
        self.kept.extend(other.kept);
    }

    /// Returns the number of all objects, and the largest ones in order.
    pub(crate) fn into_sorted(mut self) -> (usize, Vec<ObjectIndex>) {
        self.kept.sort_unstable();
        self.kept.truncate(self.most);
        let objects = self.kept.into_iter().map(|(_, object)| object);
        (self.total, objects.collect())
    }

    fn into_table(self, explorer: &Explorer) -> Table<ObjectRow> {
        let (total, objects) = self.into_sorted();
        Table {
            total: total as u64,
            rows: objects
                .into_iter()
                .map(|object| explorer.row(object))
                .collect(),
        }
    }
}

impl Explorer {
    /// Returns the first `all` rows of the list of all objects, and the first `each` of the lists of
    /// classes with these names.
    pub fn largest(&self, all: usize, classes: &[String], each: usize) -> Largest {
        let (graph, dominators) = (self.graph(), self.dominators());
        let places: HashMap<&str, usize> = classes.iter().map(String::as_str).zip(0..).collect();
        let place_of: Vec<Option<usize>> = (0..graph.classes().len() as u32)
            .map(|class| {
                let name = label::class_name(graph, ClassIndex(class));
                places.get(name).copied()
            })
            .collect();
        let parts = parallel::ranges(dominators.iter().len(), WORTH, |range| {
            let mut top = Top::new(all);
            let mut of_class: Vec<Top> = classes.iter().map(|_| Top::new(each)).collect();
            let part = dominators.iter().skip(range.start).take(range.len());
            part.for_each(|(object, retained)| {
                let bytes = retained.total_bytes();
                top.add(object, bytes);
                if let Some(place) = place_of[graph.class_of(object).at()] {
                    of_class[place].add(object, bytes);
                }
            });
            (top, of_class)
        });
        let joined = parts.into_iter().reduce(|(mut top, mut of_class), other| {
            top.join(other.0);
            for (one, other) in of_class.iter_mut().zip(other.1) {
                one.join(other);
            }
            (top, of_class)
        });
        let (top, of_class) = joined.expect("there is at least one range");
        let names = classes.iter().cloned();
        Largest {
            all: top.into_table(self),
            of_class: names
                .zip(of_class.into_iter().map(|top| top.into_table(self)))
                .collect(),
        }
    }
}
