//! Names: the string table of a dump, and class names as Java writes them. ART writes
//! `java.lang.String[][]` and `int[]`, HotSpot `java/lang/String`, `[[Ljava/lang/String;`, `[I`.

use super::records::modified_utf8;
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::name_of;

/// Offsets of the strings of the string table in the file, by ID.
#[derive(Debug, Default)]
pub(super) struct StringTable {
    /// ID, offset and length in bytes; ascending by ID once sealed. Of equal IDs the last in the
    /// file is used.
    rows: Vec<(u64, u64, u32)>,
}

impl StringTable {
    pub(super) fn add(&mut self, id: u64, at: usize, bytes: usize) {
        // A length is 32 bits in the file.
        self.rows.push((id, at as u64, bytes as u32));
    }

    pub(super) fn seal(&mut self) {
        self.rows.sort_by_key(|row| row.0);
    }

    /// Returns the bytes of the name with that ID.
    pub(super) fn bytes<'a>(&self, file: &'a [u8], id: u64) -> Option<&'a [u8]> {
        let after = self.rows.partition_point(|row| row.0 <= id);
        let &(found, at, bytes) = self.rows.get(after.checked_sub(1)?)?;
        if found != id {
            return None;
        }
        let at = usize::try_from(at).ok()?;
        file.get(at..at + bytes as usize)
    }

    /// Returns the name with that ID.
    pub(super) fn get(&self, file: &Bytes, id: u64) -> Option<String> {
        self.bytes(file, id).map(name_of).map(modified_utf8)
    }
}

/// Returns a class name as Java writes it: dots, and `[]` after the element type of arrays.
pub(super) fn java_class_name(raw: &str) -> String {
    let element = raw.trim_start_matches('[');
    let dimensions = raw.len() - element.len();
    let plain = if dimensions == 0 {
        element
    } else {
        match element {
            "Z" => "boolean",
            "C" => "char",
            "F" => "float",
            "D" => "double",
            "B" => "byte",
            "S" => "short",
            "I" => "int",
            "J" => "long",
            object => object
                .strip_prefix('L')
                .and_then(|name| name.strip_suffix(';'))
                .unwrap_or(object),
        }
    };
    // A hidden class keeps the slash (or plus sign) and address after its name.
    let (plain, hidden) = match plain.find("/0x") {
        Some(at) => plain.split_at(at),
        None => (plain, ""),
    };
    let mut name = plain.replace('/', ".");
    name.push_str(hidden);
    name.extend(std::iter::repeat_n("[]", dimensions));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_names_of_both_runtimes_become_those_of_java() {
        let cases = [
            ("java/lang/String", "java.lang.String"),
            ("[[Ljava/lang/String;", "java.lang.String[][]"),
            ("[I", "int[]"),
            ("[[Z", "boolean[][]"),
            ("int[]", "int[]"),
            ("java.lang.String[][]", "java.lang.String[][]"),
            ("I", "I"),
            ("a/b$c", "a.b$c"),
            ("lab/L$$Lambda$2+0x0000", "lab.L$$Lambda$2+0x0000"),
            ("lab/L$$Lambda/0x7f02", "lab.L$$Lambda/0x7f02"),
            ("", ""),
        ];
        for (raw, name) in cases {
            assert_eq!(java_class_name(raw), name);
        }
    }
}
