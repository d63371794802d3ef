//! A plan from its first command to the state put back. Owns the order: what was noted before
//! the first change is put back after the last, whatever ends it in between.

use std::time::Duration;

use super::Plan;
use super::action::Action;
use super::cancel::Cancel;
use super::commands::{self, Check, CheckedCommand, Phone, press};
use super::error::ProvokeError;
use super::event::{Effect, Event, Report, Step};
use super::phone_state::{self, Facts, Reading, SLOW};
use super::read::Pulse;
use super::saved::{Journals, Saved, Setting, identity, put_back};
use super::settle::{PAUSE, Resting, Sample};
use super::trend::{FEWEST, Held, Trend};
use heaptap_adb::{Command, Device};

/// How long an effect may take to be seen, on the phone's clock.
const EFFECT_NS: u64 = 5_000_000_000;
/// Once an action had none, less is waited for the next.
const NO_EFFECT_NS: u64 = 1_000_000_000;
/// So many deaths in a row end it.
const DEATHS: u32 = 3;

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
    let hardware_serial = phone_state::hardware_serial(device).await?;
    let identity = identity(device.serial(), &hardware_serial);
    let _lock = journals.lock(identity)?;
    if let Some(left) = journals.of(identity)? {
        tell(&Event::PutBackFirst(
            put_back(device, journals, &left).await?,
        ));
    }
    let facts = phone_state::facts(device, &plan.target).await?;
    let plan = &facts.plan(plan);
    // What is not possible is told before anything is changed.
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
pub(super) fn saved(
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
            Err(phone_state::refused(device, &get, why))
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

pub(super) fn stay_on() -> Command {
    Command::program("svc").args(["power", "stayon", "usb"])
}

pub(super) fn dismiss() -> Command {
    Command::program("wm").arg("dismiss-keyguard")
}

/// Whether the app has to be in front before the first action.
pub(super) fn wants_front(plan: &Plan) -> bool {
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

pub(super) struct Runner<'a> {
    pub(super) device: &'a Device,
    pub(super) plan: &'a Plan,
    pub(super) journals: &'a Journals,
    pub(super) cancel: &'a Cancel,
    pub(super) tell: &'a (dyn Fn(&Event) + Send + Sync),
    pub(super) saved: Saved,
    /// Identity of the phone's start: after another one nothing is as it was.
    pub(super) boot: String,
    phone: Phone,
    pub(super) report: Report,
    /// The process as it was seen last.
    pulse: Option<Pulse>,
    /// The process was told to end, and has not been looked at since: a lost cable may lie
    /// between the two.
    told_to_end: bool,
    deaths_in_a_row: u32,
    /// The last doing had no effect.
    pub(super) in_vain_before: bool,
    /// What is to be put back stands in the journal.
    noted: bool,
    /// Cables lost since the last doing that came to its end.
    pub(super) lost_in_a_row: u32,
    /// The phone is away, and is not waited for any more.
    pub(super) gave_up: bool,
    /// What the process held after each round, and after each doing of a lone action.
    held: Vec<Held>,
}

/// Where in a plan a run stands.
struct Place<'a> {
    round: u32,
    /// Which action.
    at: usize,
    action: &'a Action,
    /// Doings of it that came to their end.
    done: usize,
    /// All of its doings; made when the first begins, and anew after a lost cable.
    doings: Option<Vec<Vec<CheckedCommand>>>,
    /// The doing was begun before, and cut.
    again: bool,
}

