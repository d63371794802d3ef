//! Which processes may be profiled, why not, and what would help.
//!
//! Three steps, so that everything but the shell calls is pure:
//! 1. **facts**: [`facts`] asks the phone in two or three shell calls and gives
//!    [`DeviceFacts`]; packages and processes are read in [`assess`] for the targets alone;
//! 2. **decision**: the rules of heapprofd and of the platform over those facts;
//! 3. **words**: each [`Finding`] says what, why and the fix.
//!
//! [`assess`] is the first step of a recording: it also resolves names with `*` and packages
//! to the names and pids that the config gets. Nothing here records, prints or changes the
//! phone.
//!
//! Facts about the rules: `docs/eligibility.md`.

mod facts;
pub mod names;
mod packages;
mod processes;
mod properties;
mod sections;
mod untrusted;

pub use facts::{AndroidUser, BuildType, DeviceFacts, Root, Selinux, TracingSession};
pub use packages::{AppType, AppTypeSource, Package, PackageRow};
pub use processes::{Pid, Process, ProcessKind};
pub use untrusted::shown;
