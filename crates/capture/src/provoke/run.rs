//! Runs a plan from its first command to the restored state. Owns the order: settings recorded
//! before the first change are restored after the last, even after an error.

use std::time::Duration;

use super::action::Action;
use super::cancel::Cancel;
use super::commands::{self, Check, CheckedCommand, Phone, press};
use super::event::{Effect, Event, Report, Step};
use super::phone_state::{self, Facts, Reading, SLOW};
use super::plan::Plan;
use super::read::Pulse;
use super::settings_journal::{Journals, Saved, Setting};
use super::settle::{PAUSE, Resting, Sample, Settle};
use super::trend::{Held, MIN_COUNT, Trend};
use crate::error::{CaptureError, kind};
use heaptap_adb::{Command, Device};
use heaptap_base::error::ErrorClass;
use heaptap_base::untrusted::sanitize;

/// Maximum time until an effect is visible, by the device's clock.
const EFFECT_NS: u64 = 5_000_000_000;
/// The same after an action without an effect.
const NO_EFFECT_NS: u64 = 1_000_000_000;
/// Maximum number of deaths in a row.
const DEATHS: u32 = 3;

/// Runs a plan. Changed settings are first recorded in `journals` and restored afterwards; `tell`
/// receives all events.
///
/// # Errors
/// Returns the error that ended it early; the device is restored unless that is the error.
pub async fn run(
    device: &Device,
    plan: &Plan,
    journals: &Journals,
    cancel: &Cancel,
    tell: &(dyn Fn(&Event) + Send + Sync),
) -> Result<Report, CaptureError> {
    let (hardware_serial, _lock, left) = journals.claim(device).await?;
    if let Some(done) = left {
        tell(&Event::PutBackFirst(done));
    }
    let facts = phone_state::facts(device, &plan.target).await?;
    let plan = &facts.plan(plan);
    // Unsupported actions are reported before anything is changed.
    for place in 0..plan.actions.len() {
        commands::of(plan, place, &facts.phone, 1)?;
    }
    let mut runner = Runner {
        device,
        plan,
        journals,
        cancel,
        tell,
        saved: saved(device, &hardware_serial, plan, &facts)?,
        phone: facts.phone,
        report: Report::default(),
        pulse: None,
        told_to_end: false,
        deaths_in_a_row: 0,
        in_vain_before: false,
        noted: false,
        boot: facts.boot,
        lost_in_a_row: 0,
        gave_up: false,
        held: Vec::new(),
    };
    let mut result = runner.work().await;
    if let Err(error) = &result
        && error.is(&[kind::INTERRUPTED])
    {
        runner.report.interrupted = true;
        result = Ok(());
    }
    let turned = match &result {
        Ok(()) if !runner.report.interrupted => runner.turned_object().await,
        _ => None,
    };
    let restored = runner.put_back(result.as_ref().err()).await;
    // A failure to restore the device takes precedence.
    if let Some(done) = restored? {
        tell(&Event::PutBack(done.clone()));
        runner.report.restored = Some(done);
        if let Some(object) = turned
            && runner.is_replaced(&object).await
        {
            runner.report.recreations += 1;
            runner.report.recreated_by_restoring = true;
        }
    }
    result?;
    Ok(runner.report)
}

/// Returns the settings to record before anything is changed.
///
/// A setting that the device does not report is not changed, because it could not be restored.
pub(super) fn saved(
    device: &Device,
    hardware_serial: &str,
    plan: &Plan,
    facts: &Facts,
) -> Result<Saved, CaptureError> {
    let setting = |space: &str, key: &str, value: &Reading| match value {
        Ok(value) => Ok(Setting {
            space: space.to_owned(),
            key: key.to_owned(),
            value: value.clone(),
        }),
        Err(why) => {
            let get = Command::program("settings").args(["get", space, key]);
            Err(phone_state::refused(device, &get, why))
        }
    };
    let mut settings = Vec::new();
    if plan.turns() {
        // Automatic rotation, if it was on, is restored last.
        settings.push(setting("system", "user_rotation", &facts.user_rotation)?);
        let key = "accelerometer_rotation";
        settings.push(setting("system", key, &facts.accelerometer)?);
    }
    if plan.needs_screen() {
        let key = "stay_on_while_plugged_in";
        settings.push(setting("global", key, &facts.stay_on)?);
    }
    Ok(Saved {
        settings,
        ..Saved::new(device, hardware_serial, &plan.target.package)
    })
}

