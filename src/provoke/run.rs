//! A plan from its first command to the state put back. Owns the order: what was noted before
//! the first change is put back after the last, whatever ends it in between.

use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;

use super::Plan;
use super::action::Action;
use super::deeds::{self, Check, Deed, Phone, press};
use super::error::ProvokeError;
use super::event::{Effect, Event, Report, Step};
use super::look::{self, Facts, Reading, SLOW};
use super::read::Pulse;
use super::saved::{Journals, PutBack, Saved, Setting, identity, put_back};
use super::settle::{PAUSE, Resting, Sample};
use crate::device::{Command, Device};

/// How long an effect may take to be seen, on the phone's clock.
const EFFECT_NS: u64 = 5_000_000_000;
/// Once an action had none, less is waited for the next.
const NO_EFFECT_NS: u64 = 1_000_000_000;
/// How long a phone whose cable was lost is waited for.
const RETURN: Duration = Duration::from_secs(60);
/// So many deaths in a row end it.
const DEATHS: u32 = 3;

/// Whoever may end a run.
#[derive(Debug)]
pub struct Canceller(watch::Sender<bool>);

/// Whether a run is to end.
#[derive(Debug, Clone)]
pub struct Cancel(watch::Receiver<bool>);

impl Cancel {
    /// A pair of both.
    pub fn new() -> (Canceller, Cancel) {
        let (sender, receiver) = watch::channel(false);
        (Canceller(sender), Cancel(receiver))
    }

    pub(super) fn check(&self) -> Result<(), ProvokeError> {
        match *self.0.borrow() {
            true => Err(ProvokeError::Interrupted),
            false => Ok(()),
        }
    }

    /// Returns once it is to end; never where nobody can say so any more.
    pub(super) async fn wait(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|ended| *ended).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Canceller {
    /// Ends the run: what is under way is finished, what was changed is put back.
    pub fn cancel(&self) {
        // Nobody listens once it has ended.
        let _ = self.0.send(true);
    }
}

/// Does what a plan says. What it changes on the phone is noted in `journals` first and put
/// back afterwards; of all that happens `tell` hears.
///
/// # Errors
/// What ended it early; the phone is as it was then, too, unless that is the error.
pub async fn run(
    device: &Device,
    plan: &Plan,
    journals: &Journals,
    cancel: &Cancel,
    tell: &(dyn Fn(&Event) + Send + Sync),
) -> Result<Report, ProvokeError> {
    let hardware_serial = look::hardware_serial(device).await?;
    let identity = identity(device.serial(), &hardware_serial);
    let _lock = journals.lock(identity)?;
    if let Some(left) = journals.of(identity)? {
        tell(&Event::PutBackFirst(
            put_back(device, journals, &left).await?,
        ));
    }
    let facts = look::facts(device, &plan.target).await?;
    let plan = &facts.plan(plan);
    // What is not possible is told before anything is changed.
    for place in 0..plan.actions.len() {
        deeds::of(plan, place, &facts.phone, 1)?;
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
        deaths_in_a_row: 0,
        in_vain_before: false,
        noted: false,
    };
    let mut result = runner.work().await;
    if let Err(ProvokeError::Interrupted) = &result {
        runner.report.interrupted = true;
        result = Ok(());
    }
    let restored = runner.put_back(result.as_ref().err()).await;
    // A phone that is not as it was is what counts.
    if let Some(done) = restored? {
        tell(&Event::PutBack(done.clone()));
        runner.report.put_back = Some(done);
    }
    result?;
    Ok(runner.report)
}

/// What is noted before anything is changed.
///
/// A setting that the phone does not tell is not changed either: it could not be put back.
fn saved(
    device: &Device,
    hardware_serial: &str,
    plan: &Plan,
    facts: &Facts,
) -> Result<Saved, ProvokeError> {
    let setting = |space: &str, key: &str, value: &Reading| match value {
        Ok(value) => Ok(Setting {
            space: space.to_owned(),
            key: key.to_owned(),
            value: value.clone(),
        }),
        Err(why) => {
            let get = Command::program("settings").args(["get", space, key]);
            Err(look::refused(device, &get, why))
        }
    };
    let mut settings = Vec::new();
    if plan.turns() {
        // Where it turns by itself, it does so last.
        settings.push(setting("system", "user_rotation", &facts.user_rotation)?);
        let key = "accelerometer_rotation";
        settings.push(setting("system", key, &facts.accelerometer)?);
    }
    if plan.needs_screen() {
        let key = "stay_on_while_plugged_in";
        settings.push(setting("global", key, &facts.stay_on)?);
    }
    Ok(Saved {
        serial: device.serial().to_owned(),
        hardware_serial: hardware_serial.to_owned(),
        package: plan.target.package.clone(),
        settings,
        screen_off: false,
        monkey: None,
    })
}

/// A command that would be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// Which round; `None` before the first and after the last.
    pub round: Option<u32>,
    /// What for: an action, `prepare` or `put back`.
    pub what: String,
    /// As it goes to the device's shell.
    pub command: String,
    /// What is special about it.
    pub note: Option<String>,
}

