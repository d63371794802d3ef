//! The phones of a server with what tells them apart: model, Android, build, ABI. Each phone
//! is asked at the same time as the others and may be silent without holding them up.

use std::time::Duration;

use serde::Serialize;
use tokio::task::JoinSet;

use crate::device::{Command, Device, DeviceError, DeviceState, ListedDevice, Selector, Server};
use crate::untrusted::sanitize_bytes;

/// A phone answers `getprop` in milliseconds; one that sleeps takes longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The properties asked for, in this order, one line each.
const PROPERTIES: [&str; 7] = [
    "ro.product.model",
    "ro.build.version.release_or_codename",
    "ro.build.version.release",
    "ro.build.version.sdk",
    "ro.build.type",
    "ro.product.cpu.abi",
    "ro.product.manufacturer",
];

/// One phone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PhoneRow {
    /// Serial number, safe to show.
    pub serial: String,
    /// `device` where it is ready, else the server's word.
    pub state: String,
    /// What to do where it is not ready.
    pub fix: Option<String>,
    /// Manufacturer.
    pub manufacturer: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// `14`, or the code name of a preview.
    pub android: Option<String>,
    /// SDK level.
    pub sdk: Option<u32>,
    /// `user`, `userdebug`, `eng`.
    pub build_type: Option<String>,
    /// Preferred ABI.
    pub abi: Option<String>,
    /// Path of its USB port.
    pub usb: Option<String>,
    /// Product name.
    pub product: Option<String>,
    /// Device name.
    pub device: Option<String>,
    /// The server's number for this connection, for `-s transport:N`.
    pub transport_id: Option<u64>,
    /// Why a ready phone did not tell more.
    pub error: Option<String>,
}

/// The phones of `server` that `selector` fits, in its order; none at all is no error.
///
/// # Errors
/// [`DeviceError::NotFound`] where a phone is named that is not there; errors of the server's
/// connection. A phone that can't be asked says so in its row.
pub async fn phones(server: &Server, selector: &Selector) -> Result<Vec<PhoneRow>, DeviceError> {
    let listed = server.devices().await?;
    let fitting = selector.fitting(&listed);
    if fitting.is_empty() && *selector != Selector::Only {
        return Err(DeviceError::NotFound {
            wanted: selector.to_string(),
            devices: listed,
        });
    }
    let mut rows: Vec<PhoneRow> = fitting.iter().map(|phone| row(phone)).collect();
    let mut asking = JoinSet::new();
    for (index, phone) in fitting.into_iter().enumerate() {
        if phone.state == DeviceState::Device {
            let device = server.device(phone, &listed);
            asking.spawn(async move { (index, properties(&device).await) });
        }
    }
    while let Some(answer) = asking.join_next().await {
        // A task that panicked is a bug that its own message tells of; its row stays bare.
        let Ok((index, answer)) = answer else {
            continue;
        };
        match answer {
            Ok(values) => rows[index].take(values),
            Err(error) => rows[index].error = Some(error.to_string()),
        }
    }
    Ok(rows)
}

fn row(listed: &ListedDevice) -> PhoneRow {
    PhoneRow {
        serial: listed.serial.clone(),
        state: listed.state.to_string(),
        fix: listed.state.fix().map(str::to_owned),
        manufacturer: None,
        model: listed.model.as_ref().map(|model| model.replace('_', " ")),
        android: None,
        sdk: None,
        build_type: None,
        abi: None,
        usb: listed.usb.clone(),
        product: listed.product.clone(),
        device: listed.device.clone(),
        transport_id: listed.transport_id,
        error: None,
    }
}

async fn properties(device: &Device) -> Result<[Option<String>; PROPERTIES.len()], DeviceError> {
    let command = Command::script("for p; do getprop \"$p\"; done")
        .called("reading its properties")
        .args(PROPERTIES);
    let output = device.run(&command, PATIENCE).await?;
    Ok(read(&output.stdout))
}

/// One line a property; a phone that prints another number of lines has told nothing sure.
fn read(stdout: &[u8]) -> [Option<String>; PROPERTIES.len()] {
    let text = stdout.strip_suffix(b"\n").unwrap_or(stdout);
    let lines: Vec<&[u8]> = text.split(|&b| b == b'\n').collect();
    std::array::from_fn(|index| {
        if lines.len() != PROPERTIES.len() {
            return None;
        }
        Some(sanitize_bytes(lines[index].trim_ascii())).filter(|value| !value.is_empty())
    })
}

impl PhoneRow {
    fn take(&mut self, values: [Option<String>; PROPERTIES.len()]) {
        let [model, preview, release, sdk, build_type, abi, manufacturer] = values;
        self.model = model.or(self.model.take());
        self.android = preview.or(release);
        self.sdk = sdk.and_then(|sdk| sdk.parse().ok());
        self.build_type = build_type;
        self.abi = abi;
        self.manufacturer = manufacturer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::parse_list;

    #[test]
    fn properties_are_read_line_by_line() {
        let mut phone = row(&parse_list("S device model:Pixel_8 transport_id:3")[0]);
        assert_eq!(phone.model.as_deref(), Some("Pixel 8"));
        phone.take(read(b"\n\r\n10\n29\nuserdebug\nx86_64\nUnknown\x1b[2J\n"));
        assert_eq!(phone.model.as_deref(), Some("Pixel 8"));
        assert_eq!(phone.android.as_deref(), Some("10"));
        assert_eq!(phone.sdk, Some(29));
        assert_eq!(phone.build_type.as_deref(), Some("userdebug"));
        assert_eq!(phone.abi.as_deref(), Some("x86_64"));
        assert!(!phone.manufacturer.unwrap().contains('\x1b'));
    }

    #[test]
    fn an_answer_of_another_shape_tells_nothing() {
        for answer in [&b""[..], b"\n", b"sh: getprop: not found\n", &[b'\n'; 40]] {
            assert!(read(answer).iter().all(Option::is_none), "{answer:?}");
        }
    }

    #[test]
    fn a_phone_that_is_not_ready_has_its_fix() {
        let phone = row(&parse_list("S\tunauthorized")[0]);
        assert_eq!(phone.state, "unauthorized");
        assert!(phone.fix.unwrap().contains("Allow USB debugging"));
    }
}
