//! Parser of the answer to `REAL`: the last allocations of a runtime, newest first, each with its
//! thread, class and stack; then the names, in three tables. ART has written this format since
//! Android 6, and Dalvik before.
//!
//! ```text
//! u8 length of this header (15), u8 of an entry's (9), u8 of a frame (8)
//! u16 entries, u32 offset of the tables, u16 classes, u16 methods, u16 files
//! entry: u32 bytes, u16 thread, u16 class, u8 frames, then the frames, innermost first
//! frame: u16 class, u16 method, u16 file, i16 line (-1 not known, -2 native)
//! names: u32 length, UTF-16
//! ```
//!
//! Headers can grow: their lengths are respected. Memory is bounded by the size of the answer;
//! overlong names, which real sources do not have, are cut.

use std::ops::Range;

/// Lengths of the known parts.
const HEADER: usize = 15;
const ENTRY: usize = 9;
const FRAME: usize = 8;
/// Maximum number of UTF-16 units of a name. Descriptors and methods can have 65,535 bytes in a DEX
/// file, but usually have some hundreds.
pub const MAX_NAME_LENGTH: usize = 4096;
/// Replacement for the rest of a cut name.
const CUT: char = '…';
/// Line number of a native method.
const NATIVE: i16 = -2;

/// The last allocations of a runtime.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allocations {
    entries: Vec<Allocation>,
    frames: Vec<Frame>,
    classes: Vec<String>,
    methods: Vec<String>,
    files: Vec<String>,
    cut: usize,
    unread: usize,
}

/// One allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    pub bytes: u32,
    /// Lower 16 bits of the thread's kernel ID.
    pub thread: u16,
    /// Index of its class in the table: equal indices have equal names.
    pub class: u16,
    frames: Range<usize>,
}

/// A frame by its indices in the tables: equal ones have equal names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    class: u16,
    method: u16,
    file: u16,
    line: i16,
}

/// A frame with its names; `None` if the answer does not contain the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MethodFrame<'a> {
    /// Descriptor of the method's class: `Lcom/example/Feed;`.
    pub class: Option<&'a str>,
    pub method: Option<&'a str>,
    /// Source file; also `None` if the class does not name it.
    pub file: Option<&'a str>,
    pub line: Option<u32>,
    /// It is native code.
    pub native: bool,
}

/// An answer that does not have this format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the allocation list is damaged: {0}")]
pub struct Malformed(String);

fn malformed(what: impl Into<String>) -> Malformed {
    Malformed(what.into())
}

/// Reader of bytes from the front.
struct Reader<'a> {
    left: &'a [u8],
    /// Number of names that were cut.
    cut: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.left.split_at_checked(count)?;
        self.left = left;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(*self.take(2)?.first_chunk()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(*self.take(4)?.first_chunk()?))
    }

    /// Reads `count` names.
    fn names(&mut self, count: u16, what: &str) -> Result<Vec<String>, Malformed> {
        let mut names = Vec::new();
        for number in 0..count {
            let name = self.name();
            names.push(name.ok_or_else(|| malformed(format!("{what} {number} of {count}")))?);
        }
        Ok(names)
    }

    fn name(&mut self) -> Option<String> {
        let units = usize::try_from(self.u32()?).ok()?;
        let bytes = self.take(units.checked_mul(2)?)?;
        let pairs = bytes.as_chunks::<2>().0.iter().take(MAX_NAME_LENGTH);
        let decoded = char::decode_utf16(pairs.map(|pair| u16::from_be_bytes(*pair)));
        let decoded = decoded.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
        let mut name: String = decoded.collect();
        if units > MAX_NAME_LENGTH {
            name.push(CUT);
            self.cut = self.cut.saturating_add(1);
        }
        Some(name)
    }
}