/// What [`run`] would send to change something, in order; looks at the phone, changes nothing.
///
/// # Errors
/// As [`run`], as far as it is known beforehand.
pub async fn dry_run(device: &Device, plan: &Plan) -> Result<Vec<Planned>, ProvokeError> {
    let facts = look::facts(device, &plan.target).await?;
    let plan = &facts.plan(plan);
    let mut saved = saved(device, "", plan, &facts)?;
    let mut all = Vec::new();
    let planned = |round, what: &str, deed: &Deed| Planned {
        round,
        what: what.to_owned(),
        command: deed.command.text().to_owned(),
        note: deed.note(),
    };
    let command = |what: &str, command: Command| Planned {
        round: None,
        what: what.to_owned(),
        command: command.text().to_owned(),
        note: None,
    };
    let mut usable = true;
    if plan.needs_screen() {
        let (off, locked) = look::screen(device).await?;
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
    if wants_front(plan) && !(usable && look::front(device).await?.is_of(&plan.target.package)) {
        let start = deeds::start_as_icon(&facts.phone, &plan.target)?;
        let mut start = planned(None, "prepare", &start);
        if !usable {
            start.note = Some("where the app is not in front then".to_owned());
        }
        all.push(start);
    }
    for round in 1..=plan.rounds {
        for (place, action) in plan.actions.iter().enumerate() {
            let what = action.to_string();
            let doings = deeds::of(plan, place, &facts.phone, round)?;
            let deeds = doings.iter().flatten();
            all.extend(deeds.map(|deed| planned(Some(round), &what, deed)));
        }
    }
    let back = saved.settings.iter().map(Setting::command);
    all.extend(back.map(|c| command("put back", c)));
    if saved.screen_off {
        all.push(command("put back", press("KEYCODE_SLEEP")));
    }
    Ok(all)
}

fn stay_on() -> Command {
    Command::program("svc").args(["power", "stayon", "usb"])
}

fn dismiss() -> Command {
    Command::program("wm").arg("dismiss-keyguard")
}

/// Whether the app has to be in front before the first action.
fn wants_front(plan: &Plan) -> bool {
    plan.actions.first().is_some_and(acts_in_front)
}

fn acts_in_front(action: &Action) -> bool {
    matches!(action, Action::Trim(trim) if trim.begins_in_front())
        || matches!(
            action,
            Action::Rotate(_)
                | Action::HomeAndBack(_)
                | Action::SwitchApps(_)
                | Action::RestartActivity(_)
                | Action::Tap(_)
                | Action::Swipe(_)
                | Action::Key(_)
                | Action::Text(_)
        )
}

/// Whether an action ends the app's process on purpose.
fn ends_it(action: &Action) -> bool {
    matches!(action, Action::ForceStop | Action::Kill | Action::Crash)
}

pub(super) struct Runner<'a> {
    pub(super) device: &'a Device,
    pub(super) plan: &'a Plan,
    pub(super) journals: &'a Journals,
    pub(super) cancel: &'a Cancel,
    tell: &'a (dyn Fn(&Event) + Send + Sync),
    pub(super) saved: Saved,
    phone: Phone,
    report: Report,
    /// The process as it was seen last.
    pulse: Option<Pulse>,
    deaths_in_a_row: u32,
    /// The last doing had no effect.
    pub(super) in_vain_before: bool,
    /// What is to be put back stands in the journal.
    noted: bool,
}

