//! Progress of scenarios: a line for each run, the step in the status line.

use heaptap_lab::results::{Build, RunState};

use crate::console::Console;
use crate::lab::events::{DeviceEvent, LabEvent};
use crate::recording::events::RecordEvent;
use crate::session::SessionEvent;

/// Shows the events of scenarios.
pub(super) struct Shown<'a> {
    console: &'a Console,
    status: indicatif::ProgressBar,
    at: String,
    /// Lines begin with the serial of the device.
    names_devices: bool,
}

impl<'a> Shown<'a> {
    pub(super) fn new(console: &'a Console, names_devices: bool) -> Shown<'a> {
        Shown {
            names_devices,
            status: console.status(),
            console,
            at: String::new(),
        }
    }

    pub(super) fn event(&mut self, event: &DeviceEvent) {
        self.console.event(event);
        let on = match self.names_devices {
            true => format!("{}: ", event.serial),
            false => String::new(),
        };
        match &event.event {
            LabEvent::Run {
                run,
                at_most,
                build,
            } => {
                let text = format!("{on}run {run} of at most {at_most}{}", of(*build));
                self.console.set_status(&self.status, &text);
                self.at = text;
            }
            LabEvent::Step { step, what, .. } => {
                let at = match self.names_devices {
                    true => on.trim_end_matches(": "),
                    false => &self.at,
                };
                self.console
                    .set_status(&self.status, format_args!("{at}: {step}: {what}"));
            }
            LabEvent::Trigger { trigger, cause, .. } => {
                self.console.say(format_args!("{on}{trigger}: {cause}"));
            }
            LabEvent::StepRetry { step, why, .. } => {
                self.console
                    .warn(format_args!("{on}{step} is repeated: {why}"));
            }
            LabEvent::Warning { text }
            | LabEvent::Recording(RecordEvent::Session(SessionEvent::Warning { text })) => {
                self.console.warn(format_args!("{on}{text}"));
            }
            LabEvent::Recording(_) => {}
            LabEvent::RunEnded {
                run,
                build,
                state,
                seconds,
                error,
            } => {
                let word = match state {
                    RunState::Done => "done",
                    RunState::Void => "void",
                    RunState::Failed => "failed",
                };
                self.console.say(format_args!(
                    "{on}run {run}{}: {word} after {seconds:.0} s",
                    of(*build)
                ));
                if let Some(error) = error {
                    let step = error.step.as_deref();
                    let at = step.map(|step| format!("{step}: ")).unwrap_or_default();
                    let text = format!("{on}{at}{}", error.message);
                    self.console.warn_with_help(text, error.help.as_deref());
                }
            }
            LabEvent::Budgets {
                within,
                over,
                undecided,
                ..
            } => self.console.say(format_args!(
                "{on}budgets: {within} within, {over} over, {undecided} undecided"
            )),
        }
    }

    pub(super) fn end(&self) {
        self.status.finish_and_clear();
    }
}

/// Returns the build of a run, for a message.
fn of(build: Option<Build>) -> String {
    build.map_or(String::new(), |build| format!(" ({} build)", build.name()))
}
