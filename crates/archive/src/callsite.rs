//! Hashes and texts of callsites. The crate's documentation defines the hash.

use crate::recording::{Callsite, first_bytes};
use heaptap_model::names::module;
use heaptap_model::stacks::{Kind, NodeId, StackTable};
use sha2::{Digest as _, Sha256};

/// Maximum length of a stack as text. Only recursion reaches it; the outermost frames are cut.
const MAX_STACK_BYTES: usize = 16 << 10;

/// Returns the hash of a name and a second part below a parent.
fn hash(parent: i64, name: &str, part: &str) -> i64 {
    let mut digest = Sha256::new();
    digest.update(parent.to_be_bytes());
    digest.update(name);
    digest.update([0]);
    digest.update(part);
    digest.update([0]);
    first_bytes(&digest.finalize())
}

/// Returns the hash of a class name or of a leak's signature.
pub fn hash_text(text: &str) -> i64 {
    hash(0, text, "")
}

/// Hashes of all callsites of a table.
pub struct Callsites<'a> {
    table: &'a StackTable,
    hashes: Vec<i64>,
}

impl<'a> Callsites<'a> {
    /// Computes the hashes.
    pub fn from_table(table: &'a StackTable) -> Callsites<'a> {
        let mut hashes: Vec<i64> = Vec::with_capacity(table.node_count());
        // Callers come before their callees.
        for at in 0..table.node_count() {
            let node = NodeId(u32::try_from(at).unwrap_or(u32::MAX));
            let value = match table.function_of(node) {
                None => 0,
                Some(_) => hash(
                    hashes[table.parent(node).0 as usize],
                    table.name_of(node),
                    &library(table, node),
                ),
            };
            hashes.push(value);
        }
        Callsites { table, hashes }
    }

    /// Returns the hash of a callsite.
    pub fn hash(&self, node: NodeId) -> i64 {
        self.hashes[node.0 as usize]
    }

    /// Returns the texts of a callsite. The leaf is the innermost function that is not an
    /// allocator: otherwise, malloc's hook would be the leaf of everything.
    pub fn describe(&self, node: NodeId) -> Callsite {
        let table = self.table;
        let is_allocator = |node: &NodeId| {
            let function = table.function_of(*node);
            function.is_some_and(|id| table.functions()[id.0 as usize].kind == Kind::Allocator)
        };
        let mut frames = table.stack(node);
        let leaf = frames.find(|node| !is_allocator(node)).unwrap_or(node);
        let mut names = Vec::new();
        let mut bytes = 0;
        for frame in table.stack(node) {
            let name = table.name_of(frame);
            bytes += name.len() + 1;
            if bytes > MAX_STACK_BYTES && !names.is_empty() {
                names.push("…");
                break;
            }
            names.push(name);
        }
        names.reverse();
        Callsite {
            leaf: table.name_of(leaf).to_owned(),
            library: library(table, leaf),
            stack: names.join(";"),
        }
    }
}

/// Returns the file name of a callsite's library.
fn library(table: &StackTable, node: NodeId) -> String {
    let Some(function) = table.function_of(node) else {
        return String::new();
    };
    let library = table.functions()[function.0 as usize].library;
    let path = table.libraries()[library.0 as usize].path;
    module(table.text_of(path)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::stacks::{Frame, Function, Library, TextId};

    fn stack(table: &mut StackTable, path: &str, build_id: &str, names: &[&str]) -> NodeId {
        let path = table.text(path);
        let build_id = table.text(build_id);
        let library = table.library(Library { path, build_id });
        names.iter().fold(NodeId::ROOT, |node, name| {
            let function = Function {
                name: table.text(name),
                system_name: TextId::default(),
                library,
                kind: match *name {
                    "malloc" => Kind::Allocator,
                    _ => Kind::Plain,
                },
            };
            let frame = Frame {
                function: table.function(function),
                file: TextId::default(),
                line: build_id.0,
                inlined: false,
            };
            let frame = table.frame(frame);
            table.child(node, frame)
        })
    }

    /// The values are those of other implementations of the documented hash, and never change:
    /// stores of earlier versions have them.
    #[test]
    fn hashes_are_those_of_the_documentation_in_all_builds() {
        let mut table = StackTable::default();
        let names = ["main", "load", "malloc"];
        let first = stack(
            &mut table,
            "/data/app/~~a==/base.apk!libapp.so",
            "aa",
            &names,
        );
        let second = stack(
            &mut table,
            "/data/app/~~b==/lib/arm64/libapp.so",
            "bb",
            &names,
        );
        let other = stack(&mut table, "/system/lib64/libc.so", "aa", &names);
        let hashes = Callsites::from_table(&table);
        assert_ne!(first, second);
        assert_eq!(hashes.hash(first), HASH);
        assert_eq!(hashes.hash(second), HASH);
        assert_ne!(hashes.hash(other), HASH);
        assert_eq!(hashes.hash(NodeId::ROOT), 0);
        assert_eq!(hash_text("com.example.Activity"), CLASS);
        let text = hashes.describe(first);
        assert_eq!(text.leaf, "load");
        assert_eq!(text.library, "libapp.so");
        assert_eq!(text.stack, "main;load;malloc");
    }

    // python3: h = lambda p, n, l: int.from_bytes(hashlib.sha256(p.to_bytes(8, "big", signed=True)
    //   + n + b"\0" + l + b"\0").digest()[:8], "big", signed=True)
    const HASH: i64 = -4_467_979_166_187_201_701;
    const CLASS: i64 = -4_180_409_866_638_336_823;

    #[test]
    fn the_innermost_frames_of_a_deep_stack_are_kept() {
        let mut table = StackTable::default();
        let names = vec!["recurse"; 10_000];
        let node = stack(&mut table, "lib.so", "", &names);
        let text = Callsites::from_table(&table).describe(node);
        assert!(
            text.stack.starts_with("…;recurse;"),
            "{}",
            &text.stack[..20]
        );
        assert!(text.stack.len() <= MAX_STACK_BYTES + 4);
        let only = stack(&mut table, "lib.so", "", &["malloc"]);
        assert_eq!(Callsites::from_table(&table).describe(only).leaf, "malloc");
    }
}
