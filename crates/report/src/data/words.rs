//! Texts that rows name by place, each kept once.

use std::collections::HashMap;

/// Most texts: there are a dozen reasons and collectors, and a foreign file could have any.
const MOST: usize = 1000;
/// Longest of them, characters.
const LONGEST: usize = 120;

/// The texts; the first is the empty one.
pub(super) struct Words {
    all: Vec<String>,
    places: HashMap<String, usize>,
}

impl Default for Words {
    fn default() -> Self {
        Words {
            all: vec![String::new()],
            places: HashMap::from([(String::new(), 0)]),
        }
    }
}

impl Words {
    /// Where a text stands.
    pub(super) fn place(&mut self, text: &str) -> usize {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let cut: String = text.chars().take(LONGEST).collect();
        if cut != text {
            return self.place(&cut);
        }
        if self.all.len() >= MOST {
            return self.other();
        }
        self.all.push(cut.clone());
        self.places.insert(cut, self.all.len() - 1);
        self.all.len() - 1
    }

    /// What stands for those that are too many.
    fn other(&mut self) -> usize {
        const OTHER: &str = "(other)";
        if let Some(place) = self.places.get(OTHER) {
            return *place;
        }
        self.all.push(OTHER.to_owned());
        self.places.insert(OTHER.to_owned(), self.all.len() - 1);
        self.all.len() - 1
    }

    /// All of them.
    pub(super) fn into_all(self) -> Vec<String> {
        self.all
    }
}
