//! Mutable state of a phone, protected by its kernel's single lock.

use std::collections::BTreeMap;

use super::fs::Tree;
use super::logcat::Log;
use super::packages::{InstallSession, Package};
use super::process::{Process, Processes};
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

impl State {
    /// Returns an installed package by its name.
    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// Returns the package of a process.
    pub(crate) fn package_of(&self, process: &Process) -> Option<&Package> {
        self.package(process.app()?.0)
    }
}
