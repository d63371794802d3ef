//! Strings that formats refer to by number.

use std::collections::HashMap;
use std::rc::Rc;

/// Strings with their numbers, in the order of their first use.
pub(crate) struct Strings {
    first: u32,
    ids: HashMap<Rc<str>, u32>,
    pub(crate) all: Vec<Rc<str>>,
}

impl Strings {
    /// Returns no strings; `first` is the number of the first one.
    pub(crate) fn from(first: u32) -> Strings {
        Strings {
            first,
            ids: HashMap::new(),
            all: Vec::new(),
        }
    }

    pub(crate) fn id<N: From<u32>>(&mut self, text: &str) -> N {
        if let Some(id) = self.ids.get(text) {
            return (*id).into();
        }
        let text: Rc<str> = text.into();
        let id = self.first + self.all.len() as u32;
        self.all.push(text.clone());
        self.ids.insert(text, id);
        id.into()
    }
}
