//! Two readers of one source: the decoder, and the code that copies the trace.

use heaptap_base::parallel::lock;
use perfetto_heap::Source;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex};

/// A reader with its own position in a shared source.
struct Shared {
    source: Arc<Mutex<Box<dyn Source>>>,
    at: u64,
}

/// Returns two readers of one source, each with its own position.
pub fn share(source: Box<dyn Source>) -> (Box<dyn Source>, Box<dyn Source>) {
    let source = Arc::new(Mutex::new(source));
    let reader = || {
        let source = Arc::clone(&source);
        Box::new(Shared { source, at: 0 })
    };
    (reader(), reader())
}

impl Read for Shared {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut source = lock(&self.source);
        source.seek(SeekFrom::Start(self.at))?;
        let read = source.read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let mut source = lock(&self.source);
        // A relative seek starts at the reader's own position.
        source.seek(SeekFrom::Start(self.at))?;
        self.at = source.seek(to)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reader_has_a_place_of_its_own() {
        let (mut one, mut other) = share(Box::new(io::Cursor::new(b"0123456789".to_vec())));
        let mut read = [0; 3];
        one.read_exact(&mut read).unwrap();
        assert_eq!(other.seek(SeekFrom::End(-2)).unwrap(), 8);
        one.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"345");
        one.seek(SeekFrom::Current(-1)).unwrap();
        let mut rest = String::new();
        other.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "89");
        rest.clear();
        one.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "56789");
    }
}
