//! The device layer against scripted servers: the meaning of each answer, and that only a complete
//! answer counts.

mod files;
mod garbage;
mod host;
mod shells;

use std::time::Duration;

/// Time limit in tests. With paused time it costs nothing and expires only if nothing else can
/// happen.
const SOON: Duration = Duration::from_secs(3);
