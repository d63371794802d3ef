//! Sequential reading of the files in a TAR. Records before a file can contain a name of any length
//! (GNU long names, PAX records). At most the length of a path is read; the rest is skipped.

use std::io::{self, Read};
use tar::{EntryType, Header, PaxExtensions};

const BLOCK: usize = 512;
const BLOCK_BYTES: u64 = BLOCK as u64;
/// Maximum number of bytes read of a name or of the records before a file.
const MAX_LENGTH: u64 = 64 << 10;
/// Offset, in a block of sparse file parts, of the flag that another such block follows.
const IS_EXTENDED: usize = 504;

/// A TAR that is read sequentially.
pub(super) struct Tar<R> {
    source: R,
    /// Unread bytes of the current file and of the padding in its last block.
    left: u64,
    filling: u64,
}

/// A file whose name has been read and whose content is next.
pub(super) struct Content<'a, R> {
    pub(super) name: String,
    tar: &'a mut Tar<R>,
}

impl<R: Read> Read for Content<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = (&mut self.tar.source).take(self.tar.left).read(out)?;
        self.tar.left -= read as u64;
        Ok(read)
    }
}

impl<R: Read> Tar<R> {
    pub(super) fn new(source: R) -> Tar<R> {
        Tar {
            source,
            left: 0,
            filling: 0,
        }
    }

