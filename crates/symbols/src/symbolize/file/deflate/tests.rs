use super::*;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write as _;

fn unpack(packed: &[u8]) -> Result<Vec<u8>, Damaged> {
    let mut zlib = Zlib::new();
    let mut all = Vec::new();
    loop {
        match zlib.next(packed)? {
            [] => return Ok(all),
            piece => all.extend_from_slice(piece),
        }
    }
}

fn pack(plain: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

/// Bytes with matches of many lengths and distances, like records of a format.
fn records(size: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below
    };
    let mut bytes: Vec<u8> = Vec::new();
    while bytes.len() < size {
        let spread = 1 << random(9);
        match random(4) {
            0 => bytes.extend((0..random(60)).map(|_| random(spread) as u8)),
            _ if bytes.is_empty() => bytes.push(0),
            _ => {
                let farthest = bytes.len().min(1 << random(16));
                let distance = 1 + random(farthest);
                for _ in 0..random(300) {
                    bytes.push(bytes[bytes.len() - distance]);
                }
            }
        }
    }
    bytes
}

#[test]
fn what_zlib_packs_is_unpacked() {
    for size in [0, 1, 100, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE / 2] {
        for level in [0, 1, 6, 9] {
            let plain = records(size, (size + level as usize) as u64);
            assert!(unpack(&pack(&plain, level)) == Ok(plain), "{size}, {level}");
        }
    }
    let runs = vec![7; 3 * PIECE];
    assert!(unpack(&pack(&runs, 6)) == Ok(runs));
}

#[test]
fn data_after_the_end_is_ignored_and_missing_data_is_an_error() {
    let plain = records(5000, 3);
    for level in [0, 6] {
        let packed = pack(&plain, level);
        let longer = [&packed[..], b"more"].concat();
        assert!(unpack(&longer) == Ok(plain.clone()));
        for length in 0..packed.len() {
            assert_eq!(unpack(&packed[..length]), Err(Damaged), "{length}");
        }
    }
}

#[test]
fn damaged_data_gives_an_error_or_what_libdeflate_finds() {
    let plain = records(20_000, 9);
    let packed = pack(&plain, 6);
    for at in 0..packed.len().min(3000) {
        for bit in [0, 3, 7] {
            let mut damaged = packed.clone();
            damaged[at] ^= 1 << bit;
            if let Ok(found) = unpack(&damaged) {
                let mut whole = vec![0; found.len()];
                let read = libdeflater::Decompressor::new().zlib_decompress(&damaged, &mut whole);
                assert!(read == Ok(found.len()) && whole == found, "{at}");
            }
        }
    }
}
