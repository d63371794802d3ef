//! Meaning of the rows of meminfo, in one sentence each, with advice for rows that are large or
//! grow. `explain.txt` has the texts.

use std::sync::LazyLock;

/// Explanation of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Meaning {
    /// Meaning of the row.
    pub what: &'static str,
    /// Advice for a large or growing row.
    pub advice: &'static str,
}

/// Line of the table, for one of its labels.
struct Explained {
    label: &'static str,
    is_object: bool,
    meaning: Meaning,
    made_of: Option<&'static str>,
    part: Option<&'static str>,
}

static TABLE: LazyLock<Vec<Explained>> = LazyLock::new(|| {
    let (rows, objects) = (include_str!("explain.txt").split_once("\n[objects]\n"))
        .expect("the table has both kinds of lines");
    let of = |text: &'static str, is_object| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.flat_map(move |line| {
            let columns: Vec<&str> = line.split(" | ").collect();
            let &[labels, what, advice, made_of, part] = columns.as_slice() else {
                return Vec::new();
            };
            let known = |text| Some(text).filter(|&text| text != "-");
            let labels = labels.split(", ").map(|label| Explained {
                label,
                is_object,
                meaning: Meaning { what, advice },
                made_of: known(made_of),
                part: known(part),
            });
            labels.collect()
        })
    };
    of(rows, false).chain(of(objects, true)).collect()
});

fn find(label: &str) -> Option<&'static Explained> {
    TABLE.iter().find(|row| row.label == label)
}

/// Explains a row of the table, of Dalvik Details or of App Summary.
pub fn row(label: &str) -> Option<Meaning> {
    find(label)
        .filter(|row| !row.is_object)
        .map(|row| row.meaning)
}

/// Explains a count of objects.
pub fn object(name: &str) -> Option<Meaning> {
    find(name)
        .filter(|row| row.is_object)
        .map(|row| row.meaning)
}

/// Returns the labels of all known rows.
pub fn rows() -> impl Iterator<Item = &'static str> {
    TABLE
        .iter()
        .filter(|row| !row.is_object)
        .map(|row| row.label)
}

/// Returns the labels of all known rows and counts of objects.
pub fn labels() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|row| row.label)
}

/// Returns the mappings that a row counts, by their names in smaps. For a row that is not in smaps,
/// returns the source of its figure.
pub fn made_of(label: &str) -> Option<&'static str> {
    find(label)?.made_of
}

/// Returns the part of App Summary that counts a row's private pages.
pub fn part(label: &str) -> Option<&'static str> {
    find(label)?.part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_well_formed() {
        assert_eq!((rows().count(), labels().count()), (48, 61));
        for row in TABLE.iter() {
            assert!(!row.meaning.what.is_empty() && !row.meaning.advice.is_empty());
            assert!(row.part.is_none_or(|part| super::row(part).is_some()));
        }
        for label in rows().filter(|label| label.ends_with(" mmap") || label.ends_with(" Heap")) {
            assert!(made_of(label).is_some(), "{label}");
        }
        assert_eq!((row("A vendor's"), row("Views")), (None, None));
        assert!(object("Views").is_some() && object("Stack").is_none());
    }
}
