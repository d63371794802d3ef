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

/// Returns the number of letters to insert, remove, replace or swap with the next one.
pub fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i];
        for j in 1..=b.len() {
            let replaced = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(next[j - 1] + 1).min(row[j] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
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
