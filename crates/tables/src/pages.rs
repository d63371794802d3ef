//! The pages of a Parquet file, with limits. A page says how large it is when it is decompressed and
//! how many values it has, and the crate `parquet` allocates that much before it has read them. Owns
//! the limits.

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};

/// Bytes that a page of any size may have when it is decompressed. A page that `write` makes has about
/// 1 MiB, or 1024 texts.
const ALWAYS: u64 = 32 << 20;
/// Bytes that a page may have for each of its compressed bytes beyond that.
const PER_BYTE: u64 = 16;

/// A file of which only pages are read.
pub(crate) struct Pages(pub(crate) File);

impl Length for Pages {
    fn len(&self) -> u64 {
        Length::len(&self.0)
    }
}

/// Reader of pages that fails at the end of the file: the crate `parquet` skips the values of a list
/// there one by one, however many it claims.
#[derive(Debug)]
pub(crate) struct FailsAtEnd(BufReader<File>);

impl Read for FailsAtEnd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 if !buffer.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        }
    }
}

impl ChunkReader for Pages {
    type T = FailsAtEnd;

    /// Returns a reader at the header of a page.
    fn get_read(&self, start: u64) -> Result<FailsAtEnd> {
        let mut reader = self.0.get_read(start)?;
        let [size, compressed] = sizes(reader.fill_buf()?)
            .ok_or_else(|| ParquetError::General("a page has no sizes".to_owned()))?;
        if size > ALWAYS + PER_BYTE * compressed {
            let what = format!("a page of {compressed} bytes claims to have {size} bytes");
            return Err(ParquetError::General(what));
        }
        Ok(FailsAtEnd(reader))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// Pages of a column, except those that the crate `parquet` allocates memory for without measure.
pub(crate) struct Measured<R>(pub(crate) R);

impl<R: PageReader> Iterator for Measured<R> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl<R: PageReader> PageReader for Measured<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.0.get_next_page()?;
        let refused = match &page {
            // A value takes at least four bytes: the length of a text.
            Some(Page::DictionaryPage {
                buf, num_values, ..
            }) if *num_values as usize > buf.len() / 4 => {
                format!("{} bytes claim to be {num_values} values", buf.len())
            }
            // Their data has a second number of values. `write` does not use these encodings.
            Some(page)
                if matches!(
                    page.encoding(),
                    Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY
                ) =>
            {
                format!("a page is encoded as {}", page.encoding())
            }
            _ => return Ok(page),
        };
        Err(ParquetError::General(refused))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.0.skip_next_page()
    }
}

/// Returns the two sizes in the header of a page, decompressed and compressed. The header is a struct
/// in Thrift's compact protocol, whose first fields are three numbers of 32 bits: the kind, and these.
fn sizes(header: &[u8]) -> Option<[u64; 2]> {
    /// The next field's number is one more, its type is a number of 32 bits.
    const NEXT_I32: u8 = 0x15;
    let mut bytes = header.iter().copied();
    let mut number = || {
        (bytes.next()? == NEXT_I32).then_some(())?;
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = bytes.next()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                // Zigzag: odd values are negative.
                return value.is_multiple_of(2).then_some(value / 2);
            }
        }
        None
    };
    number()?;
    Some([number()?, number()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn open(header: &[u8]) -> Result<FailsAtEnd> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"PAR1").unwrap();
        file.write_all(header).unwrap();
        Pages(file).get_read(4)
    }

    #[test]
    fn sizes_of_a_page_are_read() {
        assert_eq!(
            sizes(&[0x15, 4, 0x15, 0x10, 0x15, 0x22, 0x4c]),
            Some([8, 17])
        );
        let large = [0x15, 4, 0x15, 0x80, 0x80, 4, 0x15, 0x82, 1];
        assert_eq!(sizes(&large), Some([1 << 15, 65]));
    }

    /// Found by fuzzing: 99 MiB for a file of 3 KiB.
    #[test]
    fn pages_that_claim_more_than_their_bytes_can_hold_are_refused() {
        let all = [0xff, 0xff, 0xff, 0xff, 0x0f];
        let most = [&[0x15, 4, 0x15, 0xfe][..], &all[1..], &[0x15, 0x22]].concat();
        let error = open(&most).unwrap_err().to_string();
        assert!(
            error.contains("17 bytes claims to have 2147483647"),
            "{error}"
        );
        let negative = [&[0x15, 4, 0x15][..], &all, &[0x15, 0x22]].concat();
        let endless = [&[0x15, 4, 0x15][..], &[0xff; 12]].concat();
        let other = [0x15, 4, 0x25, 0x10, 0x15, 0x22];
        for header in [&negative[..], &endless, &other, &most[..5], &[]] {
            let error = open(header).unwrap_err().to_string();
            assert!(error.contains("no sizes"), "{error}");
        }
        open(&[0x15, 4, 0x15, 0x10, 0x15, 0x22]).unwrap();
    }

    /// Found by fuzzing: two minutes for a file of 4 KB.
    #[test]
    fn a_list_that_claims_more_values_than_the_file_has_ends_with_it() {
        let mut reader = open(&[0x15, 4, 0x15, 0x10, 0x15, 0x22]).unwrap();
        let whole = io::copy(&mut reader, &mut io::sink()).unwrap_err();
        assert_eq!(whole.kind(), io::ErrorKind::UnexpectedEof);
    }
}
