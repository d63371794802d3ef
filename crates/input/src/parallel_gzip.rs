//! gzip of heap dumps. The JDK packs every block of a dump into its own member (`jmap -dump:gz=n`;
//! the first member has the comment `HPROF BLOCKSIZE=n`). Therefore, members can be unpacked in
//! parallel. The format does not record the end of a member. The code searches for the next header,
//! and the member's checksum shows whether the guess was right. Other gzip files are unpacked
//! sequentially.

use super::error::ImportError;
use super::spool::Spool;
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, sync_channel};

/// First bytes of a member without name, time and comment.
const PLAIN_HEADER: [u8; 8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];
/// Maximum size of a member unpacked in memory; larger ones are streamed. The JDK's blocks have 1
/// MiB.
const MAX_BLOCK_SIZE: usize = 8 << 20;
/// Maximum compression ratio of deflate.
const DENSEST: usize = 1032;
/// Number of members that each thread can be ahead of the writer.
const AHEAD: usize = 2;

/// Unpacks all members. If the data is damaged, returns the reason and keeps the bytes before the
/// damage.
pub(super) fn unpack(packed: &[u8], spool: &mut Spool) -> Result<Option<String>, ImportError> {
    let starts = member_starts(packed);
    let done = match starts.len() {
        0 | 1 => 0,
        _ => unpack_blocks(packed, &starts, spool)?,
    };
    if done == packed.len() {
        return Ok(None);
    }
    spool.append(Members::new(&packed[done..]))
}

/// Error of [`Members`] if other bytes follow the last one.
pub(super) const NO_MEMBER: &str = "no gzip header";

/// The members of a gzip file, one after the other.
pub(super) struct Members<R> {
    /// The member that is being read.
    member: Option<GzDecoder<R>>,
    /// What follows the last member.
    rest: Option<R>,
}

impl<R: BufRead> Members<R> {
    pub(super) fn new(packed: R) -> Members<R> {
        Members {
            member: None,
            rest: Some(packed),
        }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(member) = &mut self.member {
                let read = member.read(out)?;
                if read > 0 || out.is_empty() {
                    return Ok(read);
                }
                self.rest = self.member.take().map(GzDecoder::into_inner);
            }
            let Some(rest) = &mut self.rest else {
                return Ok(0);
            };
            match rest.fill_buf()? {
                [] => return Ok(0),
                [0x1f, ..] => self.member = self.rest.take().map(GzDecoder::new),
                _ => return Err(io::Error::other(NO_MEMBER)),
            }
        }
    }
}

/// Returns the offsets of the first byte and of everything that looks like a member header.
fn member_starts(packed: &[u8]) -> Vec<usize> {
    let rest = packed.get(1..).unwrap_or_default();
    let headers = memchr::memmem::find_iter(rest, &PLAIN_HEADER).map(|at| at + 1);
    std::iter::once(0).chain(headers).collect()
}

/// Unpacks members on several threads and writes them in order. Returns the number of bytes of
/// `packed` that were unpacked, up to the first block that is not a whole member.
fn unpack_blocks(packed: &[u8], starts: &[usize], spool: &mut Spool) -> Result<usize, ImportError> {
    let ends = starts[1..].iter().copied().chain([packed.len()]);
    let blocks: Vec<&[u8]> = starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| &packed[start..end])
        .collect();
    let threads = heaptap_base::parallel::threads().get().min(8);
    std::thread::scope(|scope| {
        let unpacked: Vec<Receiver<Option<Vec<u8>>>> = (0..threads)
            .map(|first| {
                let (send, receive) = sync_channel(AHEAD);
                let blocks = &blocks;
                scope.spawn(move || {
                    for block in blocks.iter().skip(first).step_by(threads) {
                        let bytes = unpack_block(block);
                        let failed = bytes.is_none();
                        // The receiver stops after the first block that fails.
                        if send.send(bytes).is_err() || failed {
                            return;
                        }
                    }
                });
                receive
            })
            .collect();
        let mut done = 0;
        for (at, block) in blocks.iter().enumerate() {
            let Ok(Some(bytes)) = unpacked[at % threads].recv() else {
                return Ok(done);
            };
            spool.write(&bytes)?;
            done += block.len();
        }
        Ok(done)
    })
}

