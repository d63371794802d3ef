//! Commands of a run, without sending them.

use serde::Serialize;

use super::commands::{self, CheckedCommand, press};
use super::phone_state;
use super::plan::Plan;
use super::run::{dismiss, saved, stay_on, wants_front};
use super::settings_journal::Setting;
use crate::error::CaptureError;
use heaptap_adb::{Command, Device};

/// A planned command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// Iteration; `None` before the first and after the last.
    #[serde(rename = "iteration")]
    pub round: Option<u32>,
    /// Purpose: an action, `prepare` or `put back`.
    pub what: String,
    /// The command for the device's shell.
    pub command: String,
    /// Remark about the command.
    pub note: Option<String>,
}

/// Lists the changing commands of [`super::run()`] in order; only reads from the device.
///
/// # Errors
/// Returns the errors of [`super::run()`], as far as they are known beforehand.
pub async fn dry_run(device: &Device, plan: &Plan) -> Result<Vec<Planned>, CaptureError> {
    let facts = phone_state::facts(device, &plan.target).await?;
    let plan = &facts.plan(plan);
    let mut saved = saved(device, "", plan, &facts)?;
    let mut all = Vec::new();
    let planned = |round, what: &str, checked: &CheckedCommand| Planned {
        round,
        what: what.to_owned(),
        command: checked.command.text().to_owned(),
        note: checked.note(),
    };
    let command = |what: &str, command: Command| Planned {
        round: None,
        what: what.to_owned(),
        command: command.text().to_owned(),
        note: None,
    };
    let mut usable = true;
    if plan.needs_screen() {
        let (off, locked) = phone_state::screen(device).await?;
        if off == Some(true) {
            saved.screen_off = true;
            all.push(command("prepare", press("KEYCODE_WAKEUP")));
        }
        if locked == Some(true) {
            all.push(command("prepare", dismiss()));
        }
        all.push(command("prepare", stay_on()));
        usable = off != Some(true) && locked != Some(true);
    }
    if wants_front(plan)
        && !(usable
            && phone_state::front(device)
                .await?
                .is_of(&plan.target.package))
    {
        let start = commands::start_as_icon(&facts.phone, &plan.target)?;
        let mut start = planned(None, "prepare", &start);
        if !usable {
            start.note = Some("if the app is not in the foreground then".to_owned());
        }
        all.push(start);
    }
    for round in 1..=plan.rounds {
        for (place, action) in plan.actions.iter().enumerate() {
            let what = action.to_string();
            let doings = commands::of(plan, place, &facts.phone, round)?;
            let commands = doings.iter().flatten();
            all.extend(commands.map(|checked| planned(Some(round), &what, checked)));
        }
    }
    let back = saved.settings.iter().map(Setting::command);
    all.extend(back.map(|c| command("put back", c)));
    if saved.screen_off {
        all.push(command("put back", press("KEYCODE_SLEEP")));
    }
    Ok(all)
}
