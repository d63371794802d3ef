//! Which device is which, independent of cable and address. Sessions, locks and the journals of
//! settings follow this one rule.

use super::journal::{SessionHeader, SessionState};
use super::probe::QUICK;
use crate::error::CaptureError;
use heaptap_adb::{Address, Command, Device, DeviceError};

/// Returns the serial number of its own that tells a device from all others. Emulators of one image
/// share theirs, and some devices report none, or a placeholder.
fn own_serial<'a>(serial: &str, hardware_serial: &'a str) -> Option<&'a str> {
    let tells = !matches!(hardware_serial, "" | "unknown" | "0123456789ABCDEF");
    let is_emulator = serial.starts_with("emulator-") || hardware_serial.starts_with("EMULATOR");
    (tells && !is_emulator).then_some(hardware_serial)
}

/// Returns the ID of a device: its own serial number, or adb's at its server if that does not tell.
pub fn identity(serial: &str, hardware_serial: &str, server: &str) -> String {
    if let Some(own) = own_serial(serial, hardware_serial) {
        return own.to_owned();
    }
    // Most hosts have only this server.
    let is_usual =
        Address::parse(server, "the adb server").is_ok_and(|at| at.is_same(&Address::local()));
    match is_usual || server.is_empty() {
        true => serial.to_owned(),
        false => format!("{serial}@{server}"),
    }
}

/// Facts of a connected device that tell whether a session is of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DeviceIdentity {
    serial: String,
    server: String,
    boot_id: String,
    /// `ro.serialno`; empty if the device does not report it.
    hardware_serial: String,
}

const FACTS: &str = "cat /proc/sys/kernel/random/boot_id; getprop ro.serialno";

impl DeviceIdentity {
    /// Asks the device.
    ///
    /// # Errors
    /// Returns an error if the device cannot be reached.
    async fn read(device: &Device) -> Result<DeviceIdentity, DeviceError> {
        let question = Command::script(FACTS).called("checking the device identity");
        let text = device.text(&question, QUICK).await?;
        let mut lines = text.lines().map(|line| line.trim().to_owned());
        Ok(DeviceIdentity {
            serial: device.serial().to_owned(),
            server: device.server().address(),
            boot_id: lines.next().unwrap_or_default(),
            hardware_serial: lines.next().unwrap_or_default(),
        })
    }

    /// Returns whether the session of `header` runs or ran on the device: in this boot, or on the
    /// device with this serial number of its own. The serial that adb uses can be an address that
    /// another device has by now.
    fn has(&self, header: &SessionHeader) -> bool {
        if self.boot_id == header.boot_id.0 {
            return true;
        }
        let then = header.hardware_serial.as_deref().unwrap_or_default();
        let now = own_serial(&self.serial, &self.hardware_serial);
        match (now, own_serial(&header.serial, then)) {
            (Some(now), Some(then)) => now == then,
            // On a cable, adb uses the same one.
            (Some(now), None) => now == header.serial,
            (None, then) => {
                let can_be = then.is_none() || self.hardware_serial.is_empty();
                can_be && self.serial == header.serial && self.is_at(&header.server)
            }
        }
    }

    fn is_at(&self, server: &str) -> bool {
        let parse = |text: &str| Address::parse(text, "the session journal");
        match (parse(&self.server), parse(server)) {
            (Ok(own), Ok(server)) => own.is_same(&server),
            // A server inside this process has no such address.
            _ => self.server == server,
        }
    }
}

/// Returns whether the session of `header` is of `device`.
///
/// # Errors
/// Returns an error if the device cannot be reached.
pub async fn is_phone_of(device: &Device, header: &SessionHeader) -> Result<bool, CaptureError> {
    Ok(DeviceIdentity::read(device).await?.has(header))
}

/// Keeps the sessions that are of `device`, which is asked only if there are sessions.
///
/// # Errors
/// Returns an error if the device cannot be reached.
pub async fn retain_of(
    device: &Device,
    sessions: &mut Vec<SessionState>,
) -> Result<(), CaptureError> {
    if !sessions.is_empty() {
        let own = DeviceIdentity::read(device).await?;
        sessions.retain(|session| own.has(&session.header));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "127.0.0.1:5037";
    const THERE: &str = "10.0.0.2:5037";

    #[test]
    fn a_phone_is_the_same_by_any_cable_and_an_emulator_is_not_another() {
        assert_eq!(
            identity("R5", "R5", HERE),
            identity("10.0.0.7:5555", "R5", THERE)
        );
        let shared = "EMULATOR34X1X5X0";
        for (serial, server, id) in [
            ("emulator-5554", HERE, "emulator-5554"),
            ("emulator-5554", "localhost:5037", "emulator-5554"),
            // Journals of earlier versions do not have an address.
            ("emulator-5554", "", "emulator-5554"),
            ("emulator-5556", HERE, "emulator-5556"),
            ("emulator-5554", THERE, "emulator-5554@10.0.0.2:5037"),
            (
                "emulator-5554",
                "localhost:5038",
                "emulator-5554@localhost:5038",
            ),
            ("10.0.0.7:5555", HERE, "10.0.0.7:5555"),
        ] {
            assert_eq!(identity(serial, shared, server), id);
        }
        assert_eq!(identity("10.0.0.7:5555", "", HERE), "10.0.0.7:5555");
    }

    #[test]
    fn a_session_is_of_the_device_of_its_boot_or_of_its_serial_number() {
        let session = |serial: &str, hardware_serial: &str, server: &str| {
            let mut header = crate::session::journal::tests::header();
            header.serial = serial.to_owned();
            header.hardware_serial =
                (!hardware_serial.is_empty()).then(|| hardware_serial.to_owned());
            header.server = server.to_owned();
            header
        };
        let device = |serial: &str, hardware_serial: &str, server: &str| DeviceIdentity {
            serial: serial.to_owned(),
            server: server.to_owned(),
            boot_id: "another boot".to_owned(),
            hardware_serial: hardware_serial.to_owned(),
        };
        let net = "10.0.0.7:5555";
        let phone = session("R4", "R4", HERE);
        assert!(device("R4", "R4", HERE).has(&phone));
        assert!(device(net, "R4", THERE).has(&phone), "on the network");
        assert!(device("R4", "", HERE).has(&phone), "no answer");
        assert!(!device("R4", "R5", HERE).has(&phone));
        assert!(
            !device(net, "R5", HERE).has(&session(net, "R4", HERE)),
            "same address"
        );
        let mut same_boot = device(net, "", THERE);
        same_boot.boot_id.clone_from(&phone.boot_id.0);
        assert!(same_boot.has(&phone));
        // The journal has no serial number of its own.
        let nameless = session("R4", "", HERE);
        assert!(device("R4", "", "localhost:5037").has(&nameless));
        assert!(device(net, "R4", HERE).has(&nameless));
        assert!(!device("R5", "R5", HERE).has(&nameless));
        // Serial numbers that tell nothing: adb's at its server has to.
        for shared in ["EMULATOR35X1X5X0", "unknown", "0123456789ABCDEF"] {
            let name = "emulator-5554";
            let own = session(name, shared, HERE);
            assert!(device(name, shared, HERE).has(&own), "{shared}");
            assert!(!device(name, shared, THERE).has(&own), "{shared}");
            assert!(!device("emulator-5556", shared, HERE).has(&own), "{shared}");
            let networked = session(net, shared, HERE);
            assert!(device(net, shared, HERE).has(&networked), "{shared}");
            assert!(!device("10.0.0.8:5555", shared, HERE).has(&networked));
            assert!(!device(net, "R4", HERE).has(&networked), "{shared}");
        }
    }
}
