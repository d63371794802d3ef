//! Conversion from Android's HPROF to Java SE's. The result is byte for byte that of Android's
//! `hprof-conv`. Owns the conversion of each sub-record; `rewrite` copies record by record.
//!
//! | Android's | becomes |
//! |---|---|
//! | version `1.0.3` | `1.0.2` |
//! | FE heap | nothing |
//! | 89 interned string, 8A finalizing, 8B debugger, 8C reference cleanup, 8D VM internal, 90 unreachable | FF unknown root |
//! | 8E JNI monitor, with thread and frame | FF unknown root, without |
//! | C3 array without data | 23 array of length 0 |
//!
//! Everything else stays. A segment left empty stays with length 0. `hprof-conv` is meant to clear
//! the length of C3 arrays, but clears their stack number, so readers take the following bytes for
//! their values. [`ConvertOptions::compat`] reproduces that result.

use super::records::{Header, Record};
use super::rewrite::{Body, Edit, Other, RewriteError, Rewritten, rewrite};
use super::sub_records::{SubRecord, sub_tag};
use std::io::Write;
use std::ops::Range;

/// Options of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConvertOptions {
    /// Leave out objects of the zygote's and the boot image's heap (`hprof-conv -z`). Classes,
    /// roots and references to missing objects stay.
    pub app_only: bool,
    /// Repeat the bug of `hprof-conv` with arrays that have no data.
    pub compat: bool,
}

/// Outcome of a conversion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Converted {
    /// Facts about the copy and the damage found.
    pub file: Rewritten,
    /// Objects left out because they are not the app's own.
    pub left_out: u64,
    /// Arrays without data.
    pub without_data: u64,
}

/// Offset of the header byte that differs between `1.0.3` and `1.0.2`.
const VERSION_AT: usize = 17;

/// Converts a dump. Damage is not an error: what can be read is converted; the rest is left out and
/// listed in the result.
///
/// # Errors
/// Returns an error if the file is not a dump of Android's dialect, or the result cannot be
/// written.
pub fn convert(
    file: &[u8],
    options: ConvertOptions,
    out: &mut dyn Write,
) -> Result<Converted, RewriteError> {
    let header = Header::read(file)?;
    if !header.is_android() {
        return Err(RewriteError::NotAndroid {
            version: header.version.to_owned(),
        });
    }
    let mut new_header = file[..header.bytes].to_vec();
    new_header[VERSION_AT] = b'2';
    let mut edit = ToJavaSe {
        options,
        ignoring: false,
        left_out: 0,
        without_data: 0,
        id_bytes: header.id_size.bytes(),
    };
    let file = rewrite(file, &header, &new_header, &mut edit, out)?;
    Ok(Converted {
        file,
        left_out: edit.left_out,
        without_data: edit.without_data,
    })
}

#[derive(Clone)]
struct ToJavaSe {
    options: ConvertOptions,
    /// The objects that follow are not the app's.
    ignoring: bool,
    left_out: u64,
    without_data: u64,
    id_bytes: usize,
}

impl Edit for ToJavaSe {
    fn other(&mut self, _: &Record<'_>) -> Other {
        Other::Keep
    }

    fn dump(&mut self) {
        self.ignoring = false;
    }

    fn keeps_empty(&self) -> bool {
        // As hprof-conv does.
        self.options.app_only || self.options.compat
    }

