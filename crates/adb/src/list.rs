//! The adb server's list of devices: `host:devices-l`, `host:track-devices-l` and their short
//! forms. Owns the line grammar and the texts for each state; sends no requests.
//!
//! A long line is the serial padded to 22 columns, a space, the state, then `usb:…`, `product:…`,
//! `model:…`, `device:…` and `transport_id:…`. Each of these fields might be missing or empty. The
//! state might contain spaces (`no permissions (…); see […]`). So might the serial of a device
//! found by mDNS (`adb-1234 (2)._adb-tls-connect._tcp`). Therefore a line is parsed from its end. A
//! short line is serial, tab, state.

use std::fmt;

use super::printable::printable;

/// State of a device in the adb server's list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceState {
    /// Ready.
    Device,
    /// Listed, but not responding.
    Offline,
    /// The device is waiting for its user to allow this host.
    Unauthorized,
    /// The user on this host does not have access to the USB device; contains the server's text.
    NoPermissions(String),
    /// Any other state, as reported by the server: authorizing, connecting, recovery, sideload,
    /// bootloader, …
    Other(String),
}

impl DeviceState {
    /// Parses the server's word for a state.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        match text {
            "device" => DeviceState::Device,
            "offline" => DeviceState::Offline,
            "unauthorized" => DeviceState::Unauthorized,
            _ => match text.strip_prefix("no permissions") {
                Some(more) => DeviceState::NoPermissions(printable(more.trim().as_bytes())),
                None => DeviceState::Other(printable(text.as_bytes())),
            },
        }
    }

    /// Returns the stable identifier of this state, such as `device-offline`.
    pub fn kind(&self) -> &'static str {
        match self {
            DeviceState::Device => "device-ready",
            DeviceState::Offline => "device-offline",
            DeviceState::Unauthorized => "device-unauthorized",
            DeviceState::NoPermissions(_) => "device-no-permissions",
            DeviceState::Other(word) => match word.as_str() {
                "authorizing" => "device-authorizing",
                "connecting" => "device-connecting",
                "recovery" => "device-recovery",
                "sideload" => "device-sideload",
                "rescue" => "device-rescue",
                "bootloader" => "device-bootloader",
                _ => "device-not-ready",
            },
        }
    }

    /// Returns the next step for the user; `None` if the device is ready.
    pub fn fix(&self) -> Option<&'static str> {
        Some(match self {
            DeviceState::Device => return None,
            DeviceState::Offline => {
                "reconnect the cable, or switch USB debugging off and on in the device's developer \
                 options; an emulator might still be booting"
            }
            DeviceState::Unauthorized => {
                "unlock the device and accept \"Allow USB debugging\". If it does not ask, revoke \
                 USB debugging authorizations in its developer options and reconnect the cable."
            }
            DeviceState::NoPermissions(_) => {
                "install your distribution's Android udev rules (package \
                 android-sdk-platform-tools-common or android-udev-rules), join the group plugdev, \
                 log in again and reconnect the cable"
            }
            DeviceState::Other(word) => match word.as_str() {
                "authorizing" | "connecting" => {
                    "try again in a few seconds: the connection is being set up"
                }
                "recovery" | "sideload" | "rescue" | "bootloader" => {
                    "restart the device into Android: run `adb reboot`, or `fastboot reboot` if it \
                     is in the bootloader"
                }
                "detached" => "run `adb attach` or reconnect the device: another program uses it",
                _ => "reconnect the device, or run `adb devices -l` to see its state",
            },
        })
    }
}

impl fmt::Display for DeviceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceState::Device => "device",
            DeviceState::Offline => "offline",
            DeviceState::Unauthorized => "unauthorized",
            DeviceState::NoPermissions(_) => "no permissions",
            DeviceState::Other(word) => word,
        })
    }
}

