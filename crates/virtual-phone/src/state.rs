//! Mutable state of a phone, protected by its kernel's single lock.

use std::collections::BTreeMap;

use super::fs::Tree;
use super::logcat::Log;
use super::packages::{InstallSession, Package};
use super::process::Processes;
use super::screen::Screen;
use super::traced::Tracing;

/// Mutable state of a phone.
pub(crate) struct State {
    pub(crate) processes: Processes,
    pub(crate) tree: Tree,
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) packages: Vec<Package>,
    pub(crate) enforcing: bool,
    pub(crate) boot_id: String,
    pub(crate) log: Log,
    pub(crate) tracing: Tracing,
    pub(crate) foreground: String,
    pub(crate) screen_on: bool,
    pub(crate) screen: Screen,
    /// Installation sessions that are not committed.
    pub(crate) installs: BTreeMap<u32, InstallSession>,
}