    #[inline]
    fn sub_record(&mut self, range: Range<usize>, record: &SubRecord<'_>, out: &mut Body<'_, '_>) {
        let id = range.start + 1..range.start + 1 + self.id_bytes;
        match record {
            SubRecord::Heap { heap, .. } => {
                let foreign = matches!(u8::try_from(*heap), Ok(b'Z' | b'I'));
                self.ignoring = self.options.app_only && foreign;
            }
            SubRecord::Root(root) => match root.tag {
                0x89 | 0x8a | 0x8b | 0x8c | 0x8d | 0x8e | 0x90 => {
                    out.put(&[0xff]);
                    out.keep(id);
                }
                _ => out.keep(range),
            },
            SubRecord::PrimitiveArray(array) if array.data.is_none() => {
                self.without_data += 1;
                let stack_end = id.end + 4;
                let length_end = stack_end + 4;
                out.put(&[sub_tag::PRIMITIVE_ARRAY]);
                out.keep(id.clone());
                if self.options.compat {
                    out.put(&[0; 4]);
                    out.keep(stack_end..range.end);
                } else {
                    out.keep(id.end..stack_end);
                    out.put(&[0; 4]);
                    out.keep(length_end..range.end);
                }
            }
            SubRecord::Instance(_) | SubRecord::ObjectArray(_) | SubRecord::PrimitiveArray(_)
                if self.ignoring =>
            {
                self.left_out += 1;
            }
            _ => out.keep(range),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32).to_be_bytes();
        [&[tag, 0, 0, 0, 9][..], &length, body].concat()
    }

    fn file(version: &str, records: &[Vec<u8>]) -> Vec<u8> {
        let header = format!("JAVA PROFILE {version}\0\0\0\0\x04\0\0\0\0\0\0\0\x07");
        [header.as_bytes(), &records.concat()].concat()
    }

