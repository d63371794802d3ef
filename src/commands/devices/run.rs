//! The devices of an adb server with their properties: model, Android, build, ABI. The devices are
//! queried concurrently, so that a silent one does not delay the others.

use std::time::Duration;

use serde::Serialize;
use tokio::task::JoinSet;

use heaptap_adb::{Command, Device, DeviceError, DeviceState, ListedDevice, Selector, Server};
use heaptap_base::untrusted::sanitize_bytes;

/// Time limit for `getprop`. A device answers in milliseconds, or later if it sleeps.
const PATIENCE: Duration = Duration::from_secs(5);

/// Requested properties. The output has one line for each, in this order.
const PROPERTIES: [&str; 7] = [
    "ro.product.model",
    "ro.build.version.release_or_codename",
    "ro.build.version.release",
    "ro.build.version.sdk",
    "ro.build.type",
    "ro.product.cpu.abi",
    "ro.product.manufacturer",
];

/// Device of an adb server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PhoneRow {
    /// Address of its adb server, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Serial number, sanitized.
    pub serial: String,
    /// `device` if it is ready, otherwise the state as the server names it.
    pub state: String,
    /// Next step if it is not ready.
    pub fix: Option<String>,
    pub manufacturer: Option<String>,
    pub model: Option<String>,
    /// Android version such as `14`, or the code name of a preview.
    pub android: Option<String>,
    /// SDK level.
    pub sdk: Option<u32>,
    /// `user`, `userdebug` or `eng`.
    pub build_type: Option<String>,
    /// Preferred ABI.
    pub abi: Option<String>,
    /// Path of the USB port.
    pub usb: Option<String>,
    pub product: Option<String>,
    pub device: Option<String>,
    /// Number of the connection, for `-s transport:N`.
    pub transport_id: Option<u64>,
    /// Reason why the properties of a ready device are missing.
    pub error: Option<String>,
}

/// Returns the devices of `server` that match `selector`, in the order of the server. An empty list
/// is not an error.
///
/// # Errors
/// Returns [`DeviceError::NotFound`] if the selected device is missing, and errors of the
/// connection to the server. If a device cannot be queried, its row has the error.
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
        // A panic in a task prints its own message; the row stays without properties.
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
        server: None,
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

/// Parses one line per property. Returns no values if the number of lines is wrong, because they
/// cannot be assigned.
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
    /// Returns the argument of `-s` for it.
    pub fn name(&self) -> String {
        match &self.server {
            Some(server) => format!("{server}/{}", self.serial),
            None => self.serial.clone(),
        }
    }

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
    use heaptap_adb::parse_list;

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
