//! Options in messages: a message of a command names only options that this command has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Options that a text advises: those in backticks, except of other programs, and in each command of
/// heaptap in it. A command without a name is the one that prints the text.
pub(crate) fn advised(text: &str) -> Vec<(Option<String>, String)> {
    let mut found = Vec::new();
    let spans = text.split('`').skip(1).step_by(2);
    for span in spans {
        let words: Vec<&str> = span.split_whitespace().collect();
        let of = match words.as_slice() {
            ["heaptap", command, ..] => Some((*command).to_owned()),
            [first, ..] if first.starts_with('-') => None,
            _ => continue,
        };
        // The words behind are those of the program that heaptap starts.
        for word in words.iter().take_while(|word| **word != "--") {
            let option = word
                .split(['=', ',', '[', '{', '}'])
                .next()
                .unwrap_or_default();
            let is_option = option.starts_with("--") && option.len() > 2
                || option.len() == 2 && option.starts_with('-') && option != "--";
            let is_word = option
                .chars()
                .all(|c| c == '-' || c.is_ascii_alphanumeric());
            if is_option && is_word {
                found.push((of.clone(), option.to_owned()));
            }
        }
    }
    found
}

/// String literals of a source, each in one line, without tests.
pub(crate) fn literals(source: &str) -> Vec<String> {
    let code = source
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let mut found = Vec::new();
    let mut chars = code.chars().peekable();
    let mut last = ' ';
    while let Some(c) = chars.next() {
        if c == '/' && chars.peek() == Some(&'/') {
            for c in chars.by_ref() {
                if c == '\n' {
                    break;
                }
            }
        } else if c == '"' && last != '\'' {
            let mut text = String::new();
            while let Some(c) = chars.next() {
                match c {
                    '"' => break,
                    '\\' => match chars.next() {
                        Some('\n') => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                        Some(escaped) => text.push(escaped),
                        None => break,
                    },
                    c => text.push(c),
                }
            }
            found.push(text);
        }
        last = c;
    }
    found
}

/// Sources below a directory.
pub(crate) fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("sources") {
        let path = entry.expect("sources").path();
        match path.is_dir() {
            true => found.extend(sources(&path)),
            false if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
            false => {}
        }
    }
    found
}

/// Options of each command, with those of every command, as they are typed.
pub(crate) type Known = BTreeMap<String, BTreeSet<String>>;

#[test]
fn advised_options_are_those_in_backticks() {
    let text = "run `heaptap stop ID -o DIR`, add `--focus=X` or `-l`, or `adb -P 1 shell`";
    let of = |command: Option<&str>, option: &str| (command.map(str::to_owned), option.to_owned());
    let wanted = [of(Some("stop"), "-o"), of(None, "--focus"), of(None, "-l")];
    assert_eq!(advised(text), wanted);
    let source = "// `--no`\nlet a = \"one `--x` \\\n    two\"; let b = '\"';";
    assert_eq!(literals(source), ["one `--x` two"]);
}
