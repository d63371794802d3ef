//! Display of meminfo values in tables.

use heaptap_base::units::SignedSize;

/// Formats a size that can be negative.
pub(crate) fn size(bytes: i64) -> String {
    SignedSize(bytes).to_string()
}

/// Formats a change with its sign.
pub(crate) fn change(bytes: i64) -> String {
    match bytes {
        0 => "±0".to_owned(),
        _ => format!("{:+}", SignedSize(bytes)),
    }
}

pub(crate) fn heading(column: &str) -> &str {
    match column {
        "pss" => "PSS",
        "pss_clean" => "clean PSS",
        "shared_dirty" => "shared dirty",
        "private_dirty" => "private dirty",
        "shared_clean" => "shared clean",
        "private_clean" => "private clean",
        "swap" => "swapped",
        "swap_pss" => "swap PSS",
        "rss" => "RSS",
        "heap_alloc" => "in use",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_changes_have_their_signs() {
        assert_eq!(size(-2048), "-2.0 KiB");
        assert_eq!(change(1 << 20), "+1.0 MiB");
        assert_eq!(change(-1024), "-1.0 KiB");
        assert_eq!(change(0), "±0");
        assert!(!size(i64::MIN).is_empty());
    }
}
