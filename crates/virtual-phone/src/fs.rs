//! The phone's file system: a tree of directories, files and links in memory, with owners, modes
//! and SELinux types. Owns path resolution; /proc is generated on each access, in another module.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::events::lock;

/// S_IFDIR.
pub(crate) const DIRECTORY: u32 = 0o040_000;
/// S_IFREG.
pub(crate) const REGULAR: u32 = 0o100_000;
/// S_IFLNK.
pub(crate) const LINK: u32 = 0o120_000;
/// S_IFCHR.
pub(crate) const DEVICE: u32 = 0o020_000;

/// Bytes of a file. They exist as long as a process has the file open, even without a name. Phones
/// share the bytes of the image until one writes to them.
#[derive(Default)]
pub(crate) struct FileData {
    bytes: Mutex<Cow<'static, [u8]>>,
    mtime: AtomicI64,
}

impl FileData {
    pub(crate) fn new(bytes: impl Into<Cow<'static, [u8]>>, mtime: i64) -> Arc<FileData> {
        Arc::new(FileData {
            bytes: Mutex::new(bytes.into()),
            mtime: AtomicI64::new(mtime),
        })
    }

    pub(crate) fn len(&self) -> u64 {
        lock(&self.bytes).len() as u64
    }

    pub(crate) fn read_at(&self, offset: u64, limit: usize) -> Vec<u8> {
        let bytes = lock(&self.bytes);
        let from = (offset.min(bytes.len() as u64)) as usize;
        let to = from.saturating_add(limit).min(bytes.len());
        bytes[from..to].to_vec()
    }

    pub(crate) fn contents(&self) -> Vec<u8> {
        lock(&self.bytes).to_vec()
    }

    /// Writes at `offset`; fills a gap with zeros.
    pub(crate) fn write_at(&self, offset: u64, data: &[u8], mtime: i64) {
        let mut bytes = lock(&self.bytes);
        let bytes = bytes.to_mut();
        let offset = offset as usize;
        if bytes.len() < offset {
            bytes.resize(offset, 0);
        }
        let overlap = data.len().min(bytes.len() - offset);
        bytes[offset..offset + overlap].copy_from_slice(&data[..overlap]);
        bytes.extend_from_slice(&data[overlap..]);
        self.mtime.store(mtime, Ordering::Relaxed);
    }

    pub(crate) fn truncate(&self, len: u64) {
        let mut bytes = lock(&self.bytes);
        let bytes = bytes.to_mut();
        let len = (len as usize).min(bytes.len());
        bytes.truncate(len);
    }
}

/// Type and content of an inode.
#[derive(Clone)]
pub(crate) enum Kind {
    Directory(BTreeMap<String, Node>),
    File(Arc<FileData>),
    Link(String),
    /// A character device with this name.
    Device(&'static str),
}

#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// Permission bits only.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) inode: u64,
    pub(crate) mtime: i64,
    /// SELinux type of the object.
    pub(crate) label: &'static str,
}

/// Result of `stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Mode including the file type's bits.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) size: u64,
    pub(crate) inode: u64,
    pub(crate) mtime: i64,
}

/// errno of a failed file operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errno {
    Perm,
    NoEntry,
    Access,
    Exists,
    NotDirectory,
    IsDirectory,
    NoSpace,
    ReadOnly,
    Loop,
}

impl Errno {
    /// Returns the number, and the text of strerror.
    fn facts(self) -> (u32, &'static str) {
        match self {
            Errno::Perm => (1, "Operation not permitted"),
            Errno::NoEntry => (2, "No such file or directory"),
            Errno::Access => (13, "Permission denied"),
            Errno::Exists => (17, "File exists"),
            Errno::NotDirectory => (20, "Not a directory"),
            Errno::IsDirectory => (21, "Is a directory"),
            Errno::NoSpace => (28, "No space left on device"),
            Errno::ReadOnly => (30, "Read-only file system"),
            Errno::Loop => (40, "Too many symbolic links encountered"),
        }
    }

    pub(crate) fn number(self) -> u32 {
        self.facts().0
    }

    pub(crate) fn text(self) -> &'static str {
        self.facts().1
    }
}

static NEXT_INODE: AtomicU64 = AtomicU64::new(1_000);

impl Node {
    pub(crate) fn new(kind: Kind, mode: u32, uid: u32, gid: u32) -> Node {
        Node {
            kind,
            mode,
            uid,
            gid,
            inode: NEXT_INODE.fetch_add(1, Ordering::Relaxed),
            mtime: 1_230_768_000,
            label: "system_file",
        }
    }

    pub(crate) fn stat(&self) -> Stat {
        let (bits, size) = match &self.kind {
            Kind::Directory(_) => (DIRECTORY, 3452),
            Kind::File(data) => (REGULAR, data.len()),
            Kind::Link(to) => (LINK, to.len() as u64),
            Kind::Device(_) => (DEVICE, 0),
        };
        let mtime = match &self.kind {
            Kind::File(data) => self.mtime.max(data.mtime.load(Ordering::Relaxed)),
            _ => self.mtime,
        };
        Stat {
            mode: bits | self.mode,
            uid: self.uid,
            gid: self.gid,
            size,
            inode: self.inode,
            mtime,
        }
    }
}

