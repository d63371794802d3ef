//! Words that the style guide rejects: none stands in a text that people see.

use crate::sources::sources;

/// Words and phrases that make a sentence odd or vague.
const REJECTED: [&str; 9] = [
    "anew",
    "beside",
    "nobody",
    "whoever",
    "is told",
    "is said",
    "can't tell",
    "let go",
    "lets go",
];

/// Literals that are a format, or another program's word.
fn is_exempt(literal: &str) -> bool {
    // JSON keys, kinds, names of files and of Android's users.
    let is_word = |c: char| c.is_ascii_lowercase() || "-_.".contains(c);
    literal.chars().all(is_word)
}

/// The string literals of code, on one line each.
fn literals(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut literal: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (&mut literal, c) {
            (Some(text), '\\') => text.extend(chars.next()),
            (Some(_), '"') => found.extend(literal.take()),
            (Some(text), c) => text.push(c),
            (None, '"') => literal = Some(String::new()),
            // A quote as a character.
            (None, '\'') if line.contains("'\"'") => return found,
            (None, _) => {}
        }
    }
    // A literal that goes on in the next line.
    found.extend(literal);
    found
}

/// The rejected word in a text, as a word of its own.
fn rejected(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let stands_in = |word: &&str| {
        text.match_indices(*word).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            is_edge(before) && is_edge(text[at + word.len()..].chars().next())
        })
    };
    REJECTED.into_iter().find(stands_in)
}

#[test]
fn no_text_uses_a_rejected_word() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for source in sources() {
        for literal in source.code.lines().flat_map(literals) {
            seen += 1;
            if let Some(word) = rejected(&literal)
                && !is_exempt(&literal)
            {
                wrong.push(format!("{}: {word}: {literal}", source.place));
            }
        }
    }
    assert!(seen > 5_000, "{seen}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn literals_are_found() {
    assert_eq!(literals(r#"f("a b", 'x', "c\"d");"#), ["a b", "c\"d"]);
    assert_eq!(literals(r#"let x = "goes on \"#), ["goes on "]);
}
