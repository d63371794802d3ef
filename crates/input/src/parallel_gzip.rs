//! gzip of heap dumps. The JDK packs every block of a dump into a member of its own
//! (`jmap -dump:gz=n`; the first has the comment `HPROF BLOCKSIZE=n`), so that members can be
//! unpacked side by side. Where one member ends is not written anywhere: the next header is
//! looked for, and whether the guess was right the member's checksum tells. What is packed
//! otherwise is unpacked from front to end.

use super::ImportError;
use super::spool::Spool;
use std::sync::mpsc::{Receiver, sync_channel};

/// How a member without name, time and comment begins.
const PLAIN_HEADER: [u8; 8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];
/// A larger member is unpacked as a stream: the JDK's blocks have 1 MiB.
const LARGEST_BLOCK: usize = 8 << 20;
/// deflate packs no denser.
const DENSEST: usize = 1032;
/// Members that each thread may be ahead of the writer.
const AHEAD: usize = 2;

/// Unpacks all members. Where they break off, what came before stays; the reason is given.
pub(super) fn unpack(packed: &[u8], spool: &mut Spool) -> Result<Option<String>, ImportError> {
    let starts = member_starts(packed);
    let done = match starts.len() {
        0 | 1 => 0,
        _ => unpack_blocks(packed, &starts, spool)?,
    };
    if done == packed.len() {
        return Ok(None);
    }
    spool.append(flate2::bufread::MultiGzDecoder::new(&packed[done..]))
}

/// The first byte, and whatever else looks like the header of a member.
fn member_starts(packed: &[u8]) -> Vec<usize> {
    let rest = packed.get(1..).unwrap_or_default();
    let headers = memchr::memmem::find_iter(rest, &PLAIN_HEADER).map(|at| at + 1);
    std::iter::once(0).chain(headers).collect()
}

/// Unpacks members on several threads and writes them in order. How much of `packed` was done:
/// up to the first that is not what it seemed.
fn unpack_blocks(packed: &[u8], starts: &[usize], spool: &mut Spool) -> Result<usize, ImportError> {
    let ends = starts[1..].iter().copied().chain([packed.len()]);
    let blocks: Vec<&[u8]> = starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| &packed[start..end])
        .collect();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
    std::thread::scope(|scope| {
        let unpacked: Vec<Receiver<Option<Vec<u8>>>> = (0..threads)
            .map(|first| {
                let (send, receive) = sync_channel(AHEAD);
                let blocks = &blocks;
                scope.spawn(move || {
                    for block in blocks.iter().skip(first).step_by(threads) {
                        let bytes = unpack_block(block);
                        let failed = bytes.is_none();
                        // Nobody listens any more once a block before this one failed.
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

/// A whole member and nothing else: its last eight bytes are the checksum and size of what
/// comes out of it.
fn unpack_block(block: &[u8]) -> Option<Vec<u8>> {
    let (_, trailer) = block.split_last_chunk::<8>()?;
    let [c0, c1, c2, c3, s0, s1, s2, s3] = *trailer;
    let size = u32::from_le_bytes([s0, s1, s2, s3]) as usize;
    if size > LARGEST_BLOCK || size > block.len().saturating_mul(DENSEST) {
        return None;
    }
    let mut bytes = vec![0; size];
    let written = libdeflater::Decompressor::new()
        .gzip_decompress(block, &mut bytes)
        .ok()?;
    // Two members, taken for one, would give the first.
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
        // Stored blocks show the headers that are packed in them.
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
        // A header that the search does not know: two members look like one.
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