    fn converted(sub: &[u8], options: ConvertOptions) -> (Converted, Vec<u8>) {
        let whole = |version, body: &[u8]| file(version, &[record(0x1c, body), record(0x2c, &[])]);
        let mut out = Vec::new();
        let done = convert(&whole("1.0.3", sub), options, &mut out).unwrap();
        assert_eq!(done.file.bytes, out.len() as u64);
        let body = out[40..out.len() - 9].to_vec();
        assert_eq!(out, whole("1.0.2", &body), "the rest stays");
        (done, body)
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_cut_short_meanwhile_is_copied_with_zeros_and_named() {
        use heaptap_base::bytes::{self, Bytes};
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dump.hprof");
        let large = vec![7; 3 << 20];
        let whole = file("1.0.3", &[record(0x01, &large)]);
        std::fs::write(&path, &whole).unwrap();
        let mapped = Bytes::read(&path, 0).unwrap();
        let cut = std::fs::File::options().write(true).open(&path).unwrap();
        cut.set_len(1 << 20).unwrap();
        // A real file, because a write to memory does not call the system.
        let mut out = tempfile::tempfile().unwrap();
        let done = convert(&mapped, ConvertOptions::default(), &mut out).unwrap();
        assert_eq!(done.file.bytes, whole.len() as u64);
        assert_eq!(out.metadata().unwrap().len(), whole.len() as u64);
        assert!(bytes::cut_short().contains(&path));
    }

    const APP_ONLY: ConvertOptions = ConvertOptions {
        app_only: true,
        compat: false,
    };
    const COMPAT: ConvertOptions = ConvertOptions {
        app_only: false,
        compat: true,
    };

    #[test]
    fn roots_that_java_se_does_not_know_become_unknown() {
        for tag in [0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x90] {
            let (_, body) = converted(&[tag, 1, 2, 3, 4], ConvertOptions::default());
            assert_eq!(body, [0xff, 1, 2, 3, 4]);
        }
        let monitor = [0x8e, 1, 2, 3, 4, 0, 0, 0, 5, 255, 255, 255, 255];
        let (_, body) = converted(&monitor, ConvertOptions::default());
        assert_eq!(body, [0xff, 1, 2, 3, 4]);
        for other in [
            &[0xff, 1, 2, 3, 4][..],
            &[1, 1, 2, 3, 4, 0, 0, 0, 0],
            &[8, 1, 2, 3, 4, 0, 0, 0, 1, 0, 0, 0, 2],
        ] {
            assert_eq!(converted(other, ConvertOptions::default()).1, other);
        }
    }

    #[test]
    fn arrays_without_data_become_empty_or_with_compat_corrupt() {
        let array = [0xc3, 1, 2, 3, 4, 0, 0, 0, 7, 0, 0, 0, 50, 8];
        let (done, body) = converted(&array, ConvertOptions::default());
        assert_eq!(body, [0x23, 1, 2, 3, 4, 0, 0, 0, 7, 0, 0, 0, 0, 8]);
        assert_eq!(done.without_data, 1);
        let (_, body) = converted(&array, COMPAT);
        assert_eq!(body, [0x23, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 50, 8]);
    }

    #[test]
    fn only_objects_of_the_app_are_left_and_heaps_are_no_longer_told() {
        let heap = |kind: u8| [0xfe, 0, 0, 0, kind, 0, 0, 0, 1];
        let object = [0x21, 1, 2, 3, 4, 0, 0, 0, 0, 9, 9, 9, 9, 0, 0, 0, 0];
        let array = [0x23, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 1, 8, 42];
        let nodata = [0xc3, 1, 2, 3, 4, 0, 0, 0, 7, 0, 0, 0, 0, 8];
        let root = [5, 1, 2, 3, 4];
        let foreign = [&heap(b'Z')[..], &object, &array, &nodata, &root].concat();
        let own = [&heap(b'A')[..], &object].concat();
        let all = [foreign, own].concat();
        let mut empty = nodata;
        empty[0] = 0x23;
        let (done, body) = converted(&all, ConvertOptions::default());
        assert_eq!(body, [&object[..], &array, &empty, &root, &object].concat());
        assert_eq!(done.left_out, 0);
        let (done, body) = converted(&all, APP_ONLY);
        assert_eq!(body, [&empty[..], &root, &object].concat());
        assert_eq!(done.left_out, 2);
        let (_, body) = converted(&[&heap(b'I')[..], &object].concat(), APP_ONLY);
        assert!(body.is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_left_out_and_told() {
        let good = [5, 1, 2, 3, 4];
        let segment = |body: &[u8]| record(0x1c, body);
        let bad = [&good[..], &[0x44, 1, 2, 3]].concat();
        let end = record(0x2c, &[]);
        let bytes = file("1.0.3", &[segment(&bad), segment(&good), end.clone()]);
        let mut out = Vec::new();
        let done = convert(&bytes, ConvertOptions::default(), &mut out).unwrap();
        assert_eq!(out, file("1.0.2", &[segment(&good), segment(&good), end]));
        assert_eq!(done.file.damage.count, 1);
        assert!(!done.file.is_whole());
        for version in ["1.0.2", "1.0.1"] {
            let mut out = Vec::new();
            let error = convert(&file(version, &[]), ConvertOptions::default(), &mut out);
            assert!(matches!(error, Err(RewriteError::NotAndroid { .. })));
            assert!(out.is_empty());
        }
    }

    /// Found by fuzzing: the length of 0 made the records after it a part of the dump.
    #[test]
    fn a_record_of_which_nothing_is_left_and_that_overlaps_the_next_one_is_left_out() {
        let mut segment = record(0x1c, &[0xfe, 0, 0, 0, b'A', 0, 0, 0, 1]);
        // Its body has 9 bytes.
        segment[8] = 6;
        let end = record(0x2c, &[]);
        let bytes = file("1.0.3", &[segment, end.clone()]);
        let mut out = Vec::new();
        let done = convert(&bytes, ConvertOptions::default(), &mut out).unwrap();
        assert_eq!(out, file("1.0.2", &[end]));
        assert_eq!((done.file.damage.count, done.file.records), (1, 1));
    }

    /// Found by fuzzing: what followed the unreadable record became a part of the empty one.
    #[test]
    fn an_empty_record_before_an_unreadable_one_is_left_out_with_it() {
        let unknown = record(0x00, &[0; 5]);
        let records = [record(0x0c, &[]), record(0x1c, &[0x44; 3]), unknown.clone()];
        let bytes = file("1.0.3", &records);
        let mut out = Vec::new();
        let done = convert(&bytes, ConvertOptions::default(), &mut out).unwrap();
        assert_eq!(out, file("1.0.2", &[unknown]));
        assert_eq!((done.file.damage.count, done.file.records), (1, 1));
    }

    /// Found by fuzzing: records that followed the empty one in the copy, but not in the file, made it
    /// the record that has the rest of the file.
    #[test]
    fn an_empty_record_stays_only_in_front_of_a_dump_record_or_the_end() {
        let (empty, text) = (record(0x1c, &[]), record(0x01, &[0, 0, 0, 1, b'x']));
        let (end, unknown) = (record(0x2c, &[]), record(0x00, &[0; 7]));
        let segment = record(0x1c, &[0xff, 0, 0, 0, 1]);
        let copy = |records: &[&Vec<u8>], compat| {
            let records: Vec<_> = records.iter().copied().cloned().collect();
            let options = ConvertOptions {
                compat,
                ..ConvertOptions::default()
            };
            let mut out = Vec::new();
            let done = convert(&file("1.0.3", &records), options, &mut out).unwrap();
            assert_eq!(done.file.bytes, out.len() as u64);
            assert_eq!(done.file.damage.count, 0);
            (out, done.file.records)
        };
        let kept = |records: &[&Vec<u8>]| {
            let records: Vec<_> = records.iter().copied().cloned().collect();
            (file("1.0.2", &records), records.len() as u64)
        };
        let texts = [&text; 16];
        let ambiguous = [&[&segment, &empty, &empty][..], &texts, &[&unknown]].concat();
        let plain = [&[&segment][..], &texts, &[&unknown]].concat();
        assert_eq!(copy(&ambiguous, false), kept(&plain));
        assert_eq!(copy(&ambiguous, true), kept(&ambiguous));
        for clear in [
            &[&text, &empty, &segment, &end][..],
            &[&text, &empty, &end],
            &[&text, &empty, &empty],
        ] {
            assert_eq!(copy(clear, false), kept(clear));
        }
    }

    #[test]
    fn empty_records_are_left_out_also_where_the_buffer_is_full() {
        let unreadable = record(0x1c, &[0x44; 3]);
        // A record before the empty ones fills the buffer of 1 MiB to the last bytes, or exceeds it.
        for length in (1 << 20) - 100..(1 << 20) + 20 {
            let text = record(0x01, &vec![b'x'; length]);
            let empty = record(0x0c, &[]).repeat(3);
            let bytes = file("1.0.3", &[text.clone(), empty, unreadable.clone()]);
            let mut out = Vec::new();
            let done = convert(&bytes, ConvertOptions::default(), &mut out).unwrap();
            assert!(out == file("1.0.2", &[text]), "{length}");
            assert_eq!((done.file.damage.count, done.file.records), (1, 1));
        }
        // Nothing unreadable follows these, which exceed the buffer themselves.
        let empty = record(0x0c, &[]).repeat(1 << 18);
        let mut out = Vec::new();
        let bytes = file("1.0.3", std::slice::from_ref(&empty));
        let done = convert(&bytes, ConvertOptions::default(), &mut out).unwrap();
        assert!(out == file("1.0.2", &[empty]));
        assert_eq!(done.file.bytes, out.len() as u64);
        let bytes = [bytes, unreadable].concat();
        out.clear();
        convert(&bytes, ConvertOptions::default(), &mut out).unwrap();
        assert!(out == file("1.0.2", &[]));
    }

    #[test]
    fn records_too_large_for_memory_come_out_the_same() {
        let element = [0x23, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 1, 8, 42];
        let kept = element.repeat(400_000);
        let body = [
            &[0x8d, 1, 2, 3, 4][..],
            &kept,
            &[0xfe, 0, 0, 0, b'Z', 0, 0, 0, 1],
            &element,
        ];
        let (done, out) = converted(&body.concat(), APP_ONLY);
        assert!(out == [&[0xff, 1, 2, 3, 4][..], &kept].concat());
        assert_eq!((done.left_out, done.file.records), (1, 2));
    }
}
