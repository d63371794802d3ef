//! Parquet, read back by the crate that writes it.

use super::*;
use crate::parquet;
use std::io::Write as _;

pub(super) fn assert_written_of_nothing(chosen: &Chosen<'_>) {
    let mut files = InMemory::default();
    parquet::write(&mut files, chosen, false).expect("writing to memory cannot fail");
    assert_eq!(files.0.len(), 5);
}

#[derive(Default)]
struct InMemory(Vec<(String, Vec<u8>)>);

struct Open(String, Vec<u8>);

impl io::Write for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl parquet::Files for InMemory {
    type File = Open;

    fn create(&mut self, name: &str) -> io::Result<Open> {
        Ok(Open(name.to_owned(), Vec::new()))
    }

    fn finish(&mut self, file: Open) -> io::Result<()> {
        self.0.push((file.0, file.1));
        Ok(())
    }
}

#[test]
fn parquet_reads_back_row_for_row() {
    use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
    let mut profile = profile();
    let mut other = profile.dumps[0].clone();
    other.facts.number = 5;
    other.facts.heap = String::new();
    other.facts.kind = DumpKind::AtMaximum;
    other.measures[3] = Measure {
        name: "Wall Time".to_owned(),
        unit: Unit::Other("nanoseconds".to_owned()),
        view: None,
        small_of: None,
    };
    profile.dumps.push(other);
    let mut files = InMemory::default();
    parquet::write(&mut files, &Chosen::all(&profile), true)
        .expect("writing to memory cannot fail");
    let rows = |name: &str| -> Vec<String> {
        let (_, bytes) = files
            .0
            .iter()
            .find(|file| file.0 == name)
            .expect("it is there");
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("it can be written");
        let reader = SerializedFileReader::new(file).expect("it is Parquet");
        let metadata = reader.metadata().file_metadata();
        let known = metadata.key_value_metadata().expect("it says what it is");
        let version = known.iter().find(|entry| entry.key == "heaptap.version");
        assert_eq!(version.and_then(|entry| entry.value.as_deref()), Some("1"));
        let rows = reader.get_row_iter(None).expect("it has rows");
        rows.map(|row| row.expect("it can be read").to_string())
            .collect()
    };
    assert_eq!(
        rows("callsite.parquet")[0],
        "{id: 0, parent: null, depth: 0, frame: null}"
    );
    assert_eq!(
        rows("callsite.parquet")[3],
        "{id: 3, parent: 1, depth: 2, frame: 2}"
    );
    let samples = rows("sample.parquet");
    assert_eq!(
        samples[1],
        "{dump_id: 0, ts: 5000000000, heap: \"libc.malloc\", callsite: 2, alloc_bytes: 500, \
         alloc_n: 5, free_bytes: 200, free_n: 2, live_bytes: 300, live_n: 3, wall_time: null}"
    );
    assert_eq!(
        samples[4],
        "{dump_id: 1, ts: 5000000000, heap: null, callsite: 2, alloc_bytes: 500, alloc_n: null, \
         free_bytes: null, free_n: null, live_bytes: 300, live_n: 3, wall_time: 5}"
    );
    assert_eq!(rows("frame.parquet").len(), 3);
}