    /// Returns the next entry, if any. The inner value is `None` if the entry is not a file.
    ///
    /// # Errors
    /// Returns an error if the TAR breaks off or the next block is not a header.
    pub(super) fn next(&mut self) -> io::Result<Option<Option<Content<'_, R>>>> {
        let mut name: Option<Vec<u8>> = None;
        let mut size: Option<u64> = None;
        loop {
            self.pass_over()?;
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            let kind = header.entry_type();
            let of_next = kind.is_gnu_longname() || kind.is_pax_local_extensions();
            self.left = match size.filter(|_| !of_next) {
                Some(size) => size,
                None => header.entry_size()?,
            };
            // Do not round up: a file can claim the largest number as its size.
            self.filling = (BLOCK_BYTES - self.left % BLOCK_BYTES) % BLOCK_BYTES;
            if of_next {
                let mut content = Vec::new();
                let most = self.left.min(MAX_LENGTH);
                (&mut self.source).take(most).read_to_end(&mut content)?;
                self.left -= content.len() as u64;
                if kind.is_gnu_longname() {
                    let end = content.iter().position(|&byte| byte == 0);
                    content.truncate(end.unwrap_or(content.len()));
                    name = Some(content);
                    continue;
                }
                for record in PaxExtensions::new(&content).flatten() {
                    match record.key_bytes() {
                        // The GNU long name takes precedence.
                        b"path" => name = name.or(Some(record.value_bytes().to_vec())),
                        b"size" => size = record.value().ok().and_then(|n| n.parse().ok()),
                        _ => {}
                    }
                }
                continue;
            }
            if kind == EntryType::GNUSparse {
                self.pass_over_parts(&header)?;
            }
            if kind.is_gnu_longlink() || kind.is_pax_global_extensions() {
                continue;
            }
            let name = name.unwrap_or_else(|| header.path_bytes().into_owned());
            let name = String::from_utf8_lossy(&name).into_owned();
            return Ok(Some(kind.is_file().then_some(Content { name, tar: self })));
        }
    }

    /// Skips the rest of the current file.
    fn pass_over(&mut self) -> io::Result<()> {
        let rest = self.left.saturating_add(self.filling);
        (self.left, self.filling) = (0, 0);
        match io::copy(&mut (&mut self.source).take(rest), &mut io::sink())? {
            passed if passed == rest => Ok(()),
            _ => Err(broken_off()),
        }
    }

    /// Returns the next header; `None` at the end, which two empty blocks mark.
    fn header(&mut self) -> io::Result<Option<Header>> {
        for _ in 0..2 {
            let mut header = Header::new_old();
            let block = header.as_mut_bytes();
            match self.block(block)? {
                0 => return Ok(None),
                BLOCK => {}
                _ => return Err(broken_off()),
            }
            if block.iter().any(|&byte| byte != 0) {
                let bytes = block.iter().zip(0..).map(|(&byte, at)| match at {
                    // The checksum field itself counts as blanks.
                    148..156 => u32::from(b' '),
                    _ => u32::from(byte),
                });
                let sum: u32 = bytes.sum();
                return match header.cksum()? == sum {
                    true => Ok(Some(header)),
                    false => Err(io::Error::other("the next block is not a file header")),
                };
            }
        }
        Ok(None)
    }

    /// Reads a block, or less at the end.
    fn block(&mut self, block: &mut [u8; BLOCK]) -> io::Result<usize> {
        let mut read = 0;
        while read < BLOCK {
            match self.source.read(&mut block[read..]) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    /// Skips the blocks that describe more parts of a sparse file.
    fn pass_over_parts(&mut self, header: &Header) -> io::Result<()> {
        let mut goes_on = header.as_gnu().is_some_and(|gnu| gnu.is_extended());
        while goes_on {
            let mut block = [0; BLOCK];
            if self.block(&mut block)? < BLOCK {
                return Err(broken_off());
            }
            goes_on = block[IS_EXTENDED] == 1;
        }
        Ok(())
    }
}

fn broken_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it ends inside a file")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: u8, name: &str, size: usize) -> Vec<u8> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::new(kind));
        header.set_path(name).unwrap();
        header.set_size(size as u64);
        header.set_cksum();
        header.as_bytes().to_vec()
    }

    fn entry(kind: u8, name: &str, content: &[u8]) -> Vec<u8> {
        let mut entry = header(kind, name, content.len());
        entry.extend_from_slice(content);
        entry.resize(entry.len().next_multiple_of(BLOCK), 0);
        entry
    }

    /// Returns names and contents of the files, and whether the TAR breaks off.
    fn files(tar: &[u8]) -> (Vec<(String, String)>, bool) {
        let mut tar = Tar::new(tar);
        let mut found = Vec::new();
        loop {
            match tar.next() {
                Ok(Some(Some(mut file))) => {
                    let mut text = String::new();
                    file.read_to_string(&mut text).unwrap();
                    found.push((file.name, text));
                }
                Ok(Some(None)) => {}
                Ok(None) => return (found, false),
                Err(_) => return (found, true),
            }
        }
    }

    #[test]
    fn names_are_those_of_each_kind_of_tar() {
        let long = "d/".repeat(200) + "long";
        let pax = |text: &str| format!("{} {text}\n", text.len() + 4);
        let size = "12 size=300\n";
        let tar = [
            entry(b'0', "plain", b"one"),
            entry(b'5', "folder/", b""),
            entry(b'L', "././@LongLink", (long.clone() + "\0").as_bytes()),
            entry(b'0', "short", b"two"),
            entry(b'x', "pax", pax("path=by pax").as_bytes()),
            entry(b'0', "short", b"three"),
            entry(b'g', "global", pax("path=of none").as_bytes()),
            entry(b'K', "link", b"elsewhere"),
            entry(b'x', "pax", size.as_bytes()),
            header(b'0', "larger", 0),
            vec![b'a'; 512],
            entry(b'0', "last", b""),
            vec![0; 1024],
            b"whatever".to_vec(),
        ];
        let (found, is_broken) = files(&tar.concat());
        let names: Vec<&str> = found.iter().map(|file| &*file.0).collect();
        assert_eq!(names, ["plain", &long, "by pax", "larger", "last"]);
        assert_eq!(found[1].1, "two");
        assert_eq!(found[3].1.len(), 300);
        assert!(!is_broken);
    }

    #[test]
    fn a_file_that_claims_any_size_has_what_is_there() {
        for size in [u64::MAX, u64::MAX - 510] {
            let record = format!("29 size={size}\n");
            let tar = [
                entry(b'x', "pax", record.as_bytes()),
                header(b'0', "huge", 0),
                b"text".to_vec(),
            ];
            let found = vec![("huge".to_owned(), "text".to_owned())];
            assert_eq!(files(&tar.concat()), (found, true), "{size}");
        }
    }

    #[test]
    fn what_is_cut_or_no_tar_is_told_behind_what_is_whole() {
        let mut sparse = Header::new_gnu();
        sparse.set_entry_type(EntryType::GNUSparse);
        sparse.set_size(3);
        sparse.as_gnu_mut().unwrap().isextended = [1];
        sparse.set_cksum();
        let mut more = [0; BLOCK];
        more[IS_EXTENDED] = 1;
        let content = [&b"abc"[..], &[0; 509]].concat();
        let sparse = [sparse.as_bytes(), &more[..], &[0; BLOCK], &content].concat();
        let tar = [sparse, entry(b'0', "file", b"text")].concat();
        let whole = vec![("file".to_owned(), "text".to_owned())];
        assert_eq!(files(&tar), (whole.clone(), false));
        assert_eq!(files(&tar[..tar.len() - 1]), (whole.clone(), true));
        assert_eq!(files(&[&tar[..], &[7; BLOCK]].concat()), (whole, true));
        assert_eq!(files(&tar[..700]), (Vec::new(), true));
    }
}