pub(super) fn stay_on() -> Command {
    Command::program("svc").args(["power", "stayon", "usb"])
}

pub(super) fn dismiss() -> Command {
    Command::program("wm").arg("dismiss-keyguard")
}

/// Returns whether the app must be in the foreground before the first action.
pub(super) fn wants_front(plan: &Plan) -> bool {
    plan.actions.first().is_some_and(acts_in_front)
}

fn acts_in_front(action: &Action) -> bool {
    match action {
        Action::Trim(trim) => trim.begins_in_front(),
        Action::Tap(_) | Action::Swipe(_) | Action::Key(_) | Action::Text(_) => true,
        action => action.count().is_some(),
    }
}

pub(super) struct Runner<'a> {
    pub(super) device: &'a Device,
    pub(super) plan: &'a Plan,
    pub(super) journals: &'a Journals,
    pub(super) cancel: &'a Cancel,
    pub(super) tell: &'a (dyn Fn(&Event) + Send + Sync),
    pub(super) saved: Saved,
    /// ID of the device's boot; another ID means that its state was reset.
    pub(super) boot: String,
    phone: Phone,
    pub(super) report: Report,
    /// Last observed state of the process.
    pulse: Option<Pulse>,
    /// The process was asked to end and was not checked since, for example because of a
    /// disconnection.
    told_to_end: bool,
    deaths_in_a_row: u32,
    /// The last repetition had no effect.
    pub(super) in_vain_before: bool,
    /// The settings to restore are in the journal.
    noted: bool,
    /// Disconnections since the last completed repetition.
    pub(super) lost_in_a_row: u32,
    /// The run has stopped waiting for a disconnected device.
    pub(super) gave_up: bool,
    /// Memory of the process after each iteration, and after each repetition of a single action.
    held: Vec<Held>,
}

/// Position of a run in its plan.
struct Place<'a> {
    round: u32,
    /// Index of the action.
    at: usize,
    action: &'a Action,
    /// Completed repetitions of the action.
    done: usize,
    /// All repetitions; created when the first begins, and recreated after a disconnection.
    doings: Option<Vec<Vec<CheckedCommand>>>,
    /// The repetition was interrupted before.
    again: bool,
}

