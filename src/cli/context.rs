//! What every command is given: the console, the global flags, and the device on demand.

use tokio::sync::OnceCell;

use super::args::Globals;
use super::console::Console;
use crate::device::Device;
use crate::error::{ErrorClass, Failure};

/// What every command is given.
pub struct Context {
    /// Where to talk.
    pub console: Console,
    /// The global flags.
    pub globals: Globals,
    device: OnceCell<Device>,
}

impl Context {
    /// Takes the flags; connects to nothing yet.
    ///
    /// # Errors
    /// Where two global flags contradict each other.
    pub fn new(console: Console, globals: Globals) -> Result<Self, Failure> {
        Ok(Context {
            console,
            globals,
            device: OnceCell::new(),
        })
    }

    /// The device that the flags name, connected on first use; with `--virtual`, a virtual
    /// phone in this process, reached over loopback like any other.
    ///
    /// # Errors
    /// No device, several and none named, unauthorized, offline, no adb server: each in its
    /// own words.
    pub async fn device(&self) -> Result<&Device, Failure> {
        self.device
            .get_or_try_init(|| async {
                Err(Failure::new(
                    ErrorClass::NoDevice,
                    "not-built",
                    "this build cannot reach devices yet",
                ))
            })
            .await
    }
}