impl Runner<'_> {
    async fn work(&mut self) -> Result<(), ProvokeError> {
        self.cancel.check()?;
        if self.plan.needs_screen() {
            self.wake().await?;
        }
        if wants_front(self.plan) {
            self.bring_to_front().await?;
        }
        self.pulse = self.look().await?.pulse;
        for round in 1..=self.plan.rounds {
            (self.tell)(&Event::Round {
                round,
                of: self.plan.rounds,
            });
            for (place, action) in self.plan.actions.iter().enumerate() {
                self.in_vain_before = false;
                if matches!(action, Action::Rotate(_)) {
                    self.bring_to_front().await?;
                    self.look_how_it_is_turned(round, place).await?;
                }
                let doings = deeds::of(self.plan, place, &self.phone, round)?;
                let of = doings.len() as u32;
                for (n, deeds) in doings.iter().enumerate() {
                    self.cancel.check()?;
                    let time = (n as u32).saturating_add(1);
                    self.step(round, action, time, of, deeds).await?;
                }
            }
            if let Some(settle) = self.plan.settle {
                self.settle(round, settle.limit).await?;
            }
        }
        self.report.front = look::front(self.device).await?.component;
        Ok(())
    }

    /// Notes what is to be put back, once.
    fn note(&mut self) -> Result<(), ProvokeError> {
        if !self.noted && !self.saved.settings.is_empty() {
            self.journals.note(&self.saved)?;
            self.noted = true;
        }
        Ok(())
    }

    pub(super) async fn look(&self) -> Result<look::Look, ProvokeError> {
        look::look(self.device, &self.plan.target).await
    }

    /// Switches the screen on, unlocks it where that is possible, and keeps it on.
    async fn wake(&mut self) -> Result<(), ProvokeError> {
        let (off, locked) = look::screen(self.device).await?;
        self.saved.screen_off = off == Some(true);
        self.note()?;
        if self.saved.screen_off {
            look::run_quick(self.device, &press("KEYCODE_WAKEUP"), SLOW).await?;
        }
        // Some phones show the lock screen only once they are awake.
        let locked = match self.saved.screen_off {
            true => look::screen(self.device).await?.1,
            false => locked,
        };
        if locked == Some(true) {
            self.unlock().await?;
        }
        if self.saved.screen_off || locked == Some(true) {
            (self.tell)(&Event::Woke {
                unlocked: locked == Some(true),
            });
        }
        look::run_quick(self.device, &stay_on(), SLOW).await?;
        Ok(())
    }

    async fn unlock(&mut self) -> Result<(), ProvokeError> {
        look::run_quick(self.device, &dismiss(), SLOW).await?;
        for _ in 0..6 {
            if look::screen(self.device).await?.1 != Some(true) {
                return Ok(());
            }
            look::pause(self.device, Duration::from_millis(500)).await?;
        }
        let needs = self.plan.actions.iter().find(|a| a.needs_screen());
        Err(ProvokeError::Locked {
            serial: self.device.serial().to_owned(),
            what: needs.map_or_else(String::new, Action::to_string),
        })
    }

    /// Starts the app as its icon does, unless it is in front.
    async fn bring_to_front(&mut self) -> Result<(), ProvokeError> {
        let package = &self.plan.target.package;
        if look::front(self.device).await?.is_of(package) {
            return Ok(());
        }
        self.note()?;
        let deed = deeds::start_as_icon(&self.phone, &self.plan.target)?;
        let launch = self.launch(&deed, false).await?;
        if let Some(front) = launch.behind {
            return Err(ProvokeError::NotInFront {
                serial: self.device.serial().to_owned(),
                package: package.clone(),
                front,
            });
        }
        (self.tell)(&Event::BroughtToFront(launch));
        Ok(())
    }

    /// A screen that follows the hand that holds it may lie on its side: what is expected gives
    /// way to what is.
    async fn look_how_it_is_turned(
        &mut self,
        round: u32,
        place: usize,
    ) -> Result<(), ProvokeError> {
        let expected = deeds::is_upright(self.plan, place, &self.phone, round);
        let turned = look::rotation(self.device).await?;
        if turned.is_some_and(|turned| (turned % 2 == 0) != expected) {
            self.phone.upright = !self.phone.upright;
        }
        Ok(())
    }

    /// Does an action once, and looks what came of it.
    async fn step(
        &mut self,
        round: u32,
        action: &Action,
        time: u32,
        of: u32,
        deeds: &[Deed],
    ) -> Result<(), ProvokeError> {
        if time == 1 && acts_in_front(action) {
            self.bring_to_front().await?;
        }
        let before = self.look().await?;
        self.notice(before.pulse.as_ref(), false).await?;
        let mut effects = Vec::new();
        for deed in deeds {
            self.cancel.check()?;
            self.act(deed, &mut effects).await?;
        }
        let after = self.look().await?;
        let step = Step {
            round,
            action: action.to_string(),
            time,
            of,
            begin_ns: before.boot_ns,
            end_ns: after.boot_ns,
            pid: after.pulse.as_ref().map(|p| p.pid),
            rss_anon: after.pulse.as_ref().and_then(|p| p.resident),
            effects,
        };
        self.report.steps = self.report.steps.saturating_add(1);
        self.in_vain_before = step.is_in_vain();
        self.report.in_vain += u32::from(step.is_in_vain());
        (self.tell)(&Event::Step(step));
        let died = self.notice(after.pulse.as_ref(), ends_it(action)).await?;
        if !died {
            self.deaths_in_a_row = 0;
        } else if time < of && acts_in_front(action) {
            self.bring_to_front().await?;
            self.pulse = self.look().await?.pulse;
        }
        Ok(())
    }

    /// Compares the process with the one seen before; whether that has died by itself.
    async fn notice(&mut self, now: Option<&Pulse>, meant: bool) -> Result<bool, ProvokeError> {
        let before = std::mem::replace(&mut self.pulse, now.cloned());
        let Some(before) = before else {
            return Ok(false);
        };
        let same = |p: &Pulse| (p.pid, p.started) == (before.pid, before.started);
        if meant || now.is_some_and(same) {
            return Ok(false);
        }
        let next = now.map(|p| p.pid);
        let target = &self.plan.target;
        let death = look::death(self.device, &self.phone, target, before.pid, next).await?;
        self.deaths_in_a_row += 1;
        let why = death.why();
        (self.tell)(&Event::Died(death.clone()));
        self.report.deaths.push(death);
        match self.deaths_in_a_row >= DEATHS {
            true => Err(ProvokeError::KeepsDying {
                serial: self.device.serial().to_owned(),
                process: target.process.clone(),
                times: self.deaths_in_a_row,
                why,
            }),
            false => Ok(true),
        }
    }

    /// Sends one command and looks at what it is for.
    async fn act(&mut self, deed: &Deed, effects: &mut Vec<Effect>) -> Result<(), ProvokeError> {
        // Whatever comes, the phone is put back: the note stands before the first change.
        self.note()?;
        match &deed.check {
            Check::Accepted => {
                look::run_quick(self.device, &deed.command, SLOW).await?;
            }
            Check::Input => {
                look::run_quick(self.device, &deed.command, SLOW * 2).await?;
                self.pause(deeds::AFTER_INPUT).await?;
            }
            Check::Wait(long) => self.pause(*long).await?,
            Check::Recreated => effects.push(self.turn(deed).await?),
            Check::Background => effects.push(self.leave(deed).await?),
            Check::Launched { anew } => {
                let launch = self.launch(deed, *anew).await?;
                effects.push(Effect::Launched(launch));
            }
            Check::OtherInFront => {
                look::run_quick(self.device, &deed.command, SLOW).await?;
                let left = self
                    .front_until(|f| !f.is_of(&self.plan.target.package))
                    .await?;
                effects.push(match left {
                    Ok(_) => Effect::InBackground,
                    Err(_) => Effect::StillInFront,
                });
            }
            Check::Trimmed(level) => effects.push(self.trim(deed, *level).await?),
            Check::Monkey {
                events,
                seed,
                throttle,
            } => {
                let told = self.monkey(deed, (*events, *seed), *throttle).await?;
                effects.push(told);
            }
            Check::Ended => effects.push(self.end(deed).await?),
        }
        Ok(())
    }

    /// A pause that ends with the run.
    pub(super) async fn pause(&self, long: Duration) -> Result<(), ProvokeError> {
        tokio::select! {
            done = look::pause(self.device, long) => done,
            () = self.cancel.wait() => Err(ProvokeError::Interrupted),
        }
    }

    /// How long an effect is waited for.
    pub(super) fn patience_ns(&self) -> u64 {
        match self.in_vain_before {
            true => NO_EFFECT_NS,
            false => EFFECT_NS,
        }
    }

    /// Waits until the app has come to rest.
    async fn settle(&mut self, round: u32, limit: Duration) -> Result<(), ProvokeError> {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let mut resting = Resting::default();
        let mut begin = None;
        let (settled, why, after_ms) = loop {
            self.cancel.check()?;
            let front = look::front(self.device).await?.component;
            let look = self.look().await?;
            let (now, pulse) = (look.boot_ns, look.pulse);
            let begin = *begin.get_or_insert(now);
            let after = now.saturating_sub(begin);
            let sample = Sample {
                boot_ns: now,
                front,
                pulse,
            };
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

    /// Puts back what was noted, waiting for a phone that is away.
    async fn put_back(
        &self,
        failed: Option<&ProvokeError>,
    ) -> Result<Option<PutBack>, ProvokeError> {
        let Some(saved) = self.journals.of(self.saved.phone())? else {
            return Ok(None);
        };
        let mut away = match failed {
            Some(ProvokeError::Device(error)) if error.is_connection() => Some(error.to_string()),
            _ => None,
        };
        loop {
            if let Some(what) = away.take() {
                (self.tell)(&Event::Lost { what: what.clone() });
                let back = tokio::select! {
                    back = self.device.wait_ready(RETURN) => back.is_ok(),
                    // Who asked for the end before the cable was lost still waits for it.
                    () = self.cancel.wait(), if !self.report.interrupted => false,
                };
                if !back {
                    return Err(ProvokeError::NotPutBack {
                        serial: self.device.serial().to_owned(),
                        what: format!("{what}, and it has not come back"),
                    });
                }
            }
            match put_back(self.device, self.journals, &saved).await {
                Ok(done) => return Ok(Some(done)),
                Err(error) if error.is_connection() => away = Some(error.to_string()),
                Err(error) => return Err(error),
            }
        }
    }
}