/// The file system tree.
pub(crate) struct Tree {
    root: Node,
}

/// Splits a path; resolves `.` and `..` by name.
pub(crate) fn normalize(cwd: &str, path: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{cwd}/{path}")
    };
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name.to_owned()),
        }
    }
    parts
}

impl Tree {
    pub(crate) fn new() -> Tree {
        Tree {
            root: Node::new(Kind::Directory(BTreeMap::new()), 0o755, 0, 0),
        }
    }

    /// Returns the absolute path after all links; `follow` also resolves the last part.
    pub(crate) fn resolve(&self, parts: &[String], follow: bool) -> Result<Vec<String>, Errno> {
        let mut todo: Vec<String> = parts.iter().rev().cloned().collect();
        let mut done: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = todo.pop() {
            done.push(part);
            let last = todo.is_empty();
            if let Some(Node {
                kind: Kind::Link(to),
                ..
            }) = self.node(&done)
                && (!last || follow)
            {
                links += 1;
                if links > 40 {
                    return Err(Errno::Loop);
                }
                done.pop();
                let base = format!("/{}", done.join("/"));
                done.clear();
                todo.extend(normalize(&base, to).into_iter().rev());
            }
        }
        Ok(done)
    }

    /// Returns the node at a resolved path.
    pub(crate) fn node(&self, parts: &[String]) -> Option<&Node> {
        parts.iter().try_fold(&self.root, |node, part| {
            let Kind::Directory(entries) = &node.kind else {
                return None;
            };
            entries.get(part)
        })
    }

    /// Returns the node at a resolved path for changes.
    pub(crate) fn node_mut(&mut self, parts: &[String]) -> Option<&mut Node> {
        parts.iter().try_fold(&mut self.root, |node, part| {
            let Kind::Directory(entries) = &mut node.kind else {
                return None;
            };
            entries.get_mut(part)
        })
    }

    /// Adds or replaces a node at a path whose directory exists.
    pub(crate) fn put(&mut self, parts: &[String], node: Node) -> Result<(), Errno> {
        let (name, above) = parts.split_last().ok_or(Errno::Exists)?;
        let parent = self.node_mut(above).ok_or(Errno::NoEntry)?;
        let Kind::Directory(entries) = &mut parent.kind else {
            return Err(Errno::NotDirectory);
        };
        entries.insert(name.clone(), node);
        Ok(())
    }

    /// Adds or replaces a node of the system image; creates the directories above it.
    pub(crate) fn install(&mut self, path: &str, node: Node) {
        let mut parts = normalize("/", path);
        if let Some(name) = parts.pop()
            && let Kind::Directory(entries) = &mut self.directory(&parts.join("/")).kind
        {
            entries.insert(name, node);
        }
    }

    pub(crate) fn remove(&mut self, parts: &[String]) -> Option<Node> {
        let (name, above) = parts.split_last()?;
        match &mut self.node_mut(above)?.kind {
            Kind::Directory(entries) => entries.remove(name),
            _ => None,
        }
    }

    /// Creates a directory and its parents (0755, root), as in the system image.
    pub(crate) fn directory(&mut self, path: &str) -> &mut Node {
        let mut node = &mut self.root;
        for part in normalize("/", path) {
            if !matches!(node.kind, Kind::Directory(_)) {
                node.kind = Kind::Directory(BTreeMap::new());
            }
            let Kind::Directory(entries) = &mut node.kind else {
                unreachable!("made a directory just above");
            };
            node = entries
                .entry(part)
                .or_insert_with(|| Node::new(Kind::Directory(BTreeMap::new()), 0o755, 0, 0));
        }
        node
    }
}

/// Target of a path.
pub(crate) struct Entry {
    pub(crate) stat: Stat,
    pub(crate) label: &'static str,
    pub(crate) body: Body,
}

/// Contents of an [`Entry`].
pub(crate) enum Body {
    Directory(Vec<String>),
    File(Arc<FileData>),
    Link,
    Device(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_and_loops_end() {
        let mut tree = Tree::new();
        tree.directory("/storage/emulated/0");
        let link = |to: &str| Node::new(Kind::Link(to.to_owned()), 0o777, 0, 0);
        tree.put(&normalize("/", "/sdcard"), link("/storage/self"))
            .expect("root is there");
        tree.put(&normalize("/", "/storage/self"), link("emulated/0"))
            .expect("made above");
        tree.put(&normalize("/", "/a"), link("/a"))
            .expect("root is there");
        let resolved = tree.resolve(&normalize("/", "/sdcard/x"), true);
        assert_eq!(resolved, Ok(normalize("/", "/storage/emulated/0/x")));
        assert_eq!(tree.resolve(&normalize("/", "/a"), true), Err(Errno::Loop));
        assert_eq!(normalize("/a/b", "../c/./d"), ["a", "c", "d"]);
    }

    #[test]
    fn writing_past_the_end_fills_with_zeros() {
        let file = FileData::default();
        file.write_at(2, b"ab", 1);
        file.write_at(3, b"cd", 1);
        assert_eq!(file.contents(), b"\0\0acd");
    }
}
