//! What the steps and triggers of a run act through, and what they have taken.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use heaptap_base::parallel::lock;
use heaptap_lab::results::TriggerRecord;
use tokio::sync::mpsc;

use super::answers::Answers;
use crate::lab::events::LabEvents;
use crate::lab::failures::interrupted;
use crate::recording::options::RecordOptions;
use heaptap_adb::Device;
use heaptap_base::error::Failure;
use heaptap_capture::provoke::{self, Cancel, Event, Journals, Plan, Target};
use heaptap_capture::session::{Control, Store};

/// Time limit of a command without its own.
pub(super) const SHELL: Duration = Duration::from_secs(60);

/// Time for a cancelled action to restore the device.
pub(in crate::lab) const RESTORE: Duration = Duration::from_secs(90);

/// The hands of a run: what its steps and triggers act through, at the same time.
pub(in crate::lab) struct StepExecutor<'a> {
    pub device: &'a Device,
    pub store: &'a Store,
    pub journals: &'a Journals,
    pub target: &'a Target,
    /// API level of the device.
    pub api: Option<u32>,
    pub cancel: &'a Cancel,
    /// Requests to the recording.
    pub ask: &'a mpsc::UnboundedSender<Control>,
    /// Answers of the recording.
    pub answers: &'a Answers,
    pub record: &'a RecordOptions,
    pub tell: &'a LabEvents,
    /// Number of the run.
    pub run: usize,
    pub began: Instant,
    /// Held during a snapshot or dump: an app writes one heap at a time.
    pub capture: tokio::sync::Mutex<()>,
    pub taken: Mutex<Taken>,
}

/// What the steps and triggers have taken so far.
#[derive(Debug, Default)]
pub(in crate::lab) struct Taken {
    /// Labels of the snapshots and dumps.
    pub labels: Vec<String>,
    pub triggers: Vec<TriggerRecord>,
}

impl StepExecutor<'_> {
    /// Adds to what the steps have taken.
    pub(in crate::lab) fn note(&self, add: impl FnOnce(&mut Taken)) {
        add(&mut lock(&self.taken));
    }

    pub(super) async fn provoke(
        &self,
        plan: &Plan,
        ends: &Cancel,
        tell: &(dyn Fn(&Event) + Send + Sync),
    ) -> Result<provoke::Report, Failure> {
        let report = provoke::run(self.device, plan, self.journals, ends, tell).await?;
        match report.interrupted {
            true => Err(interrupted()),
            false => Ok(report),
        }
    }
}