/// Unpacks exactly one whole member. Its last eight bytes are the checksum and size of the unpacked
/// bytes.
fn unpack_block(block: &[u8]) -> Option<Vec<u8>> {
    let (_, trailer) = block.split_last_chunk::<8>()?;
    let [c0, c1, c2, c3, s0, s1, s2, s3] = *trailer;
    let size = u32::from_le_bytes([s0, s1, s2, s3]) as usize;
    if size > MAX_BLOCK_SIZE || size > block.len().saturating_mul(DENSEST) {
        return None;
    }
    let mut bytes = vec![0; size];
    let written = libdeflater::Decompressor::new()
        .gzip_decompress(block, &mut bytes)
        .ok()?;
    // Two members mistaken for one would unpack to the first only.
    let mut checksum = libdeflater::Crc::new();
    checksum.update(&bytes);
    let whole = written == size && checksum.sum() == u32::from_le_bytes([c0, c1, c2, c3]);
    whole.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::spool::Budget;
    use super::*;
    use std::io::Write as _;

    fn member(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn unpacked(packed: &[u8]) -> (Vec<u8>, Option<String>) {
        let budget = Budget::of_stream();
        let mut spool = Spool::new("x.gz", &budget);
        let damage = unpack(packed, &mut spool).unwrap();
        (spool.into_bytes().unwrap().to_vec(), damage)
    }

    fn blocks() -> Vec<Vec<u8>> {
        (0..9u32)
            .map(|n| n.to_le_bytes().repeat(1000 + n as usize * 77))
            .collect()
    }

    #[test]
    fn members_come_out_in_order() {
        let plain = blocks().concat();
        let packed: Vec<u8> = blocks().iter().flat_map(|block| member(block)).collect();
        assert_eq!(member_starts(&packed).len(), 9);
        assert_eq!(unpacked(&packed), (plain.clone(), None));
        // The JDK's first member has a comment.
        let comment = flate2::GzBuilder::new().comment("HPROF BLOCKSIZE=1048576");
        let mut first = comment.write(Vec::new(), flate2::Compression::fast());
        first.write_all(&blocks()[0]).unwrap();
        let mut jdk = first.finish().unwrap();
        jdk.extend(blocks()[1..].iter().flat_map(|block| member(block)));
        assert_eq!(unpacked(&jdk), (plain, None));
    }

    #[test]
    fn what_only_looks_like_a_header_misleads_nobody() {
        // Stored blocks contain the headers of the packed data unchanged.
        let inner: Vec<u8> = blocks().iter().flat_map(|block| member(block)).collect();
        let mut stored = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        stored.write_all(&inner).unwrap();
        let packed = [
            member(b"before"),
            stored.finish().unwrap(),
            member(b"after"),
        ]
        .concat();
        assert!(member_starts(&packed).len() > 9);
        let (bytes, damage) = unpacked(&packed);
        assert_eq!(damage, None);
        assert_eq!(bytes, [&b"before"[..], &inner, b"after"].concat());
        // The search does not recognize this header, so two members look like one.
        let mut named = flate2::GzBuilder::new()
            .filename("x")
            .write(Vec::new(), flate2::Compression::fast());
        named.write_all(b"named").unwrap();
        let packed = [
            member(b"a"),
            member(b"b"),
            named.finish().unwrap(),
            member(b"c"),
        ]
        .concat();
        assert_eq!(unpacked(&packed), (b"abnamedc".to_vec(), None));
    }

    #[test]
    fn a_cut_leaves_what_came_before() {
        let packed: Vec<u8> = blocks().iter().flat_map(|block| member(block)).collect();
        let plain = blocks().concat();
        for cut in (0..packed.len()).step_by(7).chain([packed.len() - 1]) {
            let (bytes, damage) = unpacked(&packed[..cut]);
            assert!(plain.starts_with(&bytes), "cut at {cut}");
            let members = member_starts(&packed[..cut]).len() - 1;
            let whole: usize = blocks()[..members].iter().map(Vec::len).sum();
            assert!(bytes.len() >= whole, "cut at {cut}");
            let at_a_member = member_starts(&packed).contains(&cut);
            assert_eq!(damage.is_none(), at_a_member || cut == 0, "cut at {cut}");
        }
        let mut broken = packed.clone();
        let last = broken.len() - 3;
        broken[last] ^= 0x40;
        assert!(unpacked(&broken).1.is_some(), "sizes are checked");
    }

    #[test]
    fn claimed_sizes_allocate_nothing() {
        let mut packed = [member(b"a"), member(b"b")].concat();
        let at = packed.len() - 4;
        packed[at..].copy_from_slice(&u32::MAX.to_le_bytes());
        let (bytes, damage) = unpacked(&packed);
        assert_eq!(bytes, b"ab");
        assert!(damage.is_some());
    }
}
