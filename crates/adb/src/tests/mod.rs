//! The device layer against scripted servers: what each answer means, and that nothing but a
//! whole answer counts as one.

mod files;
mod garbage;
mod host;
mod shells;

use std::time::Duration;

/// Under paused time a deadline costs nothing and passes only when nothing else can happen.
const SOON: Duration = Duration::from_secs(3);
