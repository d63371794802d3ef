//! Conditions of a device that change what is measured on it. A fact that the device does not
//! report is absent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Conditions of a device at one time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// Android's thermal status, since Android 10: 0 (not throttled) to 6 (shutdown).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thermal_status: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub battery_celsius: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub battery_percent: Option<u8>,
    /// A charger is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_charging: Option<bool>,
    /// Battery saver is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_power_saving: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_screen_on: Option<bool>,
    /// Free space of the partition of traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
}

/// A process that the system killed because memory was low.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LowMemoryKill {
    pub process: String,
    pub pid: u32,
    /// Reason in the words of lmkd, since Android 11.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Returns Android's word for a thermal status.
pub fn thermal_word(status: u8) -> &'static str {
    match status {
        0 => "none",
        1 => "light",
        2 => "moderate",
        3 => "severe",
        4 => "critical",
        5 => "emergency",
        _ => "shutdown",
    }
}
