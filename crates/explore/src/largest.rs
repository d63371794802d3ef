//! The largest objects, of all and of each class: found in one pass, without the lists of all objects.

use crate::answer::Table;
use crate::explorer::Explorer;
use crate::objects::ObjectRow;
use crate::top::Top;
use heaptap_analyze::histogram::HistogramKey;
use heaptap_analyze::label;
use heaptap_base::parallel;
use heaptap_model::heap_graph::ClassIndex;
use std::collections::HashMap;

/// Number of objects that are worth a second thread.
const WORTH: usize = 100_000;

/// The first rows of the lists of objects, in the order of retained bytes.
pub struct Largest {
    pub all: Table<ObjectRow>,
    /// By class name.
    pub of_class: Vec<(String, Table<ObjectRow>)>,
}

impl Explorer {
    fn table_of(&self, total: u64, top: Top) -> Table<ObjectRow> {
        let objects = top.into_sorted().into_iter();
        Table {
            total,
            rows: objects.map(|object| self.row(object)).collect(),
        }
    }

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
            dominators.part(range).for_each(|(object, retained)| {
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
        let rows = self.table(HistogramKey::Class).rows.iter();
        let counts: HashMap<&str, u64> = rows
            .map(|row| (row.name.as_str(), row.sums.count))
            .collect();
        let of_class = classes.iter().zip(of_class).map(|(name, top)| {
            let total = counts.get(name.as_str()).copied().unwrap_or(0);
            (name.clone(), self.table_of(total, top))
        });
        Largest {
            all: self.table_of(dominators.order().len() as u64, top),
            of_class: of_class.collect(),
        }
    }
}
