//! One operation on a device: its deadline, and the error for a failed protocol step.

use std::future::Future;
use std::time::Duration;

use tokio::time::timeout;

use super::error::DeviceError;
use super::list::DeviceState;
use super::wire::WireError;

/// Description of an operation on a device, for messages and deadlines.
#[derive(Clone, Copy)]
pub(super) struct Operation<'a> {
    pub(super) serial: &'a str,
    pub(super) what: &'a str,
}

impl Operation<'_> {
    /// Converts the failure of a protocol step to the error of this operation.
    pub(super) fn error(self, error: WireError) -> DeviceError {
        let (serial, what) = (self.serial.to_owned(), self.what.to_owned());
        match error {
            WireError::Closed(source) => DeviceError::Lost {
                serial,
                what,
                source,
            },
            WireError::Fail(text) => {
                self.unusable(&text)
                    .unwrap_or(DeviceError::Refused { serial, what, text })
            }
            WireError::Garbled(detail) => DeviceError::Garbled {
                serial,
                what,
                detail,
            },
        }
    }

    /// Returns an error if the server's text shows that the state of the device stops the
    /// operation.
    pub(super) fn unusable(self, text: &str) -> Option<DeviceError> {
        let state = |state| {
            Some(DeviceError::NotReady {
                serial: self.serial.to_owned(),
                state,
            })
        };
        if text == "device offline" {
            state(DeviceState::Offline)
        } else if text.starts_with("device unauthorized") {
            state(DeviceState::Unauthorized)
        } else if text.starts_with("device still authorizing") {
            state(DeviceState::Other("authorizing".to_owned()))
        } else if text.starts_with("device still connecting") {
            state(DeviceState::Other("connecting".to_owned()))
        } else if text.starts_with("insufficient permissions") {
            state(DeviceState::NoPermissions(text.to_owned()))
        } else if (text.starts_with("device ") && text.ends_with(" not found"))
            || text.starts_with("no devices")
            || text == "device not found"
            || text.starts_with("no device with transport id")
        {
            Some(DeviceError::Gone {
                serial: self.serial.to_owned(),
                what: self.what.to_owned(),
            })
        } else if text == "closed" || text == "error: closed" {
            // The server's text for a transport that disappeared while a service was being opened.
            Some(DeviceError::Lost {
                serial: self.serial.to_owned(),
                what: self.what.to_owned(),
                source: None,
            })
        } else {
            None
        }
    }

    /// Runs one protocol step with a time limit.
    pub(super) async fn within<T>(
        self,
        limit: Duration,
        step: impl Future<Output = Result<T, WireError>>,
    ) -> Result<T, DeviceError> {
        self.within_device(limit, async { step.await.map_err(|e| self.error(e)) })
            .await
    }

    /// Runs a whole operation with a time limit.
    pub(super) async fn within_device<T>(
        self,
        limit: Duration,
        operation: impl Future<Output = Result<T, DeviceError>>,
    ) -> Result<T, DeviceError> {
        timeout(limit, operation).await.unwrap_or_else(|_| {
            Err(DeviceError::Deadline {
                serial: self.serial.to_owned(),
                what: self.what.to_owned(),
                after: limit,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_replug_makes_the_server_say_is_a_lost_connection() {
        let op = Operation {
            serial: "x1",
            what: "stat /x",
        };
        for text in ["closed", "device offline", "device 'x1' not found"] {
            let error = op.error(WireError::Fail(text.to_owned()));
            assert!(error.is_connection(), "{text}: {error}");
        }
        let refused = op.error(WireError::Fail("permission denied".to_owned()));
        assert!(!refused.is_connection(), "{refused}");
    }
}
