//! Selection of a listed device: `-s`, `ANDROID_SERIAL`, or the only device. Owns adb's selector
//! syntax and the errors of a selection; sends no requests.

use std::fmt;

use super::error::DeviceError;
use super::list::{DeviceState, ListedDevice};

/// Selector of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selector {
    /// The only connected device.
    Only,
    /// Serial number. A network address without a port gets adb's port 5555.
    Serial(String),
    /// `usb:PATH`, as listed by the server.
    Usb(String),
    /// `product:NAME`.
    Product(String),
    /// `model:NAME`, with underscores for spaces.
    Model(String),
    /// `device:NAME`.
    Device(String),
    /// `transport:ID`, the server's number for one connection.
    Transport(u64),
}

impl Selector {
    /// Parses the argument of `-s`. A text without one of adb's prefixes is a serial.
    pub fn parse(text: &str) -> Self {
        let value = |prefix: &str| text.strip_prefix(prefix).map(str::to_owned);
        if let Some(path) = value("usb:") {
            Selector::Usb(path)
        } else if let Some(name) = value("product:") {
            Selector::Product(name)
        } else if let Some(name) = value("model:") {
            Selector::Model(name.replace(' ', "_"))
        } else if let Some(name) = value("device:") {
            Selector::Device(name)
        } else if let Some(Ok(id)) = text
            .strip_prefix("transport:")
            .or_else(|| text.strip_prefix("transport_id:"))
            .map(str::parse)
        {
            Selector::Transport(id)
        } else {
            Selector::Serial(text.to_owned())
        }
    }

    /// Returns the selector in `flag`; without it, the one in `ANDROID_SERIAL`; otherwise the only
    /// device.
    pub fn from_flag_or_env(flag: Option<&str>) -> Self {
        Self::resolve(flag, std::env::var("ANDROID_SERIAL").ok().as_deref())
    }

    fn resolve(flag: Option<&str>, variable: Option<&str>) -> Self {
        flag.or(variable)
            .filter(|text| !text.is_empty())
            .map_or(Selector::Only, Selector::parse)
    }

    fn matches(&self, device: &ListedDevice) -> bool {
        let is = |field: &Option<String>, wanted: &String| field.as_ref() == Some(wanted);
        match self {
            Selector::Only => true,
            Selector::Serial(serial) => device.serial == *serial,
            Selector::Usb(path) => is(&device.usb, path),
            Selector::Product(name) => is(&device.product, name),
            Selector::Model(name) => is(&device.model, name),
            Selector::Device(name) => is(&device.device, name),
            Selector::Transport(id) => device.transport_id == Some(*id),
        }
    }

