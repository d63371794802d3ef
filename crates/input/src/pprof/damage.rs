//! Damage in a pprof, by kind.

use heaptap_base::units::counted;
use std::fmt;

/// Counts of the damage in a pprof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PprofDamage {
    /// The profile is truncated.
    pub cut: bool,
    /// Messages that cannot be fully read.
    pub messages: u64,
    /// Columns beyond the limit; no tool writes that many.
    pub columns: u64,
    /// Columns whose name is missing, so that the meaning of their figures is unknown.
    pub unnamed_columns: u64,
    /// Samples with too few or too many values for the columns.
    pub samples: u64,
    /// References to missing locations.
    pub locations: u64,
    /// References to missing functions.
    pub functions: u64,
    /// References to missing strings.
    pub strings: u64,
    /// Stacks truncated because the profile expands far beyond its size.
    pub cut_stacks: u64,
    /// Samples dropped because they need too much memory for the file size.
    pub dropped_samples: u64,
    /// Other entries dropped because they need too much memory for the file size, and samples not
    /// counted for their thread because that thread was dropped.
    pub dropped_entries: u64,
}

impl fmt::Display for PprofDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let losses = [
            (self.messages, "damaged message", "damaged messages"),
            (
                self.columns,
                "column beyond the limit",
                "columns beyond the limit",
            ),
            (
                self.unnamed_columns,
                "sample type without its name and unit",
                "sample types without their names and units",
            ),
            (
                self.samples,
                "sample whose values do not match the columns",
                "samples whose values do not match the columns",
            ),
            (
                self.locations,
                "reference to a missing location",
                "references to missing locations",
            ),
            (
                self.functions,
                "reference to a missing function",
                "references to missing functions",
            ),
            (
                self.strings,
                "reference to a missing string",
                "references to missing strings",
            ),
            (
                self.cut_stacks,
                "truncated stack that is too large for the file size",
                "truncated stacks that are too large for the file size",
            ),
            (
                self.dropped_samples,
                "dropped sample that needs too much memory for the file size",
                "dropped samples that need too much memory for the file size",
            ),
            (
                self.dropped_entries,
                "other entry, or sample without its thread, dropped to limit memory",
                "other entries, or samples without their thread, dropped to limit memory",
            ),
        ];
        let mut parts: Vec<String> = Vec::new();
        if self.cut {
            parts.push("the file is truncated".to_owned());
        }
        let losses = losses.into_iter().filter(|(count, ..)| *count > 0);
        parts.extend(losses.map(|(count, one, many)| counted(count, one, many)));
        f.write_str(&parts.join("; "))
    }
}