impl Allocations {
    /// Parses an answer.
    ///
    /// # Errors
    /// Returns an error if a part is missing.
    pub fn read(bytes: &[u8]) -> Result<Allocations, Malformed> {
        let mut reader = Reader {
            left: bytes,
            cut: 0,
        };
        let header = || malformed("its header");
        let lengths = [reader.u8(), reader.u8(), reader.u8()];
        let [Some(header_length), Some(entry_length), Some(frame_length)] =
            lengths.map(|length| length.map(usize::from))
        else {
            return Err(header());
        };
        if header_length < HEADER || entry_length < ENTRY || frame_length < FRAME {
            return Err(malformed(format!(
                "headers of {header_length}, {entry_length} and {frame_length} bytes"
            )));
        }
        let count = reader.u16().ok_or_else(header)?;
        let tables = reader.u32().ok_or_else(header)?;
        let tables = usize::try_from(tables).unwrap_or(usize::MAX);
        let mut names = [0; 3];
        for count in &mut names {
            *count = reader.u16().ok_or_else(header)?;
        }
        reader.take(header_length - HEADER).ok_or_else(header)?;
        let mut all = Allocations::default();
        for number in 0..count {
            all.entry(&mut reader, entry_length - ENTRY, frame_length - FRAME)
                .ok_or_else(|| malformed(format!("allocation {number} of {count}")))?;
        }
        let at = bytes.len() - reader.left.len();
        let between = tables
            .checked_sub(at)
            .ok_or_else(|| malformed("the names begin before the allocations end"))?;
        reader
            .take(between)
            .ok_or_else(|| malformed("the names are missing"))?;
        let [classes, methods, files] = names;
        all.classes = reader.names(classes, "class")?;
        all.methods = reader.names(methods, "method")?;
        all.files = reader.names(files, "file")?;
        all.cut = reader.cut;
        all.unread = between.saturating_add(reader.left.len());
        Ok(all)
    }

    fn entry(
        &mut self,
        reader: &mut Reader<'_>,
        more_of_entry: usize,
        more_of_frame: usize,
    ) -> Option<()> {
        let (bytes, thread, class) = (reader.u32()?, reader.u16()?, reader.u16()?);
        let depth = reader.u8()?;
        reader.take(more_of_entry)?;
        let first = self.frames.len();
        for _ in 0..depth {
            let frame = Frame {
                class: reader.u16()?,
                method: reader.u16()?,
                file: reader.u16()?,
                line: reader.u16()?.cast_signed(),
            };
            reader.take(more_of_frame)?;
            self.frames.push(frame);
        }
        self.entries.push(Allocation {
            bytes,
            thread,
            class,
            frames: first..self.frames.len(),
        });
        Some(())
    }

    /// Returns the allocations, newest first.
    pub fn entries(&self) -> &[Allocation] {
        &self.entries
    }

    /// Returns the descriptor of an allocation's class: `Ljava/lang/String;`, `[B`; `None` if the
    /// answer does not contain it.
    pub fn class_of(&self, allocation: &Allocation) -> Option<&str> {
        name(&self.classes, allocation.class)
    }

    /// Returns the callstack of an allocation, innermost frame first.
    pub fn stack_of(&self, allocation: &Allocation) -> impl Iterator<Item = MethodFrame<'_>> {
        let frames = self.frames_of(allocation).iter();
        frames.map(|frame| self.named(*frame))
    }

    /// Returns the callstack of an allocation as table indices.
    pub fn frames_of(&self, allocation: &Allocation) -> &[Frame] {
        let frames = self.frames.get(allocation.frames.clone());
        frames.unwrap_or_default()
    }

    pub fn named(&self, frame: Frame) -> MethodFrame<'_> {
        MethodFrame {
            class: name(&self.classes, frame.class),
            method: name(&self.methods, frame.method),
            file: name(&self.files, frame.file).filter(|file| !file.is_empty()),
            line: u32::try_from(frame.line).ok().filter(|line| *line > 0),
            native: frame.line == NATIVE,
        }
    }

    /// Returns the number of names that were cut because they exceed [`MAX_NAME_LENGTH`].
    pub fn cut(&self) -> usize {
        self.cut
    }

    /// Returns the number of bytes in the answer that were not parsed.
    pub fn unread(&self) -> usize {
        self.unread
    }
}

