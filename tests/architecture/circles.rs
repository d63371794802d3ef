//! No module imports one that imports it, directly or indirectly: neither siblings, nor a parent and
//! its child. What children need is next to them, not in the file of their parent.

use super::sources::{Source, paths_at, sources};
use std::collections::{BTreeMap, BTreeSet};

/// Paths that `module` names by `crate::` and `super::`, from the crate's root.
fn named_from(module: &[&str], code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back().unwrap_or(' ');
            if before.is_alphanumeric() || matches!(before, '_' | ':' | '$') {
                continue;
            }
            for path in paths_at(&code[at..]) {
                let mut place: Vec<String> = module.iter().map(|&name| name.into()).collect();
                for name in path {
                    match name.as_str() {
                        "crate" => place.clear(),
                        "super" => drop(place.pop()),
                        _ => place.push(name),
                    }
                }
                found.push(place);
            }
        }
    }
    found
}

/// The paths of `use` statements, relative to the module that contains them.
fn handed_on_by(code: &str) -> Vec<Vec<String>> {
    let statements = code.match_indices("use ").filter(|(at, _)| {
        let line = code[..*at].rsplit('\n').next().unwrap_or_default();
        line.is_empty() || (line.starts_with("pub") && line.ends_with(' '))
    });
    statements
        .flat_map(|(at, word)| {
            let path = &code[at + word.len()..];
            paths_at(path.strip_prefix("self::").unwrap_or(path))
        })
        .collect()
}

/// The node of a directory for what its parent's own file defines.
const PARENT: &str = "(parent)";

/// Whether `code` defines an item with this name.
fn defines(code: &str, name: &str) -> bool {
    const ITEMS: [&str; 8] = [
        "fn", "struct", "enum", "trait", "type", "const", "static", "union",
    ];
    code.match_indices(name).any(|(at, _)| {
        let after = code[at + name.len()..].chars().next().unwrap_or(' ');
        let before = code[..at].rsplit_once(char::is_whitespace);
        let word = before.filter(|(_, rest)| rest.is_empty());
        let word = word.map(|(code, _)| code.rsplit(|c: char| !c.is_alphanumeric()).next());
        !after.is_alphanumeric()
            && after != '_'
            && word.flatten().is_some_and(|word| ITEMS.contains(&word))
    })
}

/// Whether `code` names items of its child module.
fn names_child(code: &str, child: &str) -> bool {
    let path = format!("{child}::");
    code.match_indices(&path).any(|(at, _)| {
        let before = code[..at].chars().next_back().unwrap_or(' ');
        code[..at].ends_with("self::")
            || !(before.is_alphanumeric() || matches!(before, '_' | ':' | '$'))
    })
}

/// The modules of each directory that import one another in a circle.
fn circles(sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    // By directory: its modules, each with the siblings that it names.
    let mut directories: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    // By directory and re-exported item: the module that defines it.
    let mut handed_on: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut named = Vec::new();
    // By directory: the code of its parent.
    let mut parents: BTreeMap<String, &str> = BTreeMap::new();
    for source in sources {
        let path = source.path.strip_suffix(".rs").expect("a source");
        let mut module: Vec<&str> = path.split('/').collect();
        if matches!(module.last(), Some(&"mod" | &"lib" | &"main")) {
            module.pop();
        }
        let src = source.place.strip_suffix(&source.path).expect("its end");
        for depth in 0..module.len() {
            let directory = format!("{src}{}", module[..depth].join("/"));
            let siblings = directories.entry(directory).or_default();
            siblings.entry(module[depth].to_owned()).or_default();
        }
        let below = format!("{src}{}", module.join("/"));
        parents.insert(below.clone(), &source.code);
        for path in handed_on_by(&source.code) {
            let [child, .., item] = &path[..] else {
                continue;
            };
            handed_on.insert((below.clone(), item.clone()), child.clone());
        }
        for other in named_from(&module, &source.code) {
            let shared = module.iter().zip(&other).take_while(|(a, b)| a == b);
            let shared = shared.count();
            if shared < module.len() && shared < other.len() {
                let directory = format!("{src}{}", module[..shared].join("/"));
                named.push((directory, module[shared].to_owned(), other[shared].clone()));
            }
        }
    }
    for (directory, module, other) in named {
        let siblings = directories.get_mut(&directory).expect("of a source");
        // Other names are items of the parent, or re-exported by it.
        let parent = parents.get(&directory).copied().unwrap_or_default();
        let other = match siblings.contains_key(&other) {
            true => Some(other),
            false if defines(parent, &other) => Some(PARENT.to_owned()),
            false => handed_on.get(&(directory, other)).cloned(),
        };
        let is_node = |other: &String| other == PARENT || siblings.contains_key(other);
        let sibling = other.filter(|other| *other != module && is_node(other));
        siblings.entry(module).or_default().extend(sibling);
    }
    for (directory, siblings) in &mut directories {
        let code = parents.get(directory).copied().unwrap_or_default();
        let children = siblings.keys().filter(|child| names_child(code, child));
        let children = children.cloned().collect();
        siblings.insert(PARENT.to_owned(), children);
    }
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (directory, siblings) in directories {
        for module in siblings.keys() {
            let mut seen: BTreeSet<&String> = BTreeSet::new();
            let mut next = vec![module];
            while let Some(at) = next.pop() {
                next.extend(siblings[at].iter().filter(|&other| seen.insert(other)));
            }
            if seen.contains(module) {
                let circle = found.entry(directory.clone()).or_default();
                circle.insert(module.clone());
            }
        }
    }
    found
}

#[test]
fn modules_import_each_other_in_no_circle() {
    let source = |path: &str, code: &str| Source {
        package: "a".to_owned(),
        path: path.to_owned(),
        place: format!("crates/a/src/{path}"),
        code: code.to_owned(),
    };
    let made = [
        source("lib.rs", "pub use crate::x::X;"),
        source("x/mod.rs", "use crate::y::{self, z::Z};"),
        source("x/one.rs", "use super::two::Two; use super::super::y;"),
        source("x/two.rs", "use super::{One, one::One as O};"),
        source("y.rs", "super::w::f()"),
        source("w.rs", "use super::Parent;"),
        source(
            "v/mod.rs",
            "pub(crate) use self::first::{A, First};\nuse second::Second;",
        ),
        source("v/first.rs", "use super::{Other, Second};"),
        source("v/second.rs", "use crate::v::First;"),
        source(
            "u/mod.rs",
            "mod low;\nmod high;\npub use high::f;\npub struct Shape;\nconst LEFT: u8 = 1;",
        ),
        source("u/high.rs", "use super::{Shape, low::Low};"),
        source("u/low.rs", "use super::LEFT_OVER;"),
    ];
    let circle = circles(&made);
    assert_eq!(circle.len(), 3, "{circle:?}");
    assert_eq!(Vec::from_iter(&circle["crates/a/src/u"]), [PARENT, "high"]);
    assert_eq!(
        Vec::from_iter(&circle["crates/a/src/v"]),
        ["first", "second"]
    );
    assert_eq!(
        Vec::from_iter(&circle["crates/a/src/x"]),
        ["one", "two"],
        "{circle:?}"
    );
    let found = circles(&sources());
    assert!(found.is_empty(), "modules import one another: {found:#?}");
}
