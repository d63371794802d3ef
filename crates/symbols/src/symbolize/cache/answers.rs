//! Cached bytes by key: results that are expensive to compute. Guarantees that the bytes read are
//! those written; callers define their meaning.

use super::file_cache::FileCache;
use std::io::{self, Write as _};

/// Header: magic, CRC-32 of the payload, length of the payload.
const MAGIC: &[u8; 4] = b"HTA1";
const HEADER: usize = 16;

/// Cache of results by a digest of the query, shared by threads and processes.
#[derive(Debug, Clone)]
pub struct Answers(FileCache);

impl Answers {
    pub(super) fn new(cache: FileCache) -> Self {
        Answers(cache)
    }

    /// Returns the result stored under `key`: a SHA-256 of everything that it depends on, including
    /// the version of its format. `None` if there is none or it is damaged. Reads one file.
    pub fn get(&self, key: &[u8; 32]) -> Option<Vec<u8>> {
        let path = self.0.path(&name(key));
        let mut bytes = std::fs::read(&path).ok()?;
        let header: [u8; HEADER] = bytes.get(..HEADER)?.try_into().ok()?;
        let payload = &bytes[HEADER..];
        if header != header_of(payload) {
            return None;
        }
        self.0.note_use(&path);
        bytes.drain(..HEADER);
        Some(bytes)
    }

    /// Stores a result. Callers can ignore an error, because nothing depends on the cache.
    ///
    /// # Errors
    /// Returns an error if the cache cannot be written.
    pub fn put(&self, key: &[u8; 32], payload: &[u8]) -> io::Result<()> {
        let mut file = self.0.unfinished()?;
        file.write_all(&header_of(payload))?;
        file.write_all(payload)?;
        self.0.keep(file, &name(key))?;
        Ok(())
    }
}

fn header_of(payload: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(MAGIC);
    header[4..8].copy_from_slice(&libdeflater::crc32(payload).to_le_bytes());
    header[8..].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    header
}

fn name(key: &[u8; 32]) -> String {
    heaptap_base::units::BuildId(key.to_vec()).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::Cache;

    #[test]
    fn an_answer_is_what_was_put_or_none() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::in_directory(directory.path()).unwrap();
        let answers = cache.answers();
        assert_eq!(answers.get(&[5; 32]), None);
        answers.put(&[5; 32], b"names").unwrap();
        answers.put(&[6; 32], b"").unwrap();
        assert_eq!(answers.get(&[5; 32]).unwrap(), b"names");
        assert_eq!(answers.get(&[6; 32]).unwrap(), b"");
        let path = answers.0.path(&super::name(&[5; 32]));
        let whole = std::fs::read(&path).unwrap();
        for damaged in [
            whole[..whole.len() - 1].to_vec(),
            whole[..7].to_vec(),
            whole.iter().map(|b| b ^ 1).collect(),
            Vec::new(),
        ] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(answers.get(&[5; 32]), None);
        }
    }

    #[test]
    fn writers_do_not_meet() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::in_directory(directory.path()).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let answers = cache.answers().clone();
                scope.spawn(move || {
                    for at in 0..20 {
                        let payload = vec![at; 1000];
                        answers.put(&[at; 32], &payload).unwrap();
                        assert_eq!(answers.get(&[at; 32]).unwrap(), payload);
                    }
                });
            }
        });
    }
}
