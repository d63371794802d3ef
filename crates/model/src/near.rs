//! Similar names for misspelled ones.

/// Returns the name closest to `word` if it is close enough for a typing error.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
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

/// Returns Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
