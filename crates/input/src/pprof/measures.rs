//! Meaning of the columns of a pprof, by the names that tools use.
//!
//! | view | column names |
//! |---|---|
//! | unreleased bytes | `space`, `inuse_space`, Perfetto's `Unreleased … size` |
//! | unreleased allocations | `objects`, `inuse_objects`, `Unreleased … count` |
//! | allocated bytes | `alloc_space`, `allocated_space`, `Total … size` |
//! | allocations | `alloc_objects`, `allocated_objects`, `Total … count` |
//!
//! The unit also matters: other units of bytes are converted to bytes.

use heaptap_model::stacks::{Measure, Unit, View};

/// A column with its interpretation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) measure: Measure,
    /// Factor for the values of the column.
    pub(super) scale: i64,
}

impl Column {
    /// Creates a column from its name and unit. Only the first matching column gets a view. Figures
    /// are looked up by name, so a column without a name, or with the name of another, gets its
    /// number.
    pub(super) fn new(name: &str, unit: &str, before: &[Column]) -> Column {
        let (unit, scale) = unit_of(unit);
        let fits = |view: &View| match view {
            View::Space | View::AllocSpace => unit == Unit::Bytes,
            View::Objects | View::AllocObjects => unit == Unit::Count,
        };
        let is_free = |view: &View| before.iter().all(|c| c.measure.view != Some(*view));
        let view = view_of(name).filter(fits).filter(is_free);
        let is_taken = View::ALL.iter().any(|view| view.name() == name)
            || before.iter().any(|c| c.measure.name == name);
        let is_new = |name: &String| before.iter().all(|c| c.measure.name != *name);
        let numbered = |start: &str| {
            let mut names = (before.len() + 1..).map(|number| format!("{start}-{number}"));
            names.find(is_new).unwrap_or_default()
        };
        Column {
            measure: Measure {
                name: match view {
                    None if name.is_empty() => numbered("sample-type"),
                    None if is_taken => numbered(name),
                    _ => name.to_owned(),
                },
                view,
                unit,
                small_of: None,
            },
            scale,
        }
    }
}

fn view_of(name: &str) -> Option<View> {
    Some(match name {
        "space" | "inuse_space" => View::Space,
        "objects" | "inuse_objects" => View::Objects,
        "alloc_space" | "allocated_space" => View::AllocSpace,
        "alloc_objects" | "allocated_objects" => View::AllocObjects,
        _ => {
            let of_perfetto = |start: &str, end: &str| {
                let middle = name.strip_prefix(start)?.strip_suffix(end)?;
                matches!(middle, " " | " malloc " | " allocation ").then_some(())
            };
            let all = [
                ("Unreleased", "size", View::Space),
                ("Unreleased", "count", View::Objects),
                ("Total", "size", View::AllocSpace),
                ("Total", "count", View::AllocObjects),
            ];
            let mut found = all.into_iter();
            return found.find_map(|(start, end, view)| of_perfetto(start, end).map(|()| view));
        }
    })
}

/// Returns the unit that a word means and the factor to convert to it.
fn unit_of(word: &str) -> (Unit, i64) {
    match word.to_ascii_lowercase().as_str() {
        "bytes" | "byte" | "b" => (Unit::Bytes, 1),
        "kilobytes" | "kilobyte" | "kb" | "kib" => (Unit::Bytes, 1 << 10),
        "megabytes" | "megabyte" | "mb" | "mib" => (Unit::Bytes, 1 << 20),
        "gigabytes" | "gigabyte" | "gb" | "gib" => (Unit::Bytes, 1 << 30),
        "count" | "counts" | "objects" | "allocations" => (Unit::Count, 1),
        _ => (Unit::Other(word.to_owned()), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_known_tools_are_views() {
        use View::{AllocObjects, AllocSpace, Objects, Space};
        for (name, unit, view) in [
            ("space", "bytes", Some(Space)),
            ("inuse_objects", "count", Some(Objects)),
            ("Unreleased malloc size", "bytes", Some(Space)),
            ("Unreleased count", "count", Some(Objects)),
            ("Total allocation size", "bytes", Some(AllocSpace)),
            ("Total malloc count", "count", Some(AllocObjects)),
            ("alloc_space", "kilobytes", Some(AllocSpace)),
            ("space", "count", None),
            ("Total CPU count", "count", None),
            ("cpu", "nanoseconds", None),
            ("native_space", "bytes", None),
        ] {
            assert_eq!(Column::new(name, unit, &[]).measure.view, view, "{name}");
        }
        let first = Column::new("space", "bytes", &[]);
        let again = Column::new("inuse_space", "bytes", std::slice::from_ref(&first));
        assert_eq!(again.measure.view, None);
        let second = Column::new("space", "bytes", std::slice::from_ref(&first));
        assert_eq!(second.measure.name, "space-2");
        let unnamed = Column::new("", "", std::slice::from_ref(&first));
        assert_eq!(unnamed.measure.name, "sample-type-2");
        assert_eq!(Column::new("space", "MB", &[]).scale, 1 << 20);
        let unit = Column::new("cpu", "nanoseconds", &[]).measure.unit;
        assert_eq!(unit, Unit::Other("nanoseconds".to_owned()));
    }
}
