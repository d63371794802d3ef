//! Selection of processes, as heapprofd does it for native and for Java dumps.

use crate::clock::{BootNs, MILLI};
use crate::kernel::Kernel;
use crate::packages;
use crate::process::{Process, Role};
use crate::shell::pattern;
use crate::spec::BuildType;
use crate::state::State;

/// Returns the part of a command line that plain names are compared with: argv0, cut at `@`,
/// without its directories.
fn normalized(argv0: &str) -> &str {
    let cut = argv0.split('@').next().unwrap_or(argv0);
    cut.rsplit('/').next().unwrap_or(cut)
}

/// Returns whether a config names a process. Of the names that are patterns, only one with a
/// leading `/` includes the directories.
pub(super) fn is_named(
    names: &[String],
    process: &Process,
    is_pattern: impl Fn(&str) -> bool,
) -> bool {
    let argv0 = process.name();
    names.iter().any(|name| match is_pattern(name) {
        true if name.starts_with('/') => pattern::matches_text(name, argv0),
        true => pattern::matches_text(name, process.base_name()),
        false => normalized(name) == normalized(argv0),
    })
}

/// A source's conditions for a process besides its name.
pub(super) struct Conditions<'a> {
    pub(super) installed_by: &'a [String],
    /// Installer of a UID without a package; `None` fails the condition.
    pub(super) orphan: Option<&'a str>,
    pub(super) least_kb: u32,
}

/// Returns whether SELinux and the conditions permit a dump of a process.
pub(super) fn permitted(
    kernel: &Kernel,
    state: &State,
    process: &Process,
    conditions: &Conditions<'_>,
) -> bool {
    let spec = &kernel.spec;
    if matches!(process.role, Role::Zygote)
        || (state.enforcing && packages::never_profile(spec.android, &process.domain))
    {
        return false;
    }
    let wanted = conditions.installed_by;
    if !wanted.is_empty() && spec.android >= 12 && spec.build == BuildType::User {
        let is_wanted = |installer: &str| wanted.iter().any(|i| i == installer);
        let appid = process.uid % 100_000;
        let mut own = state.packages.iter().filter(|p| p.appid == appid);
        let passes = match own.clone().next() {
            Some(_) => own.any(|p| is_wanted(p.installer.unwrap_or("@null"))),
            None => conditions.orphan.is_some_and(is_wanted),
        };
        if !passes {
            return false;
        }
    }
    let least = u64::from(conditions.least_kb);
    let ledger = || kernel.memory.ledger(state, process, kernel.clock.boot());
    least == 0 || ledger().is_none_or(|l| l.resident().0 >= least)
}

/// Returns the time of the next periodic dump: a phone that was stopped skips missed ones.
pub(super) fn next_dump(at: BootNs, now: BootNs, period_ms: u32) -> BootNs {
    let period = u64::from(period_ms) * MILLI;
    let missed = now.saturating_sub(at) / period.max(1);
    at + (missed + 1) * period
}