impl Runner<'_> {
    async fn work(&mut self) -> Result<(), CaptureError> {
        self.cancel.check()?;
        if self.plan.needs_screen() {
            self.wake(true).await?;
        }
        if wants_front(self.plan) {
            self.bring_to_front().await?;
        }
        self.pulse = self.look().await?.pulse;
        let plan = self.plan;
        for round in 1..=plan.rounds {
            (self.tell)(&Event::Round {
                round,
                of: plan.rounds,
            });
            for (at, action) in plan.actions.iter().enumerate() {
                self.in_vain_before = false;
                let mut place = Place {
                    round,
                    at,
                    action,
                    done: 0,
                    doings: None,
                    again: false,
                };
                while self.go_on(&mut place).await? {}
            }
            if let Some(settle) = plan.settle {
                while let Err(error) = self.settle(round, settle).await {
                    self.wait_for_phone(error).await?;
                }
            }
            if self.is_of_rounds() {
                self.note_held();
            }
        }
        self.report.front = loop {
            match phone_state::front(self.device).await {
                Ok(front) => break front.component,
                Err(error) => self.wait_for_phone(error).await?,
            }
        };
        self.report.trend = Trend::new(self.compared(), &self.held);
        Ok(())
    }

    /// Runs the next repetition of an action; returns whether there was one. A repetition that a
    /// disconnection interrupted is repeated when the device is back.
    async fn go_on(&mut self, place: &mut Place<'_>) -> Result<bool, CaptureError> {
        match self.next_doing(place).await {
            Ok(false) => return Ok(false),
            Ok(true) => {
                place.done += 1;
                place.again = false;
                self.lost_in_a_row = 0;
                if !self.is_of_rounds() {
                    self.note_held();
                }
            }
            Err(error) => {
                self.wait_for_phone(error).await?;
                // The screen might have rotated before the disconnection or during it.
                place.doings = None;
                place.again = true;
                self.in_vain_before = false;
            }
        }
        Ok(true)
    }

    async fn next_doing(&mut self, place: &mut Place<'_>) -> Result<bool, CaptureError> {
        self.cancel.check()?;
        let doings = match place.doings.take() {
            Some(doings) => doings,
            None => self.doings(place).await?,
        };
        let doings = place.doings.insert(doings);
        let Some(commands) = doings.get(place.done) else {
            return Ok(false);
        };
        let step = Step {
            round: place.round,
            action: place.action.to_string(),
            time: u32::try_from(place.done + 1).unwrap_or(u32::MAX),
            of: u32::try_from(doings.len()).unwrap_or(u32::MAX),
            again: place.again,
            ..Step::default()
        };
        self.step(place.action, step, commands).await?;
        Ok(true)
    }

    /// Returns the commands of each repetition, for the current rotation of the device.
    async fn doings(
        &mut self,
        place: &Place<'_>,
    ) -> Result<Vec<Vec<CheckedCommand>>, CaptureError> {
        if matches!(place.action, Action::Rotate(_)) {
            self.bring_to_front().await?;
            self.look_how_it_is_turned(place).await?;
        }
        let doings = commands::of(self.plan, place.at, &self.phone, place.round)?;
        Ok(doings)
    }

    /// Returns the unit of comparison for growth: iterations, or repetitions if there is only one
    /// action and too few iterations.
    fn compared(&self) -> &'static str {
        match self.plan.actions.as_slice() {
            [one] if !self.is_of_rounds() => one.name(),
            _ => "iteration",
        }
    }

    fn is_of_rounds(&self) -> bool {
        let enough = usize::try_from(self.plan.rounds).is_ok_and(|rounds| rounds >= MIN_COUNT);
        let repeats = |one: &Action| one.times() > 1;
        enough || !matches!(self.plan.actions.as_slice(), [one] if repeats(one))
    }

    fn note_held(&mut self) {
        self.held.extend(self.pulse.iter().filter_map(|pulse| {
            Some(Held {
                process: (pulse.pid, pulse.started),
                bytes: pulse.resident?,
            })
        }));
    }

    /// Records the settings to restore, once.
    fn note(&mut self) -> Result<(), CaptureError> {
        if !self.noted && !self.saved.settings.is_empty() {
            self.journals.note(&self.saved)?;
            self.noted = true;
        }
        Ok(())
    }

    pub(super) async fn look(&self) -> Result<phone_state::Look, CaptureError> {
        phone_state::look(self.device, &self.plan.target).await
    }

    /// Switches the screen on, unlocks it if possible, and keeps it on.
    pub(super) async fn wake(&mut self, first: bool) -> Result<(), CaptureError> {
        let (off, locked) = phone_state::screen(self.device).await?;
        let off = off == Some(true);
        if first {
            self.saved.screen_off = off;
            self.note()?;
        }
        if off {
            phone_state::run_quick(self.device, &press("KEYCODE_WAKEUP"), SLOW).await?;
        }
        // Some devices show the lock screen only when they are awake.
        let locked = match off {
            true => phone_state::screen(self.device).await?.1,
            false => locked,
        };
        if locked == Some(true) {
            self.unlock().await?;
        }
        if off || locked == Some(true) {
            (self.tell)(&Event::Woke {
                unlocked: locked == Some(true),
            });
        }
        phone_state::run_quick(self.device, &stay_on(), SLOW).await?;
        Ok(())
    }

    async fn unlock(&mut self) -> Result<(), CaptureError> {
        phone_state::run_quick(self.device, &dismiss(), SLOW).await?;
        for _ in 0..6 {
            if phone_state::screen(self.device).await?.1 != Some(true) {
                return Ok(());
            }
            phone_state::pause(self.device, Duration::from_millis(500)).await?;
        }
        let needs = self.plan.actions.iter().find(|a| a.needs_screen());
        let what = needs.map_or_else(String::new, Action::to_string);
        let serial = self.device.serial();
        let message = format!("{what} needs an unlocked screen, and {serial} is locked");
        let error = CaptureError::new(ErrorClass::Device, "screen-locked", message);
        let help = "unlock it manually; heaptap cannot enter a PIN, pattern or password";
        Err(error.with_help(help))
    }

    /// Starts the app like its icon, unless it runs in the foreground: an activity can stay there
    /// for a moment after its process has died.
    async fn bring_to_front(&mut self) -> Result<(), CaptureError> {
        let package = &self.plan.target.package;
        if phone_state::front(self.device).await?.is_of(package)
            && self.look().await?.pulse.is_some()
        {
            return Ok(());
        }
        self.note()?;
        let checked = commands::start_as_icon(&self.phone, &self.plan.target)?;
        let launch = self.launch(&checked, false).await?;
        if let Some(front) = launch.behind {
            let message = format!(
                "cannot bring {package} to the foreground on {}: {} is in front",
                self.device.serial(),
                sanitize(&front)
            );
            let error = CaptureError::new(ErrorClass::Device, "not-in-foreground", message);
            return Err(error.with_help(
                "close what is in front (a permission dialog?), and check that the app keeps \
                 running",
            ));
        }
        (self.tell)(&Event::BroughtToFront(launch));
        Ok(())
    }

    /// Adjusts the expected orientation to the actual one, which depends on how the device is held
    /// if the screen rotates automatically.
    async fn look_how_it_is_turned(&mut self, place: &Place<'_>) -> Result<(), CaptureError> {
        let upright = commands::is_upright(self.plan, place.at, &self.phone, place.round);
        let expected = upright == place.done.is_multiple_of(2);
        let turned = phone_state::rotation(self.device).await?;
        if turned.is_some_and(|turned| (turned % 2 == 0) != expected) {
            self.phone.upright = !self.phone.upright;
        }
        Ok(())
    }

    /// Returns the object of the foreground activity if restoring the rotation will turn the screen
    /// back, which recreates the activity once more.
    async fn turned_object(&self) -> Option<String> {
        if self.report.recreations == 0 {
            return None;
        }
        let turned = phone_state::rotation(self.device).await.ok()??;
        if (turned % 2 == 0) == self.phone.upright {
            return None;
        }
        let package = &self.plan.target.package;
        let (_, shown) = phone_state::shown(self.device, package).await.ok()?;
        shown.filter(|shown| shown.resumed)?.object
    }

    /// Waits until the foreground activity has another object than `old`; returns whether it does.
    async fn is_replaced(&self, old: &str) -> bool {
        let package = &self.plan.target.package;
        let mut begin = None;
        while let Ok((now, shown)) = phone_state::shown(self.device, package).await {
            if shown.is_some_and(|s| s.object.is_some_and(|new| new != old)) {
                return true;
            }
            let waited = now.saturating_sub(*begin.get_or_insert(now));
            if waited >= EFFECT_NS || phone_state::pause(self.device, PAUSE).await.is_err() {
                break;
            }
        }
        false
    }

    /// Runs one repetition of an action, and checks its effects.
    async fn step(
        &mut self,
        action: &Action,
        mut step: Step,
        commands: &[CheckedCommand],
    ) -> Result<(), CaptureError> {
        if (step.time == 1 || step.again) && acts_in_front(action) {
            self.bring_to_front().await?;
        }
        let before = self.look().await?;
        self.notice(before.pulse.as_ref()).await?;
        for checked in commands {
            self.cancel.check()?;
            self.act(checked, &mut step.effects).await?;
        }
        let after = self.look().await?;
        step.begin_ns = before.boot_ns;
        step.end_ns = after.boot_ns;
        step.pid = after.pulse.as_ref().map(|p| p.pid);
        step.rss_anon = after.pulse.as_ref().and_then(|p| p.resident);
        let more = step.time < step.of;
        // Nothing was provoked in an app that ran neither before nor after.
        let is_dead = acts_in_front(action) && before.pulse.is_none() && after.pulse.is_none();
        if is_dead {
            let why = "the app is not running".to_owned();
            step.effects = vec![Effect::Unknown { why }];
        }
        self.report.steps = self.report.steps.saturating_add(1);
        self.in_vain_before = is_dead || step.is_in_vain();
        self.report.without_effect += u32::from(self.in_vain_before);
        let recreated = |effect: &&Effect| matches!(effect, Effect::Recreated { .. });
        let recreated = step.effects.iter().filter(recreated).count();
        self.report.recreations += u32::try_from(recreated).unwrap_or(u32::MAX);
        (self.tell)(&Event::Step(step));
        let died = self.notice(after.pulse.as_ref()).await?;
        if !died {
            self.deaths_in_a_row = 0;
        } else if more && acts_in_front(action) {
            self.bring_to_front().await?;
            self.pulse = self.look().await?.pulse;
        }
        Ok(())
    }

    /// Compares the process with the last observed one; returns whether that one died by itself.
    async fn notice(&mut self, now: Option<&Pulse>) -> Result<bool, CaptureError> {
        let meant = std::mem::take(&mut self.told_to_end);
        let same = |a: &Pulse, b: &Pulse| (a.pid, a.started) == (b.pid, b.started);
        let died = match &self.pulse {
            Some(before) if !meant && !now.is_some_and(|now| same(before, now)) => before.pid,
            _ => {
                self.pulse = now.cloned();
                return Ok(false);
            }
        };
        let next = now.map(|p| p.pid);
        let target = &self.plan.target;
        // If this query fails because of a disconnection, the last observed process stays.
        let death = phone_state::death(self.device, &self.phone, target, died, next).await?;
        self.pulse = now.cloned();
        self.deaths_in_a_row += 1;
        let why = death.why();
        (self.tell)(&Event::Died(death.clone()));
        self.report.deaths.push(death);
        if self.deaths_in_a_row < DEATHS {
            return Ok(true);
        }
        let (process, serial, times) =
            (&target.process, self.device.serial(), self.deaths_in_a_row);
        let message = format!("{process} on {serial} died {times} times in a row: {why}");
        let error = CaptureError::new(ErrorClass::Incomplete, "keeps-dying", message);
        Err(error.with_help("find the cause with `heaptap gc` or in the device log"))
    }

    /// Sends one command and checks its effect.
    async fn act(
        &mut self,
        checked: &CheckedCommand,
        effects: &mut Vec<Effect>,
    ) -> Result<(), CaptureError> {
        // The journal must exist before the first change, so that the device is always restored.
        self.note()?;
        match &checked.check {
            Check::Accepted => {
                phone_state::run_quick(self.device, &checked.command, SLOW).await?;
            }
            Check::Input => {
                phone_state::run_quick(self.device, &checked.command, SLOW * 2).await?;
                self.pause(commands::AFTER_INPUT).await?;
            }
            Check::Wait(long) => self.pause(*long).await?,
            Check::Recreated => effects.push(self.turn(checked).await?),
            Check::Background => effects.push(self.leave(checked).await?),
            Check::Launched { anew } => {
                let launch = self.launch(checked, *anew).await?;
                effects.push(Effect::Launched(launch));
            }
            Check::Trimmed(level) => effects.push(self.trim(checked, *level).await?),
            Check::Monkey {
                events,
                seed,
                throttle,
            } => {
                let told = self.monkey(checked, (*events, *seed), *throttle).await?;
                effects.push(told);
            }
            Check::Ended => {
                self.told_to_end = true;
                effects.push(self.end(checked).await?);
            }
        }
        Ok(())
    }

    /// Waits, unless the run is cancelled.
    pub(super) async fn pause(&self, long: Duration) -> Result<(), CaptureError> {
        tokio::select! {
            done = phone_state::pause(self.device, long) => done,
            () = self.cancel.wait() => Err(CaptureError::canceled()),
        }
    }

    /// Returns the maximum waiting time for an effect.
    pub(super) fn patience_ns(&self) -> u64 {
        match self.in_vain_before {
            true => NO_EFFECT_NS,
            false => EFFECT_NS,
        }
    }

    /// Records the idle process, if it is the same; the next repetition detects another one.
    fn pulse_at_rest(&mut self, now: Option<&Pulse>) {
        if let (Some(before), Some(now)) = (&mut self.pulse, now)
            && (before.pid, before.started) == (now.pid, now.started)
        {
            before.clone_from(now);
        }
    }

    /// Waits until the app is idle.
    async fn settle(&mut self, round: u32, settle: Settle) -> Result<(), CaptureError> {
        let limit = u64::try_from(settle.limit.as_nanos()).unwrap_or(u64::MAX);
        let mut resting = Resting::from_rest(settle.rest);
        let mut begin = None;
        let (settled, why, after_ms) = loop {
            self.cancel.check()?;
            let front = phone_state::front(self.device).await?.component;
            let look = self.look().await?;
            let (now, pulse) = (look.boot_ns, look.pulse);
            let begin = *begin.get_or_insert(now);
            let after = now.saturating_sub(begin);
            let sample = Sample {
                boot_ns: now,
                front,
                pulse,
            };
            // Iterations are compared by the memory of the idle process.
            self.pulse_at_rest(sample.pulse.as_ref());
            match resting.add(sample) {
                Ok(()) => break (true, None, after / 1_000_000),
                Err(why) if after >= limit => break (false, Some(why), after / 1_000_000),
                Err(_) => self.pause(PAUSE).await?,
            }
        };
        self.report.unsettled += u32::from(!settled);
        (self.tell)(&Event::Settled {
            round,
            settled,
            after_ms,
            why,
        });
        Ok(())
    }
}
