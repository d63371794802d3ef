//! Shapes of values and the keys of maps, of which the language is made.

use super::super::forms::{self, Form};

/// Shape of a value.
#[derive(Debug)]
pub(in crate::scenario) enum Shape {
    Scalar(&'static Form),
    /// A whole number.
    Number {
        min: u64,
        max: u64,
    },
    Flag,
    /// One of these words, with descriptions.
    Word(&'static [(&'static str, &'static str)]),
    List {
        of: &'static Shape,
        min: usize,
        max: usize,
    },
    /// A map with these keys only.
    Map(&'static Group),
    /// A map with names as keys.
    Named {
        name: &'static Form,
        of: &'static Shape,
    },
    /// A scalar, or the list or map behind it.
    Either(&'static Shape, &'static Shape),
    Step,
    /// A value that is refused with this reason; for keys that people expect.
    Refused(&'static str),
}

/// The keys of a map.
#[derive(Debug)]
pub(in crate::scenario) struct Group {
    pub keys: &'static [Key],
    /// Sets of keys that exclude each other.
    pub choices: &'static [Choice],
}

#[derive(Debug)]
pub(in crate::scenario) struct Choice {
    pub keys: &'static [&'static str],
    /// One of the keys is required.
    pub required: bool,
    /// Help if two of them are present; can be empty.
    pub help: &'static str,
}

#[derive(Debug)]
pub(in crate::scenario) struct Key {
    pub name: &'static str,
    pub doc: &'static str,
    pub required: bool,
    pub shape: Shape,
}

impl Group {
    pub(in crate::scenario) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    pub(in crate::scenario) fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.keys.iter().map(|key| key.name)
    }

    /// Returns whether a map without keys is valid.
    pub(in crate::scenario) fn may_be_empty(&self) -> bool {
        let required = self.choices.iter().any(|choice| choice.required);
        !required && self.keys.iter().all(|key| !key.required)
    }
}

pub(super) const fn key(name: &'static str, doc: &'static str, shape: Shape) -> Key {
    Key {
        name,
        doc,
        required: false,
        shape,
    }
}

pub(super) const fn required(name: &'static str, doc: &'static str, shape: Shape) -> Key {
    Key {
        name,
        doc,
        required: true,
        shape,
    }
}

pub(super) const fn list(of: &'static Shape, min: usize, max: usize) -> Shape {
    Shape::List { of, min, max }
}

/// Keys of which exactly one is needed.
pub(super) const fn one_of(keys: &'static [&'static str]) -> Choice {
    Choice {
        keys,
        required: true,
        help: "",
    }
}

pub(super) const fn at_most_one(keys: &'static [&'static str], help: &'static str) -> Choice {
    Choice {
        keys,
        required: false,
        help,
    }
}

/// A map without keys.
pub(super) static NOTHING: Group = Group {
    choices: &[],
    keys: &[],
};
const MAX_STEPS: usize = 500;
pub(super) const TIME: Shape = Shape::Scalar(&forms::TIME);
pub(super) const TEXT: Shape = Shape::Scalar(&forms::TEXT);
pub(super) const NAME: Shape = Shape::Scalar(&forms::NAME);
pub(super) const LABEL: Shape = Shape::Scalar(&forms::LABEL);
pub(super) const REGEX: Shape = Shape::Scalar(&forms::REGEX);
pub(super) const SIZE: Shape = Shape::Scalar(&forms::SIZE);
pub(super) const STEPS: Shape = list(&Shape::Step, 1, MAX_STEPS);
