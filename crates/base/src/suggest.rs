//! Similar names for misspelled ones.

/// The number of letters to insert, remove, replace or swap with the next one.
pub use strsim::osa_distance as distance;

/// Longer words are not names, and comparing them takes time.
const MAX_NAME_BYTES: usize = 64;

/// Returns the name closest to `word` if it is close enough for a typing error.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MAX_NAME_BYTES {
        return None;
    }
    names
        .into_iter()
        .map(|name| {
            let begun = word.len() >= 4 && name.starts_with(word);
            (if begun { 1 } else { distance(word, name) }, name)
        })
        .filter(|(distance, name)| *distance <= 1 + name.len().min(word.len()) / 4)
        .min()
        .map(|(_, name)| name)
}

/// Returns whether `word` differs from `name` by one or two letters: too many, too few, others, or
/// swapped.
pub fn is_slip(word: &str, name: &str) -> bool {
    let (of_word, of_name) = (word.chars().count(), name.chars().count());
    let most = 1 + usize::from(of_word.min(of_name) >= 4);
    of_word.abs_diff(of_name) <= 1 && distance(word, name) <= most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swapped_letters_are_one_slip() {
        assert_eq!(nearest("cvs", ["csv", "svg"]), Some("csv"));
        assert_eq!(nearest("hmtl", ["html", "json"]), Some("html"));
        assert_eq!(nearest("app", ["csv", "svg", "html"]), None);
        assert!(is_slip("sgv", "svg"));
    }
}
