//! What can go wrong between this host and a phone.

use std::io;
use std::time::Duration;

use crate::error::{Classified, ErrorClass};

/// Why talking to the adb server or the phone failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The connection ended before the answer was whole.
    #[error("the connection to {serial} was lost during {what}")]
    Lost {
        /// The device.
        serial: String,
        /// The operation.
        what: String,
        /// The socket's error, where there was one.
        #[source]
        source: Option<io::Error>,
    },
    /// No answer in time.
    #[error("{serial} did not answer to {what} within {} s", after.as_secs_f32())]
    Deadline {
        /// The device.
        serial: String,
        /// The operation.
        what: String,
        /// The time allowed.
        after: Duration,
    },
    /// The phone or the server said no.
    #[error("{serial} refused {what}: {text}")]
    Refused {
        /// The device.
        serial: String,
        /// The operation.
        what: String,
        /// Its words.
        text: String,
    },
    /// The sink of a pull ended it.
    #[error("could not keep what was pulled: {0}")]
    Sink(#[source] io::Error),
}

impl Classified for DeviceError {
    fn class(&self) -> ErrorClass {
        match self {
            DeviceError::Lost { .. }
            | DeviceError::Deadline { .. }
            | DeviceError::Refused { .. } => ErrorClass::Device,
            DeviceError::Sink(_) => ErrorClass::HostWrite,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            DeviceError::Lost { .. } => "connection-lost",
            DeviceError::Deadline { .. } => "device-silent",
            DeviceError::Refused { .. } => "device-refused",
            DeviceError::Sink(_) => "host-write",
        }
    }
}
