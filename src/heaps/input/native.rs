//! Native heaps of an input: the dumps that are meant as named stacks, and all that is known
//! beside them.

use std::path::PathBuf;

use crate::analyze::sampling::Estimate;
use crate::error::ErrorClass;
use crate::profile::SystemInfo;
use crate::results::findings::{Finding, NAMES_MISSING};
use crate::results::manifest::{Manifest, Symbolization, Totals};
use crate::stacks::{Dump, Facts, JoinBy, StackProfile, join};
use crate::timeline::Timeline;
use crate::untrusted::shell::quoted_path;

/// A dump of an input, chosen or not.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedDump {
    /// What is known of it.
    pub facts: Facts,
    /// All labels that are bound to it.
    pub labels: Vec<String>,
    /// Its sums; absent where its columns are another tool's.
    pub totals: Option<Totals>,
    /// Bytes held with their error; absent where it is not known, and where nobody asked for it.
    pub held: Option<Estimate>,
    /// Distinct callsites.
    pub callsites: u64,
}

impl ListedDump {
    /// In words: `@2 (after-login) libc.malloc of com.example.app (2050)`.
    pub fn describe(&self) -> String {
        let facts = &self.facts;
        let mut text = format!("@{}", facts.number);
        if !self.labels.is_empty() {
            text += &format!(" ({})", self.labels.join(", "));
        }
        if !facts.heap.is_empty() {
            text += &format!(" {}", facts.heap);
        }
        match (facts.process.as_str(), facts.pid) {
            ("", 0) => {}
            ("", pid) => text += &format!(" of {pid}"),
            (name, 0) => text += &format!(" of {name}"),
            (name, pid) => text += &format!(" of {name} ({pid})"),
        }
        text
    }
}

/// The native heaps of an input.
#[derive(Debug)]
pub struct NativeFile {
    /// The file or folder as it was typed.
    pub path: PathBuf,
    /// The dumps that are meant, in order of time; at least one.
    pub profile: StackProfile,
    /// All dumps of the input, in order of time.
    pub listed: Vec<ListedDump>,
    /// Dumps of Java heaps beside them.
    pub java_dumps: usize,
    /// What the user should know of the input and the dumps that are meant.
    pub findings: Vec<Finding>,
    /// The recording's manifest, where the input is or lies in its folder.
    pub manifest: Option<Manifest>,
    /// The system that was recorded, as far as a trace tells.
    pub system: SystemInfo,
    /// What traces say of the processes' memory beside heaps, where it was asked for.
    pub memory: Timeline,
    /// How many frames of the dumps that are meant have names; absent for pprofs.
    pub symbolization: Option<Symbolization>,
}

/// Share of the bytes from which on functions without a name matter for what is shown.
pub(crate) const MANY_UNNAMED: f64 = 0.05;

impl NativeFile {
    /// That much was allocated in functions without a name, and what names them.
    pub fn names_missing(&self) -> Option<Finding> {
        let share = self.symbolization.as_ref()?.leaf_share_unnamed;
        let remedy = match self.path.is_dir() {
            true => format!(
                "heaptap symbolize {} --symbols DIR",
                quoted_path(&self.path)
            ),
            // As of the command that tells it.
            false => "--symbols DIR".to_owned(),
        };
        (share >= MANY_UNNAMED).then(|| Finding {
            kind: NAMES_MISSING,
            class: None,
            message: format!(
                "functions without a name allocated {:.1}% of the bytes; DIR with unstripped \
                 libraries names them: {remedy}",
                share * 100.0,
            ),
            help: None,
            pid: None,
        })
    }

    /// What the exit code tells of; `None` where nothing is missing.
    pub fn class(&self) -> Option<ErrorClass> {
        let classes = self.findings.iter().filter_map(|finding| finding.class);
        let is_empty = |dump: &Dump| dump.values.nodes.is_empty();
        if self.profile.dumps.iter().all(is_empty) {
            // That nothing came says more than what kept it from coming.
            let graver = classes.filter(|class| *class != ErrorClass::Incomplete);
            return ErrorClass::first_of(graver.chain([ErrorClass::Empty]));
        }
        ErrorClass::first_of(classes)
    }

    /// What a dump is called beside others: `PATH`, `PATH@LABEL` or, of several, `PATH@N`.
    pub fn name_of(&self, dump: &Dump) -> String {
        let path = self.path.display();
        match &dump.facts.label {
            Some(label) => format!("{path}@{label}"),
            None if self.listed.len() > 1 => format!("{path}@{}", dump.facts.number),
            None => path.to_string(),
        }
    }

    /// How many dumps of its process and heap the input has.
    pub fn count_of(&self, dump: &Dump) -> usize {
        let listed = self.listed.iter();
        let same = listed.filter(|listed| listed.facts.is_of_heap(&dump.facts));
        same.count().max(dump.facts.number as usize)
    }

    /// A dump in words, as [`ListedDump::describe`].
    pub fn describe(&self, dump: &Dump) -> String {
        let is = |listed: &&ListedDump| listed.facts.is_dump(&dump.facts);
        let listed = self.listed.iter().find(is);
        listed.map_or_else(|| format!("@{}", dump.facts.number), ListedDump::describe)
    }
}

/// The profiles of several traces in one table.
pub(super) fn joined(mut profiles: Vec<StackProfile>) -> StackProfile {
    if profiles.len() == 1
        && let Some(only) = profiles.pop()
    {
        return only;
    }
    let tables: Vec<_> = profiles.iter().map(|profile| &profile.table).collect();
    let joined = join(&tables, JoinBy::Exact);
    let mut dumps = Vec::new();
    for (profile, nodes) in profiles.into_iter().zip(&joined.nodes) {
        for mut dump in profile.dumps {
            dump.move_to(nodes);
            dumps.push(dump);
        }
    }
    StackProfile {
        table: joined.table,
        dumps,
    }
}