    /// Returns the matching devices, ready or not.
    pub fn fitting<'a>(&self, devices: &'a [ListedDevice]) -> Vec<&'a ListedDevice> {
        let fitting: Vec<_> = devices.iter().filter(|d| self.matches(d)).collect();
        if let (Selector::Serial(serial), true) = (self, fitting.is_empty()) {
            let network = format!("{serial}:5555");
            return devices.iter().filter(|d| d.serial == network).collect();
        }
        fitting
    }

    /// Returns the one device that matches and is ready. Offline devices, such as emulators that were
    /// closed, do not count if there are others.
    ///
    /// # Errors
    /// Returns [`DeviceError::NoDevice`], [`DeviceError::NotFound`], [`DeviceError::Several`] or
    /// [`DeviceError::NotReady`].
    pub fn choose(
        &self,
        devices: &[ListedDevice],
        address: &str,
    ) -> Result<ListedDevice, DeviceError> {
        let wanted = (*self != Selector::Only).then(|| self.to_string());
        let mut fitting = self.fitting(devices);
        let is_offline = |device: &&ListedDevice| device.state == DeviceState::Offline;
        if !fitting.iter().all(is_offline) {
            fitting.retain(|device| !is_offline(device));
        }
        match (fitting.as_slice(), wanted) {
            ([], None) => Err(DeviceError::NoDevice {
                address: address.to_owned(),
            }),
            ([], Some(wanted)) => Err(DeviceError::NotFound {
                wanted,
                devices: devices.to_vec(),
            }),
            ([device], _) if device.state == DeviceState::Device => Ok((*device).clone()),
            ([device], _) => Err(DeviceError::NotReady {
                serial: device.serial.clone(),
                state: device.state.clone(),
            }),
            (several, wanted) => Err(DeviceError::Several {
                wanted,
                devices: several.iter().map(|d| (*d).clone()).collect(),
            }),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selector::Only => f.write_str("the only device"),
            Selector::Serial(serial) => f.write_str(serial),
            Selector::Usb(path) => write!(f, "usb:{path}"),
            Selector::Product(name) => write!(f, "product:{name}"),
            Selector::Model(name) => write!(f, "model:{name}"),
            Selector::Device(name) => write!(f, "device:{name}"),
            Selector::Transport(id) => write!(f, "transport:{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::list::parse_list;
    use super::*;
    use heaptap_base::error::{Classified, ErrorClass};

    const TWO: &str = "\
A1                     device usb:1-1 product:shiba model:Pixel_8 device:shiba transport_id:1
10.0.0.7:5555          unauthorized transport_id:2
";

    fn choose(selector: &str, list: &str) -> Result<ListedDevice, DeviceError> {
        Selector::resolve(Some(selector), None).choose(&parse_list(list), "127.0.0.1:5037")
    }

    #[test]
    fn every_form_finds_the_device() {
        for form in [
            "A1",
            "usb:1-1",
            "product:shiba",
            "model:Pixel_8",
            "model:Pixel 8",
            "device:shiba",
            "transport:1",
        ] {
            assert_eq!(choose(form, TWO).unwrap().serial, "A1", "{form}");
        }
    }

    #[test]
    fn the_flag_counts_before_the_variable() {
        assert_eq!(
            Selector::resolve(Some("A"), Some("B")),
            Selector::Serial("A".into())
        );
        assert_eq!(
            Selector::resolve(None, Some("usb:2")),
            Selector::Usb("2".into())
        );
        assert_eq!(Selector::resolve(None, Some("")), Selector::Only);
        assert_eq!(Selector::resolve(None, None), Selector::Only);
    }

    #[test]
    fn each_refusal_has_its_own_kind_and_exit_code_3() {
        let twins = "S device usb:1-1 transport_id:5\nS device usb:1-2 transport_id:6\n";
        for (selector, list, kind) in [
            ("", "", "no-device"),
            ("B2", TWO, "device-not-found"),
            ("", TWO, "several-devices"),
            ("S", twins, "several-devices"),
            ("10.0.0.7", TWO, "device-unauthorized"),
            ("", "A\toffline", "device-offline"),
            (
                "",
                "A no permissions (x); see [y] usb:1-1",
                "device-no-permissions",
            ),
            ("", "A\tauthorizing", "device-authorizing"),
            ("", "A\trecovery", "device-recovery"),
            ("", "A\tbootloader", "device-bootloader"),
        ] {
            let error = choose(selector, list).unwrap_err();
            assert_eq!(error.kind(), kind, "{selector} in {list}");
            assert_eq!(error.class(), ErrorClass::NoDevice, "{kind}");
            assert!(error.help().is_some(), "{kind}");
        }
        assert_eq!(choose("transport:6", twins).unwrap().transport_id, Some(6));
    }

    #[test]
    fn offline_devices_are_no_choice_beside_others() {
        let one = "emulator-5554\toffline\nA1\tdevice\nemulator-5556\toffline\n";
        assert_eq!(choose("", one).unwrap().serial, "A1");
        let two = format!("{one}B2\tdevice\n");
        let DeviceError::Several { devices, .. } = choose("", &two).unwrap_err() else {
            panic!("two are ready");
        };
        let serials: Vec<&str> = devices.iter().map(|d| d.serial.as_str()).collect();
        assert_eq!(serials, ["A1", "B2"]);
        // The user names it, or has only such devices.
        let kind = |selector, list| choose(selector, list).unwrap_err().kind();
        assert_eq!(kind("emulator-5554", one), "device-offline");
        assert_eq!(kind("", "A\toffline\nB\toffline\n"), "several-devices");
        assert_eq!(
            kind("", "A\toffline\nB\tunauthorized\n"),
            "device-unauthorized"
        );
        assert_eq!(choose("S", "S\toffline\nS\tdevice\n").unwrap().serial, "S");
    }

    #[test]
    fn several_are_listed_with_what_to_type() {
        let error = choose("", TWO).unwrap_err();
        assert_eq!(
            error.to_string(),
            "2 devices are connected, but none is selected: A1 (device, Pixel_8, 1-1, \
             transport:1), 10.0.0.7:5555 (unauthorized, transport:2)"
        );
        let help = error.help().unwrap();
        assert!(
            help.contains("-s A1") && help.contains("-s 10.0.0.7:5555"),
            "{help}"
        );
        let twins = "S device usb:1-1 transport_id:5\nS device usb:1-2 transport_id:6\n";
        let help = choose("S", twins).unwrap_err().help().unwrap();
        assert!(help.contains("-s transport:5"), "{help}");
    }
}