/// One line of `host:devices-l`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDevice {
    /// Serial number; rarely, two devices share one.
    pub serial: String,
    /// Connection state.
    pub state: DeviceState,
    /// USB path, such as `1-4.2`; `None` for devices on the network.
    pub usb: Option<String>,
    /// Product name.
    pub product: Option<String>,
    /// Model name, with underscores for spaces.
    pub model: Option<String>,
    /// Device name.
    pub device: Option<String>,
    /// The server's number for this connection.
    pub transport_id: Option<u64>,
}

impl ListedDevice {
    /// A device that is not in the list.
    pub(super) fn absent(serial: &str) -> ListedDevice {
        bare(serial, "absent")
    }
}

impl fmt::Display for ListedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.serial, self.state)?;
        for text in [&self.model, &self.usb].into_iter().flatten() {
            write!(f, ", {text}")?;
        }
        if let Some(id) = self.transport_id {
            write!(f, ", transport:{id}")?;
        }
        f.write_str(")")
    }
}

/// Parses a whole list of long or short lines; skips blank lines.
pub fn parse_list(text: &str) -> Vec<ListedDevice> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(parse_line)
        .collect()
}

fn parse_line(line: &str) -> ListedDevice {
    let line = line.trim_end();
    if let Some((serial, state)) = line.split_once('\t') {
        return bare(serial, state);
    }
    let mut rest = line;
    let mut fields: [Option<&str>; 5] = [None; 5];
    // Parse fields from the end of the line.
    while let Some((before, word)) = rest.rsplit_once(' ') {
        let key = ["usb:", "product:", "model:", "device:", "transport_id:"]
            .iter()
            .position(|key| word.starts_with(key));
        let Some(key) = key else { break };
        let value = word.split_once(':').map_or("", |(_, value)| value);
        fields[key] = Some(value).filter(|value| !value.is_empty());
        rest = before.trim_end();
    }
    let (serial, state) = match rest.find(" no permissions") {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => rest.rsplit_once(' ').unwrap_or((rest, "")),
    };
    let owned = |index: usize| fields[index].map(|text| printable(text.as_bytes()));
    ListedDevice {
        usb: owned(0),
        product: owned(1),
        model: owned(2),
        device: owned(3),
        transport_id: fields[4].and_then(|id| id.parse().ok()),
        ..bare(serial, state)
    }
}

