//! File operations of a process: paths to nodes, including /proc, with the permission checks of the
//! phone's kernel.

use super::access::{Cred, FileAction, Want, label_allows, mode_allows};
use super::clock::SECOND;
use super::faults::FaultKind;
use super::fs::{Body, DIRECTORY, Entry, Errno, FileData, Kind, Node, Stat, normalize};
use super::io::Fd;
use super::kernel::Kernel;
use super::procfs;
use super::state::State;

impl Kernel {
    fn lookup(
        &self,
        state: &State,
        cred: &Cred,
        parts: &[String],
        follow: bool,
    ) -> Result<(Entry, Vec<String>), Errno> {
        let parts = state.tree.resolve(parts, follow)?;
        if parts.first().is_some_and(|p| p == "proc") && parts.len() > 1 {
            let entry = procfs::lookup(self, state, cred, &parts[1..])?;
            return Ok((entry, parts));
        }
        for depth in 0..parts.len() {
            let node = state.tree.node(&parts[..depth]).ok_or(Errno::NoEntry)?;
            let stat = node.stat();
            if stat.mode & DIRECTORY == 0 {
                return Err(Errno::NotDirectory);
            }
            if !mode_allows(cred, &stat, Want::Search) {
                return Err(Errno::Access);
            }
        }
        let node = state.tree.node(&parts).ok_or(Errno::NoEntry)?;
        let body = match &node.kind {
            Kind::Directory(entries) => {
                let mut names: Vec<String> = entries.keys().cloned().collect();
                if parts.len() == 1 && parts[0] == "proc" {
                    names.extend(procfs::names(state));
                }
                Body::Directory(names)
            }
            Kind::File(data) => Body::File(data.clone()),
            Kind::Link(_) => Body::Link,
            Kind::Device(name) => Body::Device(name),
        };
        let entry = Entry {
            stat: node.stat(),
            label: node.label,
            body,
        };
        Ok((entry, parts))
    }

    /// Returns the entry at `path`; requires only search permission.
    pub(crate) fn entry(
        &self,
        cred: &Cred,
        cwd: &str,
        path: &str,
        follow: bool,
    ) -> Result<Entry, Errno> {
        if path.is_empty() {
            return Err(Errno::NoEntry);
        }
        let state = self.state();
        let found = self.lookup(&state, cred, &normalize(cwd, path), follow)?;
        Ok(found.0)
    }

    /// Returns the entry at `path` if it can be read.
    fn readable(&self, cred: &Cred, cwd: &str, path: &str) -> Result<Entry, Errno> {
        let entry = self.entry(cred, cwd, path, true)?;
        let (label, enforcing) = (entry.label, self.state().enforcing);
        let is_allowed = mode_allows(cred, &entry.stat, Want::Read)
            && label_allows(&self.spec, enforcing, cred, label, FileAction::Read);
        is_allowed.then_some(entry).ok_or(Errno::Access)
    }

    /// Returns the sorted names in a directory, without `.` and `..`.
    pub(crate) fn list(&self, cred: &Cred, cwd: &str, path: &str) -> Result<Vec<String>, Errno> {
        match self.readable(cred, cwd, path)?.body {
            Body::Directory(names) => Ok(names),
            _ => Err(Errno::NotDirectory),
        }
    }

    /// Opens a file for reading.
    pub(crate) fn open_read(&self, cred: &Cred, cwd: &str, path: &str) -> Result<Fd, Errno> {
        match self.readable(cred, cwd, path)?.body {
            Body::File(data) => Ok(Fd::file(data, false)),
            Body::Device(name) => Ok(device(name)),
            Body::Directory(_) => Err(Errno::IsDirectory),
            Body::Link => Err(Errno::Loop),
        }
    }

    /// Returns all bytes of a file.
    pub(crate) fn read_all(&self, cred: &Cred, cwd: &str, path: &str) -> Result<Vec<u8>, Errno> {
        match self.open_read(cred, cwd, path)? {
            Fd::File { data, .. } => Ok(data.contents()),
            _ => Ok(Vec::new()),
        }
    }

