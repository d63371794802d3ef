//! Numbers that look random, for the memory of processes.

/// Mixes several numbers to one.
pub(super) fn mix(parts: &[u64]) -> u64 {
    parts.iter().fold(0x2545_f491_4f6c_dd1d, |h, p| {
        let mut z = (h ^ p).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^= z >> 29;
        z = z.wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 32
    })
}

pub(super) fn hash(text: &str) -> u64 {
    let bytes = text.bytes().map(u64::from);
    bytes.fold(7, |h, b| mix(&[h, b]))
}