fn bare(serial: &str, state: &str) -> ListedDevice {
    ListedDevice {
        serial: printable(serial.trim().as_bytes()),
        state: match state.trim() {
            "" => DeviceState::Other("unknown".to_owned()),
            state => DeviceState::parse(state),
        },
        usb: None,
        product: None,
        model: None,
        device: None,
        transport_id: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(line: &str) -> ListedDevice {
        let mut devices = parse_list(line);
        assert_eq!(devices.len(), 1, "{line}");
        devices.remove(0)
    }

    #[test]
    fn a_usual_line() {
        let d = one(
            "0A041FDD4003BC         device usb:1-4.2 product:shiba model:Pixel_8 device:shiba transport_id:12",
        );
        assert_eq!(d.serial, "0A041FDD4003BC");
        assert_eq!(d.state, DeviceState::Device);
        assert_eq!(d.usb.as_deref(), Some("1-4.2"));
        assert_eq!(d.product.as_deref(), Some("shiba"));
        assert_eq!(d.model.as_deref(), Some("Pixel_8"));
        assert_eq!(d.device.as_deref(), Some("shiba"));
        assert_eq!(d.transport_id, Some(12));
    }

    #[test]
    fn lines_with_little_in_them() {
        let d = one("127.0.0.1:5601         device transport_id:1");
        assert_eq!(
            (d.serial.as_str(), d.transport_id, d.model),
            ("127.0.0.1:5601", Some(1), None)
        );
        let d = one("emulator-5554          unauthorized");
        assert_eq!(d.state, DeviceState::Unauthorized);
        let d =
            one("X                      offline usb:3-1 product: model: device: transport_id:9");
        assert_eq!(
            (d.state, d.product, d.model, d.device),
            (DeviceState::Offline, None, None, None)
        );
        let d = one("lonely");
        assert_eq!(
            (d.serial.as_str(), d.state.to_string()),
            ("lonely", "unknown".into())
        );
    }

    #[test]
    fn states_with_spaces() {
        let d = one(
            "????????????           no permissions (missing udev rules? user is in the plugdev group); see [http://developer.android.com/tools/device.html] usb:1-2 transport_id:3",
        );
        assert_eq!(d.serial, "????????????");
        assert_eq!(d.state.kind(), "device-no-permissions");
        assert_eq!(d.state.to_string(), "no permissions");
        assert_eq!((d.usb.as_deref(), d.transport_id), (Some("1-2"), Some(3)));
        assert_eq!(
            one("X                      no permissions").state,
            DeviceState::NoPermissions(String::new())
        );
    }

    #[test]
    fn serials_with_spaces_and_beyond_the_column() {
        let d = one(
            "adb-39021FDH2009QN-uRNlTs (2)._adb-tls-connect._tcp device product:shiba model:Pixel_8 device:shiba transport_id:4",
        );
        assert_eq!(
            d.serial,
            "adb-39021FDH2009QN-uRNlTs (2)._adb-tls-connect._tcp"
        );
        assert_eq!(d.state, DeviceState::Device);
        let d = one("(no serial number)     recovery usb:1-1 transport_id:2");
        assert_eq!(
            (d.serial.as_str(), d.state.kind()),
            ("(no serial number)", "device-recovery")
        );
    }

    #[test]
    fn short_lines() {
        let list = parse_list("A\tdevice\n\nB C\tno permissions (x y)\nD\t\n");
        assert_eq!(list.len(), 3);
        assert_eq!(list[0].state, DeviceState::Device);
        assert_eq!(list[1].serial, "B C");
        assert_eq!(list[1].state, DeviceState::NoPermissions("(x y)".into()));
        assert_eq!(list[2].state, DeviceState::Other("unknown".into()));
    }

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        let d = one("evil\u{1b}[2J             dev\u{7}ice model:a\u{1b}]0;x");
        assert!(!format!("{d} {:?}", d.state).contains(['\u{1b}', '\u{7}']));
    }

    #[test]
    fn every_state_but_ready_has_a_fix() {
        for (word, kind) in [
            ("offline", "device-offline"),
            ("unauthorized", "device-unauthorized"),
            ("no permissions (x)", "device-no-permissions"),
            ("authorizing", "device-authorizing"),
            ("recovery", "device-recovery"),
            ("rescue", "device-rescue"),
            ("sideload", "device-sideload"),
            ("bootloader", "device-bootloader"),
            ("host", "device-not-ready"),
            ("detached", "device-not-ready"),
            ("anything else", "device-not-ready"),
        ] {
            let state = DeviceState::parse(word);
            assert!(state.fix().is_some(), "{word}");
            assert_eq!(state.kind(), kind, "{word}");
        }
        assert_eq!(DeviceState::Device.fix(), None);
    }

    proptest! {
        #[test]
        fn what_the_server_prints_is_read_back(
            serial in "[!-~]{1,30}( \\([0-9]\\))?",
            state in "device|offline|unauthorized|recovery|sideload",
            usb in proptest::option::of("[0-9.-]{1,9}"),
            model in proptest::option::of("[A-Za-z0-9_]{1,12}"),
            id in proptest::option::of(any::<u64>()),
        ) {
            let mut line = format!("{serial:22} {state}");
            for (key, value) in [("usb", &usb), ("model", &model), ("transport_id", &id.map(|i| i.to_string()))] {
                if let Some(value) = value {
                    line.push_str(&format!(" {key}:{value}"));
                }
            }
            let d = parse_line(&line);
            prop_assert_eq!(d.serial, serial);
            prop_assert_eq!(d.state.to_string(), state);
            prop_assert_eq!(d.usb, usb);
            prop_assert_eq!(d.model, model);
            prop_assert_eq!(d.transport_id, id);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,200}|[ \tA-Za-z:_0-9\n]{0,200}") {
            for d in parse_list(&text) {
                prop_assert!(!d.to_string().is_empty());
            }
        }
    }
}