fn name(names: &[String], at: u16) -> Option<&str> {
    names.get(usize::from(at)).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Builds an answer like ART does, with `more` bytes in each header.
    fn answer(
        entries: &[(u32, u16, u16, Vec<[i32; 4]>)],
        names: [&[&str]; 3],
        more: usize,
    ) -> Vec<u8> {
        let mut body = Vec::new();
        for (bytes, thread, class, frames) in entries {
            body.extend(bytes.to_be_bytes());
            body.extend(thread.to_be_bytes());
            body.extend(class.to_be_bytes());
            body.push(u8::try_from(frames.len()).unwrap());
            body.extend(vec![0xee; more]);
            for frame in frames {
                for number in frame {
                    let low = u16::try_from(number & 0xffff).unwrap();
                    body.extend(low.to_be_bytes());
                }
                body.extend(vec![0xee; more]);
            }
        }
        let length = |known: usize| u8::try_from(known + more).unwrap();
        let mut all = vec![length(15), length(9), length(8)];
        all.extend(u16::try_from(entries.len()).unwrap().to_be_bytes());
        let tables = 15 + more + body.len();
        all.extend(u32::try_from(tables).unwrap().to_be_bytes());
        for names in names {
            all.extend(u16::try_from(names.len()).unwrap().to_be_bytes());
        }
        all.extend(vec![0xee; more]);
        all.extend(body);
        for name in names.into_iter().flatten() {
            let units: Vec<u16> = name.encode_utf16().collect();
            all.extend(u32::try_from(units.len()).unwrap().to_be_bytes());
            all.extend(units.iter().flat_map(|unit| unit.to_be_bytes()));
        }
        all
    }

    fn sample(more: usize) -> Vec<u8> {
        answer(
            &[
                (24, 4242, 0, vec![[1, 0, 0, 17], [1, 1, 1, -2]]),
                (4096, 7, 2, vec![]),
                (16, 7, 9, vec![[8, 8, 8, -1]]),
            ],
            [
                &["Ljava/lang/Long;", "Lcom/example/Feed;", "[B"],
                &["bind", "run"],
                &["Feed.java", ""],
            ],
            more,
        )
    }

    #[test]
    fn an_answer_is_read_also_with_longer_headers() {
        for more in [0, 3] {
            let read = Allocations::read(&sample(more)).unwrap();
            let [first, second, third] = read.entries() else {
                panic!("{read:?}");
            };
            assert_eq!((first.bytes, first.thread), (24, 4242));
            assert_eq!(read.class_of(first), Some("Ljava/lang/Long;"));
            let frames: Vec<MethodFrame> = read.stack_of(first).collect();
            let inner = MethodFrame {
                class: Some("Lcom/example/Feed;"),
                method: Some("bind"),
                file: Some("Feed.java"),
                line: Some(17),
                native: false,
            };
            let outer = MethodFrame {
                method: Some("run"),
                file: None,
                line: None,
                native: true,
                ..inner
            };
            assert_eq!(frames, [inner, outer]);
            assert_eq!(read.class_of(second), Some("[B"));
            assert_eq!(read.stack_of(second).count(), 0);
            // Missing names are `None`.
            assert_eq!(read.class_of(third), None);
            let frame = read.stack_of(third).next().unwrap();
            assert_eq!((frame.class, frame.method, frame.line), (None, None, None));
            assert_eq!(read.unread(), 0);
        }
    }

    #[test]
    fn nothing_is_an_answer_too() {
        let read = Allocations::read(&answer(&[], [&[], &[], &[]], 0)).unwrap();
        assert_eq!(read, Allocations::default());
    }

    #[test]
    fn what_breaks_off_is_said_to_and_what_is_behind_is_counted() {
        let whole = sample(0);
        for cut in 0..whole.len() {
            assert!(Allocations::read(&whole[..cut]).is_err(), "{cut}");
        }
        let longer = [&whole[..], b"tail"].concat();
        assert_eq!(Allocations::read(&longer).unwrap().unread(), 4);
        let error = Allocations::read(&whole[..20]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the allocation list is damaged: allocation 0 of 3"
        );
        let mut early = whole.clone();
        early[5..9].copy_from_slice(&[0; 4]);
        assert!(Allocations::read(&early).is_err());
        let mut short = whole;
        short[1] = 8;
        assert!(Allocations::read(&short).is_err());
    }

    #[test]
    fn a_name_that_no_source_has_is_cut() {
        let long = "a".repeat(MAX_NAME_LENGTH + 1);
        let fits = "b".repeat(MAX_NAME_LENGTH);
        let list = answer(&[], [&[&long, &fits], &[], &[]], 0);
        let read = Allocations::read(&list).unwrap();
        assert_eq!(read.cut(), 1);
        assert_eq!(read.classes[1], fits);
        assert_eq!(read.classes[0].chars().count(), MAX_NAME_LENGTH + 1);
        assert!(read.classes[0].ends_with("a…"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, at in 0usize..200, byte: u8) {
            let _ = Allocations::read(&bytes);
            let mut bent = sample(1);
            let at = at % bent.len();
            bent[at] = byte;
            if let Ok(read) = Allocations::read(&bent) {
                for entry in read.entries() {
                    let _ = read.class_of(entry);
                    prop_assert!(read.stack_of(entry).count() <= 255);
                }
            }
        }
    }
}
