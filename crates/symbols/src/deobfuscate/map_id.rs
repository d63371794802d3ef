//! IDs that assign an R8 mapping to a build. R8 writes an ID into the mapping file (`pg_map_id`)
//! and, since 2023, into the app's code as the name of all source files (`r8-map-id-…`).

use heaptap_model::profile::{FrameId, Recording, StringId};
use std::collections::BTreeSet;

const IN_SOURCE_FILE: &str = "r8-map-id-";
/// Minimum length: shorter IDs are ambiguous. Old versions of R8 write seven digits of the full ID.
const SHORTEST: usize = 7;

/// Returns the IDs of R8 mappings in the source files of a recording's frames, in order.
pub fn map_ids(recording: &Recording) -> Vec<String> {
    let tables = &recording.tables;
    let mut files: BTreeSet<StringId> = BTreeSet::new();
    for (at, frame) in tables.frames().iter().enumerate() {
        files.insert(frame.file);
        let lines = recording.symbols.lines(FrameId(at as u32));
        files.extend(lines.iter().map(|line| line.file));
    }
    let ids: BTreeSet<String> = files
        .into_iter()
        .filter_map(|file| tables.string(file).strip_prefix(IN_SOURCE_FILE))
        .map(str::to_owned)
        .collect();
    ids.into_iter().collect()
}

/// Returns whether two IDs belong to the same R8 mapping: they are equal, or one is a prefix of the
/// other.
pub fn is_same_map(a: &str, b: &str) -> bool {
    let length = a.len().min(b.len());
    length >= SHORTEST && a.as_bytes()[..length].eq_ignore_ascii_case(&b.as_bytes()[..length])
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::profile::Frame;

    #[test]
    fn ids_stand_in_source_files() {
        let mut recording = Recording::default();
        let tables = &mut recording.tables;
        for file in [
            "r8-map-id-48ffd9478fda",
            "Main.java",
            "r8-map-id-48ffd9478fda",
        ] {
            let frame = Frame {
                mapping: None,
                rel_pc: 0,
                name: tables.intern_str("a.b"),
                file: tables.intern_str(file),
                line: 1,
            };
            tables.intern_frame(frame);
        }
        assert_eq!(map_ids(&recording), ["48ffd9478fda"]);
        assert!(is_same_map("48ffd94", "48FFD9478fda"));
        assert!(!is_same_map("48ffd95", "48ffd9478fda"));
        assert!(!is_same_map("48f", "48ffd9478fda"));
        assert!(!is_same_map("", ""));
    }
}
