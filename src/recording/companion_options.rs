//! What is recorded beside the native heap: `--with java,meminfo,smaps,gc`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config;

/// What is recorded beside the native heap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompanionOptions {
    /// A Java heap graph at each label.
    pub java: bool,
    /// How the process's memory divides, all along; whole at each label.
    pub meminfo: bool,
    /// Its mappings at each label.
    pub smaps: bool,
    /// Garbage collections.
    pub gc: bool,
    /// Java allocations as the runtime tracks them, at each label: asked for by
    /// `--java-allocations`.
    pub allocations: bool,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// [`CompanionOptions::java`].
    Java,
    /// [`CompanionOptions::meminfo`].
    Meminfo,
    /// [`CompanionOptions::smaps`].
    Smaps,
    /// [`CompanionOptions::gc`].
    Gc,
    /// [`CompanionOptions::allocations`].
    #[serde(rename = "java-allocations")]
    Allocations,
}

impl Source {
    /// Those that `--with` names, in the order in which they are named.
    pub const ASKED: [Source; 4] = [Source::Java, Source::Meminfo, Source::Smaps, Source::Gc];
    /// All of them.
    pub const ALL: [Source; 5] = [
        Source::Java,
        Source::Meminfo,
        Source::Smaps,
        Source::Gc,
        Source::Allocations,
    ];

    /// The word in the timeline for the files that are taken of it.
    pub(crate) fn kept_as(self) -> &'static str {
        match self {
            Source::Java => "java-heap",
            other => other.word(),
        }
    }

    /// As it is typed.
    pub fn word(self) -> &'static str {
        match self {
            Source::Java => "java",
            Source::Meminfo => "meminfo",
            Source::Smaps => "smaps",
            Source::Gc => "gc",
            Source::Allocations => "java-allocations",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl CompanionOptions {
    /// Whether nothing is recorded beside.
    pub fn is_empty(self) -> bool {
        self == CompanionOptions::default()
    }

    /// Whether something is read from the phone all along, not only at labels.
    pub fn observes(self) -> bool {
        self.meminfo || self.gc
    }

    /// What Perfetto itself records of it, in the same trace.
    pub fn in_trace(self) -> config::CompanionSources {
        // A trace without any heap is to hold something, too.
        let samples = self.meminfo || self.allocations;
        let each_second = samples.then_some(config::CompanionSources::PERIOD);
        config::CompanionSources {
            processes: each_second,
            system: each_second,
            collections: self.gc,
        }
    }

    /// What is recorded.
    pub fn sources(self) -> impl Iterator<Item = Source> {
        Source::ALL
            .into_iter()
            .filter(move |source| self.has(*source))
    }

    /// What is taken at each label, and at the end.
    pub fn at_labels(self) -> impl Iterator<Item = Source> {
        self.sources().filter(|source| *source != Source::Gc)
    }

    /// Whether `source` is recorded.
    pub fn has(self, source: Source) -> bool {
        match source {
            Source::Java => self.java,
            Source::Meminfo => self.meminfo,
            Source::Smaps => self.smaps,
            Source::Gc => self.gc,
            Source::Allocations => self.allocations,
        }
    }
}

impl FromIterator<Source> for CompanionOptions {
    fn from_iter<T: IntoIterator<Item = Source>>(sources: T) -> Self {
        let mut options = CompanionOptions::default();
        for source in sources {
            match source {
                Source::Java => options.java = true,
                Source::Meminfo => options.meminfo = true,
                Source::Smaps => options.smaps = true,
                Source::Gc => options.gc = true,
                Source::Allocations => options.allocations = true,
            }
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_what_there_is() {
        let options: CompanionOptions =
            [Source::Gc, Source::Java, Source::Gc].into_iter().collect();
        let words: Vec<&str> = options.sources().map(Source::word).collect();
        assert_eq!(words, ["java", "gc"]);
        assert!(options.observes() && !options.is_empty());
        assert!(CompanionOptions::default().is_empty());
    }

    #[test]
    fn a_journal_of_before_has_none() {
        assert_eq!(
            serde_json::from_str::<CompanionOptions>("{}").unwrap(),
            CompanionOptions::default()
        );
    }
}
