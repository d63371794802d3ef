//! Display of meminfo values in tables.

use heaptap_base::units::SignedSize;

/// Formats a size that can be negative.
pub(crate) fn size(bytes: i64) -> String {
    SignedSize(bytes).to_string()
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
