//! Progress of scenarios: a line for each run; the steps in the status line, or in a table of devices.

use std::collections::BTreeMap;

use heaptap_lab::results::{Build, RunState};
use indicatif::ProgressBar;

use crate::console::Console;
use crate::lab::events::{DeviceEvent, LabEvent};
use crate::recording::events::RecordEvent;
use heaptap_capture::session::SessionEvent;

/// Shows the events of scenarios.
pub(super) struct Shown<'a> {
    console: &'a Console,
    status: ProgressBar,
    at: String,
    /// Several devices.
    table: Option<Table>,
    /// Lines name the scenario.
    names_scenarios: bool,
}

/// The live table: a row for each device that runs a scenario; the status line below has the total.
struct Table {
    rows: BTreeMap<String, Row>,
    /// Characters of the longest name of a device.
    width: usize,
    /// Scenarios on devices.
    done: usize,
    all: usize,
}

struct Row {
    bar: ProgressBar,
    scenario: String,
    run: String,
}

impl<'a> Shown<'a> {
    /// `devices` have their names and numbers of scenarios.
    pub(super) fn new(console: &'a Console, devices: &[(&str, usize)]) -> Shown<'a> {
        let count = devices.iter().map(|(_, scenarios)| *scenarios);
        let widths = devices.iter().map(|(name, _)| name.chars().count());
        Shown {
            names_scenarios: count.clone().any(|scenarios| scenarios > 1),
            table: (devices.len() > 1).then(|| Table {
                rows: BTreeMap::new(),
                width: widths.max().unwrap_or(0),
                done: 0,
                all: count.sum(),
            }),
            status: console.status(),
            console,
            at: String::new(),
        }
    }

    pub(super) fn event(&mut self, event: &DeviceEvent) {
        self.console.event(event);
        self.status_of(event);
        let on = self.place(&event.serial);
        match &event.event {
            LabEvent::Scenario { .. }
            | LabEvent::ScenarioEnded { .. }
            | LabEvent::Run { .. }
            | LabEvent::Step { .. } => {}
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

    /// Returns the begin of a line: the device and the scenario, if there are several.
    fn place(&self, serial: &str) -> String {
        let Some(table) = &self.table else {
            return match self.names_scenarios {
                true => format!("{}: ", self.at),
                false => String::new(),
            };
        };
        match table.rows.get(serial).filter(|_| self.names_scenarios) {
            Some(row) => format!("{serial}: {}: ", row.scenario),
            None => format!("{serial}: "),
        }
    }

    /// Shows where a device is.
    fn status_of(&mut self, event: &DeviceEvent) {
        let console = self.console;
        let Some(table) = &mut self.table else {
            return self.status_of_one(&event.event);
        };
        let row = table.rows.get_mut(&event.serial);
        let step = match (&event.event, row) {
            (LabEvent::Scenario { scenario }, _) => {
                let row = Row {
                    bar: console.status_above(&self.status),
                    scenario: scenario.clone(),
                    run: String::new(),
                };
                table.rows.insert(event.serial.clone(), row);
                String::new()
            }
            (LabEvent::ScenarioEnded { .. }, Some(_)) => {
                if let Some(row) = table.rows.remove(&event.serial) {
                    row.bar.finish_and_clear();
                }
                table.done += 1;
                String::new()
            }
            (LabEvent::Run { run, build, .. }, Some(row)) => {
                row.run = format!("run {run}{}", of(*build));
                String::new()
            }
            (LabEvent::Step { step, what, .. }, Some(_)) => format!("{step}: {what}"),
            _ => return,
        };
        if let Some(Row { bar, scenario, run }) = table.rows.get(&event.serial) {
            let (serial, width) = (&event.serial, table.width);
            console.set_status(
                bar,
                format_args!("{serial:width$}  {scenario}  {run}  {step}"),
            );
        }
        let (done, all) = (table.done, table.all);
        console.set_status(&self.status, format_args!("{done} of {all} done"));
    }

    fn status_of_one(&mut self, event: &LabEvent) {
        match event {
            LabEvent::Scenario { scenario } => self.at.clone_from(scenario),
            LabEvent::Run {
                run,
                at_most,
                build,
            } => {
                let text = format!("run {run} of at most {at_most}{}", of(*build));
                self.console.set_status(&self.status, &text);
            }
            LabEvent::Step { run, step, what } => {
                let text = format_args!("run {run}: {step}: {what}");
                self.console.set_status(&self.status, text);
            }
            _ => {}
        }
    }

    pub(super) fn end(&self) {
        let rows = self.table.iter().flat_map(|table| table.rows.values());
        rows.for_each(|row| row.bar.finish_and_clear());
        self.status.finish_and_clear();
    }
}

/// Returns the build of a run, for a message.
fn of(build: Option<Build>) -> String {
    build.map_or(String::new(), |build| format!(" ({build} build)"))
}
