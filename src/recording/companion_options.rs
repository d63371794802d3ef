//! Companion data: `--with java,meminfo,smaps,gc`.

use std::fmt;

use serde::{Deserialize, Serialize};

use heaptap_capture::config;

/// Companion data to record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompanionOptions {
    /// A Java heap graph at each label.
    pub java: bool,
    /// Memory breakdown of the process, continuously and in full at each label.
    pub meminfo: bool,
    /// Memory mappings at each label.
    pub smaps: bool,
    pub gc: bool,
    /// Java allocations tracked by the runtime, at each label; requested by `--java-allocations`.
    pub allocations: bool,
}

/// A source of companion data.
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
    /// Values of `--with`, in display order.
    pub const ASKED: [Source; 4] = [Source::Java, Source::Meminfo, Source::Smaps, Source::Gc];
    /// All sources.
    pub const ALL: [Source; 5] = [
        Source::Java,
        Source::Meminfo,
        Source::Smaps,
        Source::Gc,
        Source::Allocations,
    ];

    /// Returns the word in the timeline for the files of this source.
    pub(crate) fn kept_as(self) -> &'static str {
        match self {
            Source::Java => "java-heap",
            other => other.word(),
        }
    }

    /// Returns the word as typed on the command line.
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
    /// Returns whether no companion data is recorded.
    pub fn is_empty(self) -> bool {
        self == CompanionOptions::default()
    }

    /// Returns whether the device is observed continuously, not only at labels.
    pub fn observes(self) -> bool {
        self.meminfo || self.gc
    }

    /// Returns the sources that Perfetto itself records, in the same trace.
    pub fn in_trace(self) -> config::CompanionSources {
        // Ensures that a trace without heaps is not empty.
        let samples = self.meminfo || self.allocations;
        let each_second = samples.then_some(config::CompanionSources::PERIOD);
        config::CompanionSources {
            processes: each_second,
            system: each_second,
            collections: self.gc,
        }
    }

    /// Returns the recorded sources.
    pub fn sources(self) -> impl Iterator<Item = Source> {
        Source::ALL
            .into_iter()
            .filter(move |source| self.has(*source))
    }

    /// Returns the sources captured at each label, and at the end.
    pub fn at_labels(self) -> impl Iterator<Item = Source> {
        self.sources().filter(|source| *source != Source::Gc)
    }

    /// Returns whether `source` is recorded.
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
