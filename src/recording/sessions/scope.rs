//! The sessions of a device and an adb server, as the flags of the command line name them.

use heaptap_adb::Address;
use heaptap_capture::session::SessionHeader;

/// Device flags of the command line. `None` includes sessions of every server or device.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The adb server.
    pub server: Option<Address>,
    /// Serial number of the device.
    pub serial: Option<String>,
}

impl Scope {
    pub(super) fn holds(&self, header: &SessionHeader) -> bool {
        let server = |wanted: &Address| at_server(header, wanted);
        // A network address can be typed without its port, as in adb.
        let serial =
            |wanted: &String| header.serial == *wanted || header.serial == format!("{wanted}:5555");
        self.server.as_ref().is_none_or(server) && self.serial.as_ref().is_none_or(serial)
    }
}

/// Returns whether the session's adb server is the one at `address`.
pub fn at_server(header: &SessionHeader, address: &Address) -> bool {
    Address::parse(&header.server, "the session journal").is_ok_and(|own| own.is_same(address))
}
