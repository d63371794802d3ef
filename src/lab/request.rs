//! A scenario for one device, and what it acts through.

use std::path::PathBuf;

use heaptap_lab::baseline::Baseline;
use heaptap_lab::scenario::{Install, Scenario};

use tokio::sync::OnceCell;

use super::events::LabEvents;
use crate::recording::options::RecordOptions;
use heaptap_adb::Device;
use heaptap_capture::eligibility::DeviceFacts;
use heaptap_capture::provoke::{Cancel, Journals};
use heaptap_capture::session::Store;

/// A scenario to run.
#[derive(Debug, Clone)]
pub struct LabRequest {
    pub scenario: Scenario,
    /// The scenario's file as typed.
    pub file: String,
    /// Its directory, for the files that it names.
    pub base: PathBuf,
    /// An old build that alternates with the one of the scenario; paths from the working directory.
    pub against: Option<Install>,
    /// SHA-256 of the APKs, and of the scenario with its variables replaced.
    pub sha256: String,
    /// Directory of the results.
    pub directory: PathBuf,
    /// Directory of the results of all devices and scenarios.
    pub night: PathBuf,
    /// Go on with what the directory has.
    pub resume: bool,
    /// Figures of an earlier build; empty if there are none.
    pub baseline: Baseline,
    /// The figures are added to it.
    pub updates_baseline: bool,
    /// Options of each recording; its output and interval are set for each run.
    pub record: RecordOptions,
    /// Android user or work profile.
    pub user: Option<u32>,
    /// Serial of the device of the same class that stayed away, if this one stands in for it.
    pub instead_of: Option<String>,
}

/// What a scenario acts through.
pub struct Tools<'a> {
    pub device: &'a Device,
    /// Name of the device in the results.
    pub name: &'a str,
    /// Facts of the device, once they are read.
    pub facts: &'a OnceCell<DeviceFacts>,
    pub store: &'a Store,
    pub journals: &'a Journals,
    pub cancel: &'a Cancel,
    pub tell: &'a LabEvents,
}
