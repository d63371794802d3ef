//! Breakpad's debug ID, derived from a build ID.

use heaptap_base::units::BuildId;

/// Returns Breakpad's debug ID of a build ID: its first 16 bytes (padded with zeros) as a GUID,
/// whose first three fields are little-endian, in upper-case hex, followed by the age, which is 0.
pub fn debug_id(build_id: &BuildId) -> String {
    let mut guid = [0u8; 16];
    let length = build_id.0.len().min(16);
    guid[..length].copy_from_slice(&build_id.0[..length]);
    guid[..4].reverse();
    guid[4..6].reverse();
    guid[6..8].reverse();
    let mut text: String = guid.iter().map(|byte| format!("{byte:02X}")).collect();
    text.push('0');
    text
}

/// Returns whether a debug ID is derived from this build ID.
pub(super) fn is_debug_id_of(id: &str, build_id: &BuildId) -> bool {
    id.eq_ignore_ascii_case(&debug_id(build_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_build_ids_are_filled_with_zeros() {
        let id = BuildId(vec![0x01, 0x02, 0x03, 0x04, 0x05]);
        assert_eq!(debug_id(&id), "040302010005000000000000000000000");
    }
}
