//! Reader of `fixtures/DIFFERENCES.md`.

use std::path::Path;

/// Permitted differences of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Kept { extra: usize },
    KeptWhole { extra: usize, of: String },
    Merged,
    KeptHeld { extra: usize, of: String },
    FreesOfNothing { extra: usize },
    Names,
    Values(Vec<(usize, i64, i64)>),
    Instead { times: usize, of: String },
}

/// Returns the rows, by recording.
pub fn read() -> Vec<(String, Kind)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/DIFFERENCES.md");
    let text = std::fs::read_to_string(path).expect("the table is there");
    let table = text
        .split("| recording |")
        .nth(1)
        .expect("a table of recordings");
    table
        .lines()
        .skip(2)
        .filter(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let &[name, kind, detail, why] = &cells[..] else {
                panic!("four cells: {line}");
            };
            assert!(!why.is_empty(), "{name} has a reason");
            let words: Vec<&str> = detail.split_whitespace().collect();
            let number = |at: usize| words[at].parse().expect("a number");
            let of = || words[1].to_owned();
            let kind = match kind {
                "kept" => Kind::Kept { extra: number(0) },
                "kept-whole" => Kind::KeptWhole {
                    extra: number(0),
                    of: of(),
                },
                "merged" => Kind::Merged,
                "kept-held" => Kind::KeptHeld {
                    extra: number(0),
                    of: of(),
                },
                "frees-of-nothing" => Kind::FreesOfNothing { extra: number(0) },
                "names" => Kind::Names,
                "values" => Kind::Values(words.iter().map(|word| value(word)).collect()),
                "instead" => Kind::Instead {
                    times: number(0),
                    of: of(),
                },
                other => panic!("kind {other}"),
            };
            (name.to_owned(), kind)
        })
        .collect()
}

fn value(word: &str) -> (usize, i64, i64) {
    let mut parts = word.split(':');
    let mut next = || parts.next().expect("position:held:allocated");
    let at = next().parse().expect("a position");
    let held = next().parse().expect("bytes");
    (at, held, next().parse().expect("bytes"))
}
