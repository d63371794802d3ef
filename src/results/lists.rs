//! Lists in sentences.

/// Joins a list, truncated to a readable length.
pub(crate) fn join_list(all: impl ExactSizeIterator<Item = String>) -> String {
    const MOST: usize = 12;
    let more = all.len().saturating_sub(MOST);
    let mut shown: Vec<String> = all.take(MOST).collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}