impl Runner<'_> {
    async fn work(&mut self) -> Result<(), ProvokeError> {
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
                while let Err(error) = self.settle(round, settle.limit).await {
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
        self.report.trend = Trend::of(self.compared(), &self.held);
        Ok(())
    }

    /// The next doing of an action; whether there was one. One that a lost cable cut is done
    /// again once the phone is back.
    async fn go_on(&mut self, place: &mut Place<'_>) -> Result<bool, ProvokeError> {
        match self.next_doing(place).await {
            Ok(true) => {
                place.done += 1;
                place.again = false;
                self.lost_in_a_row = 0;
                if !self.is_of_rounds() {
                    self.note_held();
                }
                Ok(true)
            }
            Ok(false) => Ok(false),
            Err(error) => {
                self.wait_for_phone(error).await?;
                // It may have turned before the cable was lost, or while nobody held it.
                place.doings = None;
                place.again = true;
                self.in_vain_before = false;
                Ok(true)
            }
        }
    }

    async fn next_doing(&mut self, place: &mut Place<'_>) -> Result<bool, ProvokeError> {
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
            begin_ns: 0,
            end_ns: 0,
            pid: None,
            rss_anon: None,
            effects: Vec::new(),
        };
        self.step(place.action, step, commands).await?;
        Ok(true)
    }

    /// What each doing of an action comes to, as the phone is turned now.
    async fn doings(
        &mut self,
        place: &Place<'_>,
    ) -> Result<Vec<Vec<CheckedCommand>>, ProvokeError> {
        if matches!(place.action, Action::Rotate(_)) {
            self.bring_to_front().await?;
            self.look_how_it_is_turned(place).await?;
        }
        commands::of(self.plan, place.at, &self.phone, place.round)
    }

    /// What is compared to tell growth: rounds, or doings where one action is all there is and
    /// rounds would be too few.
    fn compared(&self) -> &'static str {
        match self.plan.actions.as_slice() {
            [one] if !self.is_of_rounds() => one.name(),
            _ => "round",
        }
    }

    fn is_of_rounds(&self) -> bool {
        let enough = usize::try_from(self.plan.rounds).is_ok_and(|rounds| rounds >= FEWEST);
        let repeats = |one: &Action| one.times() > 1;
        enough || !matches!(self.plan.actions.as_slice(), [one] if repeats(one))
    }

    fn note_held(&mut self) {
        let pulse = self.pulse.as_ref();
        if let Some((pulse, bytes)) = pulse.and_then(|p| Some((p, p.resident?))) {
            self.held.push(Held {
                process: (pulse.pid, pulse.started),
                bytes,
            });
        }
    }

    /// Notes what is to be put back, once.
    fn note(&mut self) -> Result<(), ProvokeError> {
        if !self.noted && !self.saved.settings.is_empty() {
            self.journals.note(&self.saved)?;
            self.noted = true;
        }
        Ok(())
    }

    pub(super) async fn look(&self) -> Result<phone_state::Look, ProvokeError> {
        phone_state::look(self.device, &self.plan.target).await
    }

    /// Switches the screen on, unlocks it where that is possible, and keeps it on.
    pub(super) async fn wake(&mut self, first: bool) -> Result<(), ProvokeError> {
        let (off, locked) = phone_state::screen(self.device).await?;
        let off = off == Some(true);
        if first {
            self.saved.screen_off = off;
            self.note()?;
        }
        if off {
            phone_state::run_quick(self.device, &press("KEYCODE_WAKEUP"), SLOW).await?;
        }
        // Some phones show the lock screen only once they are awake.
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

    async fn unlock(&mut self) -> Result<(), ProvokeError> {
        phone_state::run_quick(self.device, &dismiss(), SLOW).await?;
        for _ in 0..6 {
            if phone_state::screen(self.device).await?.1 != Some(true) {
                return Ok(());
            }
            phone_state::pause(self.device, Duration::from_millis(500)).await?;
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
        if phone_state::front(self.device).await?.is_of(package) {
            return Ok(());
        }
        self.note()?;
        let checked = commands::start_as_icon(&self.phone, &self.plan.target)?;
        let launch = self.launch(&checked, false).await?;
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
    async fn look_how_it_is_turned(&mut self, place: &Place<'_>) -> Result<(), ProvokeError> {
        let upright = commands::is_upright(self.plan, place.at, &self.phone, place.round);
        let expected = upright == place.done.is_multiple_of(2);
        let turned = phone_state::rotation(self.device).await?;
        if turned.is_some_and(|turned| (turned % 2 == 0) != expected) {
            self.phone.upright = !self.phone.upright;
        }
        Ok(())
    }

    /// Does an action once, and looks what came of it.
    async fn step(
        &mut self,
        action: &Action,
        mut step: Step,
        commands: &[CheckedCommand],
    ) -> Result<(), ProvokeError> {
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
        self.report.steps = self.report.steps.saturating_add(1);
        self.in_vain_before = step.is_in_vain();
        self.report.in_vain += u32::from(step.is_in_vain());
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

    /// Compares the process with the one seen before; whether that has died by itself.
    async fn notice(&mut self, now: Option<&Pulse>) -> Result<bool, ProvokeError> {
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
        // Where the cable is lost over this question, the one before still counts as seen last.
        let death = phone_state::death(self.device, &self.phone, target, died, next).await?;
        self.pulse = now.cloned();
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
    async fn act(
        &mut self,
        checked: &CheckedCommand,
        effects: &mut Vec<Effect>,
    ) -> Result<(), ProvokeError> {
        // Whatever comes, the phone is put back: the note stands before the first change.
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
            Check::OtherInFront => {
                phone_state::run_quick(self.device, &checked.command, SLOW).await?;
                let left = self
                    .front_until(|f| !f.is_of(&self.plan.target.package))
                    .await?;
                effects.push(match left {
                    Ok(_) => Effect::InBackground,
                    Err(_) => Effect::StillInFront,
                });
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

    /// A pause that ends with the run.
    pub(super) async fn pause(&self, long: Duration) -> Result<(), ProvokeError> {
        tokio::select! {
            done = phone_state::pause(self.device, long) => done,
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

    /// The same process as before, seen again; another one is noticed with the next doing.
    fn pulse_at_rest(&mut self, now: Option<&Pulse>) {
        if let (Some(before), Some(now)) = (&mut self.pulse, now)
            && (before.pid, before.started) == (now.pid, now.started)
        {
            before.clone_from(now);
        }
    }

    /// Waits until the app has come to rest.
    async fn settle(&mut self, round: u32, limit: Duration) -> Result<(), ProvokeError> {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let mut resting = Resting::default();
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
            // What it holds at rest is what rounds are compared by.
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
