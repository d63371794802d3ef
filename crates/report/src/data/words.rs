//! Unique texts that rows refer to by index.

use std::collections::HashMap;

/// Maximum number of texts. There are about a dozen reasons and collectors, but a foreign file can
/// have any number.
const MAX_COUNT: usize = 1000;
/// Maximum length of a text, in characters.
const MAX_LENGTH: usize = 120;

/// Unique texts; the first is empty.
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
    /// Returns the index of a text.
    pub(super) fn place(&mut self, text: &str) -> usize {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let cut: String = text.chars().take(MAX_LENGTH).collect();
        if cut != text {
            return self.place(&cut);
        }
        if self.all.len() >= MAX_COUNT {
            return self.other();
        }
        self.all.push(cut.clone());
        self.places.insert(cut, self.all.len() - 1);
        self.all.len() - 1
    }

    /// Returns the index of the substitute for texts beyond the limit.
    fn other(&mut self) -> usize {
        const OTHER: &str = "(other)";
        if let Some(place) = self.places.get(OTHER) {
            return *place;
        }
        self.all.push(OTHER.to_owned());
        self.places.insert(OTHER.to_owned(), self.all.len() - 1);
        self.all.len() - 1
    }

    /// Returns all texts.
    pub(super) fn into_all(self) -> Vec<String> {
        self.all
    }
}