    /// Opens a file for writing; creates it with `mode` if it is new.
    pub(crate) fn open_write(
        &self,
        cred: &Cred,
        cwd: &str,
        path: &str,
        mode: u32,
        append: bool,
    ) -> Result<Fd, Errno> {
        let mut state = self.state();
        let parts = normalize(cwd, path);
        match self.lookup(&state, cred, &parts, true) {
            Ok((entry, _)) => {
                if matches!(entry.body, Body::Directory(_)) {
                    return Err(Errno::IsDirectory);
                }
                if parts.first().is_some_and(|p| p == "system" || p == "apex") {
                    return Err(Errno::ReadOnly);
                }
                let action = FileAction::Write;
                if !mode_allows(cred, &entry.stat, Want::Write)
                    || !label_allows(&self.spec, state.enforcing, cred, entry.label, action)
                {
                    return Err(Errno::Access);
                }
                match entry.body {
                    Body::File(data) => {
                        if !append {
                            data.truncate(0);
                        }
                        Ok(Fd::file(data, append))
                    }
                    Body::Device(name) => Ok(device(name)),
                    _ => Err(Errno::IsDirectory),
                }
            }
            Err(Errno::NoEntry) => {
                let data = FileData::new(Vec::new(), (self.clock.real() / SECOND) as i64);
                let kind = Kind::File(data.clone());
                self.create(&mut state, cred, &parts, kind, mode & 0o777)?;
                Ok(Fd::file(data, append))
            }
            Err(other) => Err(other),
        }
    }

    /// Returns the resolved path of a name to be created or removed; its directory must be
    /// writable.
    fn parent_for_change(
        &self,
        state: &State,
        cred: &Cred,
        parts: &[String],
        action: FileAction,
    ) -> Result<Vec<String>, Errno> {
        let (name, above) = parts.split_last().ok_or(Errno::Perm)?;
        let (parent, mut resolved) = self.lookup(state, cred, above, true)?;
        if parent.stat.mode & DIRECTORY == 0 {
            return Err(Errno::NotDirectory);
        }
        if resolved.is_empty() || ["system", "apex", "vendor"].contains(&resolved[0].as_str()) {
            return Err(Errno::ReadOnly);
        }
        if !mode_allows(cred, &parent.stat, Want::Write)
            || !label_allows(&self.spec, state.enforcing, cred, parent.label, action)
        {
            return Err(Errno::Access);
        }
        resolved.push(name.clone());
        Ok(resolved)
    }

    /// Returns what `stat` reports.
    pub(crate) fn told_stat(&self, mut stat: Stat) -> Stat {
        if let Some(more) = self.faults.strikes(FaultKind::StatLies) {
            stat.size = stat.size.saturating_add_signed(more.unwrap_or(0));
        }
        stat
    }

    /// Removes a file.
    pub(crate) fn remove(&self, cred: &Cred, cwd: &str, path: &str) -> Result<(), Errno> {
        let mut state = self.state();
        let parts = normalize(cwd, path);
        let (entry, _) = self.lookup(&state, cred, &parts, false)?;
        if matches!(entry.body, Body::Directory(_)) {
            return Err(Errno::IsDirectory);
        }
        let resolved = self.parent_for_change(&state, cred, &parts, FileAction::Remove)?;
        let parent = &state.tree.node(&resolved[..resolved.len() - 1]);
        if let Some(parent) = parent
            && parent.mode & 0o1000 != 0
            && !cred.is_root()
            && cred.uid != entry.stat.uid
            && cred.uid != parent.uid
        {
            return Err(Errno::Perm);
        }
        if resolved.get(2).is_some_and(|d| d == "perfetto-traces")
            && self.faults.has_struck(FaultKind::RmFail)
        {
            return Err(Errno::Access);
        }
        state.tree.remove(&resolved);
        drop(state);
        self.events.notify();
        Ok(())
    }

    pub(crate) fn make_directory(&self, cred: &Cred, cwd: &str, path: &str) -> Result<(), Errno> {
        let mut state = self.state();
        let parts = normalize(cwd, path);
        if self.lookup(&state, cred, &parts, true).is_ok() {
            return Err(Errno::Exists);
        }
        let kind = Kind::Directory(Default::default());
        self.create(&mut state, cred, &parts, kind, 0o771)
    }

    /// Creates a node, with the label of its directory.
    fn create(
        &self,
        state: &mut State,
        cred: &Cred,
        parts: &[String],
        kind: Kind,
        mode: u32,
    ) -> Result<(), Errno> {
        let resolved = self.parent_for_change(state, cred, parts, FileAction::Write)?;
        let mut node = Node::new(kind, mode, cred.uid, cred.gid);
        let parent = state.tree.node(&resolved[..resolved.len() - 1]);
        node.label = parent.map_or("system_file", |parent| parent.label);
        node.mtime = (self.clock.real() / SECOND) as i64;
        state.tree.put(&resolved, node)?;
        self.events.notify();
        Ok(())
    }
}

fn device(name: &str) -> Fd {
    match name {
        "zero" => Fd::Zero,
        _ => Fd::Null,
    }
}
