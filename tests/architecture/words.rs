//! Words that the style guide rejects must not appear in texts for users or in comments.

use std::path::{Path, PathBuf};

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

/// Literals that belong to a format or to another program.
fn is_exempt(literal: &str) -> bool {
    // JSON keys, kinds, file names and Android users.
    let is_word = |c: char| c.is_ascii_lowercase() || "-_.".contains(c);
    literal.chars().all(is_word)
}

/// The string literals of code, each on one line.
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
    // A literal that continues on the next line.
    found.extend(literal);
    found
}

/// The rejected word in a text, as a separate word.
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

/// A line without its parts in backticks, because names there are a format.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// The lines of a file, without code blocks if it is a page.
fn words_of(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("UTF-8");
    let mut is_code = false;
    let is_page = path.extension().is_some_and(|ending| ending == "md");
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence && is_page;
        !is_code && !is_fence
    });
    match is_page {
        true => lines.map(without_code).collect(),
        false => lines.map(str::to_owned).collect(),
    }
}

#[test]
fn no_page_uses_a_rejected_word() {
    let mut files = vec![
        "README.md".into(),
        "CONTRIBUTING.md".into(),
        "viewer/README.md".into(),
    ];
    let directories = ["docs", "docs/guide", "docs/reference", "docs/internals"];
    for directory in directories
        .iter()
        .chain(&["viewer/src", "viewer/src/explore", "configs"])
    {
        for entry in std::fs::read_dir(directory).expect(directory) {
            let path: PathBuf = entry.expect("an entry").path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            if matches!(ending, Some("md" | "ts" | "css" | "html" | "yaml")) {
                files.push(path);
            }
        }
    }
    let mut wrong = Vec::new();
    for path in &files {
        for line in words_of(path) {
            if let Some(word) = rejected(&line) {
                wrong.push(format!("{}: {word}: {line}", path.display()));
            }
        }
    }
    assert!(files.len() > 40, "{files:?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Beginnings of words in identifiers that have another name, and that name.
const RENAMED: [(&str, &str); 2] = [("folder", "directory"), ("most_", "MAX_ for a limit")];

#[test]
fn no_identifier_uses_a_renamed_word() {
    let mut wrong = Vec::new();
    for source in sources() {
        // Every second part is in quotes.
        let lines = source.code.lines();
        let code = lines.flat_map(|line| line.split('"').step_by(2));
        let names = code.flat_map(|code| code.split(|c: char| !c.is_alphanumeric() && c != '_'));
        for name in names {
            let lower = name.to_lowercase();
            let found = RENAMED.iter().find(|(word, _)| match word.ends_with('_') {
                true => name.starts_with(&word.to_uppercase()),
                false => lower.contains(word),
            });
            if let Some((_, instead)) = found {
                wrong.push(format!("{}: {name}: use {instead}", source.place));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The Rust files below a directory.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn no_comment_uses_a_rejected_word() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let directories = ["src", "tests", "crates", "proto"].map(Path::new);
    for path in directories.into_iter().flat_map(rust_files) {
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        for line in text.lines().filter(is_comment) {
            seen += 1;
            if let Some(word) = rejected(&without_code(line)) {
                wrong.push(format!("{}: {word}: {}", path.display(), line.trim()));
            }
        }
    }
    assert!(seen > 20_000, "{seen}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn literals_are_found() {
    assert_eq!(literals(r#"f("a b", 'x', "c\"d");"#), ["a b", "c\"d"]);
    assert_eq!(literals(r#"let x = "goes on \"#), ["goes on "]);
}

/// The messages that a page quotes: the first cells of tables of messages, and blocks of errors and
/// warnings.
fn quoted(page: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut heading = String::new();
    let mut block: Option<String> = None;
    for line in page.lines() {
        match &mut block {
            Some(text) if line == "```" => {
                if text.starts_with("error: ") || text.starts_with("warning: ") {
                    found.push(std::mem::take(text));
                }
                block = None;
            }
            Some(text) if text.is_empty() => *text = line.to_owned(),
            Some(text) => *text = format!("{text} {line}"),
            None if line == "```text" => block = Some(String::new()),
            None => match line.strip_prefix('|').and_then(|row| row.split('|').next()) {
                None => heading.clear(),
                Some(cell) if heading.is_empty() => heading = cell.trim().to_lowercase(),
                Some(cell) if heading == "message" => {
                    found.extend(cell.split('`').skip(1).step_by(2).map(str::to_owned));
                }
                Some(_) => {}
            },
        }
    }
    found
}

/// The longest part of a message without values: numbers and names with dots.
fn longest_part(message: &str) -> Vec<&str> {
    let is_value = |word: &&str| {
        word.contains(|c: char| c.is_ascii_digit()) || word.trim_end_matches('.').contains('.')
    };
    let pieces = message.split(['…', ':', ';', '(', ')', '`']);
    let parts = pieces.flat_map(|piece| {
        let words: Vec<&str> = piece.split_whitespace().collect();
        let parts = words.split(is_value);
        parts.map(<[&str]>::to_vec).collect::<Vec<_>>()
    });
    parts
        .max_by_key(|part| part.join(" ").len())
        .unwrap_or_default()
}

#[test]
fn quoted_messages_are_in_the_source() {
    let mut code = String::new();
    for source in sources() {
        // A backslash at the end of a line continues a literal.
        let mut lines = source.code.split("\\\n");
        code += lines.next().unwrap_or_default();
        lines.for_each(|line| code += line.trim_start());
    }
    let mut wrong = Vec::new();
    let mut seen = 0;
    for page in ["docs/guide/symbols.md", "docs/guide/troubleshooting.md"] {
        let text = std::fs::read_to_string(page).expect("UTF-8");
        for message in quoted(&text) {
            seen += 1;
            let part = longest_part(&message);
            // The first words can be a value, such as `2 devices` or `it has`.
            let most = part.len().saturating_sub(2).min(2);
            if !(0..=most).any(|from| code.contains(&part[from..].join(" "))) {
                wrong.push(format!("{page}: {message}"));
            }
        }
    }
    assert!(seen > 25, "{seen}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
