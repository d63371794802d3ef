//! Shows events while an app is provoked: a line per step as it happens, the trend of memory over
//! the iterations, and the next commands.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use crate::commands::shared::paths::near;
use crate::console::{Console, Style};
use heaptap_base::parallel::lock;
use heaptap_base::units::{ByteSize, HumanDuration, SignedSize, thousands};
use heaptap_base::untrusted::sanitize;
use heaptap_base::untrusted::shell::{quoted, quoted_path};
use heaptap_capture::provoke::{
    Effect, Event, Launch, MIN_COUNT, Plan, PutBack, Report, Step, Target, Trend, Verdict,
};

pub(super) fn put_back_words(done: &PutBack) -> String {
    let mut words: Vec<String> = done
        .settings
        .iter()
        .map(|s| sanitize(s).into_owned())
        .collect();
    if done.monkey_ended {
        words.push("monkey ended".to_owned());
    }
    if done.screen_off {
        words.push("screen off".to_owned());
    }
    match words.is_empty() {
        true => "nothing to restore".to_owned(),
        false => format!("restored: {}", words.join(", ")),
    }
}

/// Shows events as they happen.
pub(super) struct Show {
    console: Console,
    steps: Arc<Mutex<Vec<Step>>>,
    rounds: u32,
    package: String,
    /// Whether the column headings were printed.
    headed: AtomicBool,
}

impl Show {
    pub(super) fn new(console: &Console, plan: &Plan, steps: Arc<Mutex<Vec<Step>>>) -> Show {
        Show {
            console: console.clone(),
            steps,
            rounds: plan.rounds,
            package: plan.target.package.clone(),
            headed: AtomicBool::new(false),
        }
    }

    pub(super) fn event(&self, event: &Event) {
        let console = &self.console;
        console.event(event);
        match event {
            Event::PutBackFirst(done) => console.say(format_args!(
                "an earlier run did not restore the device; now {}",
                put_back_words(done)
            )),
            Event::Woke { unlocked } => console.say(match unlocked {
                true => "the screen was off or locked; heaptap switched it on and unlocked it",
                false => "the screen was off; heaptap switched it on",
            }),
            Event::BroughtToFront(launch) => {
                console.say(format_args!(
                    "brought to the foreground: {}",
                    launch_words(launch)
                ));
            }
            Event::Round { round, of } if *of > 1 => {
                self.head();
                console.in_style(Style::Strong, format!("iteration {round} of {of}"));
            }
            Event::Step(step) => self.step(step),
            Event::Settled {
                settled,
                after_ms,
                why,
                ..
            } => {
                let after = HumanDuration(Duration::from_millis(*after_ms));
                match (settled, why) {
                    (false, Some(why)) => {
                        console.warn(format_args!("not idle after {after}: {why}"));
                    }
                    _ => console.data(format_args!("  idle after {after}")),
                }
            }
            Event::Died(death) => {
                let next = match death.next_pid {
                    Some(pid) => format!("; process {pid} replaces it"),
                    None => String::new(),
                };
                console.warn(format_args!(
                    "{} ({}) died: {}{next}",
                    sanitize(&death.process),
                    death.pid,
                    sanitize(&death.why())
                ));
            }
            Event::Lost { what, goes_on } => console.warn(format_args!(
                "{what}; waiting up to a minute for the device, {}",
                match goes_on {
                    true => "to continue",
                    false => "to restore it",
                }
            )),
            Event::Returned { after_ms } => console.say(format_args!(
                "the device is back after {}; continuing",
                HumanDuration(Duration::from_millis(*after_ms))
            )),
            Event::Round { .. } | Event::PutBack(_) => {}
        }
    }

    /// Prints the column headings once.
    fn head(&self) {
        if self.headed.swap(true, Ordering::Relaxed) || self.console.is_json_lines() {
            return;
        }
        let indent = self.indent();
        let heading = format!(
            "{indent}{:<24}  {:>8}  {:>13}  effect",
            "action", "took", "RssAnon"
        );
        self.console.in_style(Style::Dim, heading);
    }

    fn indent(&self) -> &'static str {
        if self.rounds > 1 { "  " } else { "" }
    }

    fn step(&self, step: &Step) {
        self.head();
        let console = &self.console;
        let indent = self.indent();
        let mut what = sanitize(&step.action).into_owned();
        if step.of > 1 {
            what.push_str(&format!("  {}/{}", step.time, step.of));
        }
        let took = Duration::from_nanos(step.end_ns.saturating_sub(step.begin_ns));
        let mut line = format!("{indent}{what:<24}  {:>8}", HumanDuration(took).to_string());
        match step.rss_anon {
            Some(bytes) => {
                let kib = thousands(bytes / 1024);
                line.push_str(&format!("  {kib:>9} KiB"));
            }
            None => line.push_str(&format!("  {:>13}", "not running")),
        }
        let parts = effects(step, &self.package);
        for line in laid_out(console, line, &parts, console.stdout_width()) {
            console.laid_out(line);
        }
        if !console.is_json_lines() {
            let mut steps = lock(&self.steps);
            steps.push(step.clone());
        }
    }
}

/// Returns the effects of a step. Consecutive trim levels are merged into one list.
fn effects(step: &Step, package: &str) -> Vec<(Style, String)> {
    let mut parts: Vec<(Style, String)> = Vec::new();
    if step.again {
        parts.push((Style::Dim, "again".to_owned()));
    }
    let mut asked = false;
    for effect in &step.effects {
        let style = match effect.is_in_vain() {
            true => Style::Warn,
            false => Style::Dim,
        };
        let (text, was_asked) = match effect {
            Effect::Trimmed { level } if asked => ((*level).to_owned(), true),
            Effect::Trimmed { .. } => (effect_words(effect), true),
            _ => (effect_words(effect), false),
        };
        asked = was_asked;
        // The package is known, so only the activities are named.
        parts.push((style, text.replace(&format!("{package}/"), "")));
    }
    parts
}

/// Returns a line of figures with its effects: on the same line if there is room, otherwise below,
/// wrapped at words.
fn laid_out(
    console: &Console,
    line: String,
    parts: &[(Style, String)],
    width: Option<usize>,
) -> Vec<String> {
    /// Minimum number of columns for effects on the same line.
    const NARROWEST: usize = 24;
    let at = console::measure_text_width(&line) + 2;
    let mut lines = Vec::new();
    let (mut text, indent) = match width {
        Some(width) if width < at + NARROWEST => {
            lines.push(line);
            (" ".repeat(4), 4)
        }
        _ => (line + "  ", at),
    };
    let mut used = indent;
    let last = parts.len().saturating_sub(1);
    for (nth, (style, part)) in parts.iter().enumerate() {
        let comma = if nth < last { "," } else { "" };
        let part = format!("{part}{comma}");
        for word in part.split(' ') {
            let long = console::measure_text_width(word);
            if used > indent && width.is_some_and(|width| used + 1 + long > width) {
                lines.push(std::mem::replace(&mut text, " ".repeat(indent)));
                used = indent;
            } else if used > indent {
                text.push(' ');
                used += 1;
            }
            text.push_str(&console.styled(*style, word).to_string());
            used += long;
        }
    }
    text.truncate(text.trim_end_matches(' ').len());
    if !text.is_empty() {
        lines.push(text);
    }
    lines
}

fn effect_words(effect: &Effect) -> String {
    let text = match effect {
        Effect::Recreated { activity } => format!("{activity} recreated"),
        Effect::NotRecreated { activity, why } => {
            format!("{activity} not recreated, so nothing was provoked: {why}")
        }
        Effect::Unknown { why } => format!("effect unknown: {why}"),
        Effect::InBackground => "went to the background".to_owned(),
        Effect::StillInFront => "still in the foreground".to_owned(),
        Effect::Launched(launch) => launch_words(launch),
        Effect::Trimmed { level } => format!("requested: {level}"),
        Effect::TrimRefused { level, why } => format!("{level} refused: {why}"),
        Effect::Monkey {
            events,
            injected,
            seed,
            aborted,
        } => {
            let injected = injected.map_or_else(|| "?".to_owned(), thousands);
            let ended = aborted.as_ref().map(|why| format!(", ended early: {why}"));
            format!(
                "{injected} of {} events sent (seed {seed}){}",
                thousands(*events),
                ended.unwrap_or_default()
            )
        }
        Effect::Ended => "ended".to_owned(),
        Effect::StillRuns { why } => format!("still running: {why}"),
    };
    sanitize(&text).into_owned()
}

fn launch_words(launch: &Launch) -> String {
    let activity = launch.activity.as_deref().unwrap_or("the app");
    let mut text = match launch.only_to_front {
        true => format!("{activity} came to the foreground without a launch"),
        false => format!("{activity} launched"),
    };
    match (&launch.state, launch.total_ms) {
        (Some(state), Some(ms)) if !launch.only_to_front => {
            text.push_str(&format!(" ({}, {ms} ms)", state.to_ascii_lowercase()));
        }
        (_, Some(ms)) => text.push_str(&format!(" ({ms} ms)")),
        _ => {}
    }
    if let Some(front) = &launch.behind {
        text.push_str(&format!(", but {front} is in the foreground"));
    }
    sanitize(&text).into_owned()
}

/// Facts for the next commands.
pub(super) struct Next<'a> {
    pub(super) target: &'a Target,
    pub(super) timeline: Option<&'a Path>,
    /// Options that select the device, each after a space.
    pub(super) device: String,
    /// Whether the device no longer exists.
    pub(super) gone: bool,
}

impl Next<'_> {
    /// Returns the next commands, each with its purpose.
    fn commands(&self, report: &Report, runs: bool) -> Vec<(&'static str, String)> {
        let mut next = Vec::new();
        if let Some(directory) = self.timeline.filter(|path| path.is_dir()) {
            let place = quoted_path(near(directory));
            next.push((
                "show the steps together with the recording, once it has ended:",
                format!("heaptap report {place}"),
            ));
        }
        if self.gone {
            return next;
        }
        let which = &self.device;
        let target = &self.target;
        let process = quoted(&target.process);
        if report.interrupted
            || (report.without_effect > 0 && report.without_effect == report.steps)
        {
            next.push(("list other actions:", "heaptap provoke --list".to_owned()));
        }
        match runs {
            true => {
                let directory = quoted_path(format!("{}-provoked", target.package));
                next.push((
                    "dump its Java heap and look for leaks:",
                    format!(
                        "heaptap dump -n {process}{which} -o {directory} && heaptap leaks {directory}"
                    ),
                ));
                next.push((
                    "show its memory by category:",
                    format!("heaptap meminfo -n {process}{which}"),
                ));
            }
            false => next.push((
                "start the app, which is not running:",
                format!("heaptap provoke -n {process} start{which}"),
            )),
        }
        next
    }
}

/// Shows the report at the end.
pub(super) fn report(console: &Console, report: &Report, steps: &[Step], next: &Next<'_>) {
    if console.is_json_lines() {
        console.event(&json!({ "event": "ended", "report": report }));
        return;
    }
    if console.is_json() {
        let target = &next.target.process;
        console.json(&json!({ "target": target, "steps": steps, "report": report }));
        return;
    }
    if let Some(trend) = &report.trend {
        for (style, line) in trend_lines(trend) {
            match style {
                Some(style) => console.in_style(style, line),
                None => console.data(line),
            }
        }
    }
    if report.without_effect > 0 {
        console.warn(format_args!(
            "{} of {} steps had no effect, so they provoked nothing",
            report.without_effect, report.steps
        ));
    }
    if let Some(done) = &report.restored {
        console.say(put_back_words(done));
    }
    if report.recreated_by_restoring {
        console.say(recreated_words(report.recreations));
    }
    if let Some(front) = &report.front {
        console.say(format_args!("left in the foreground: {}", sanitize(front)));
    }
    let runs = steps.last().is_some_and(|step| step.pid.is_some());
    console.next(&next.commands(report, runs));
}

fn recreated_words(recreations: u32) -> String {
    format!(
        "restoring the rotation recreated the activity once more, {} times in total; an even \
         number of rotations avoids this",
        thousands(recreations)
    )
}

/// Returns the trend of memory over the iterations, with its confidence interval and limitations.
fn trend_lines(trend: &Trend) -> Vec<(Option<Style>, String)> {
    let (one, [what, several]) = match trend.per {
        "iteration" => (
            "per iteration".to_owned(),
            ["iteration".to_owned(), "iterations".to_owned()],
        ),
        action => (
            format!("per {action}"),
            ["repetition", "repetitions"].map(|what| format!("{what} of {action}")),
        ),
    };
    let since = match trend.restarted {
        true => " since the process restarted",
        false => "",
    };
    let (Some(change), Some(low), Some(high)) = (trend.change, trend.low, trend.high) else {
        let counted = match trend.rounds {
            1 => format!("1 {what} is"),
            more => format!("{more} {several} are"),
        };
        let text = format!(
            "{counted} too few{since} to determine the trend of RssAnon: it needs {MIN_COUNT}, of \
             which it leaves out the first {}",
            trend.left_out
        );
        return vec![(Some(Style::Dim), text)];
    };
    let size = |bytes: i64| format!("{:+}", SignedSize(bytes));
    let range = format!("95% confidence: {} to {}", size(low), size(high));
    let amount = ByteSize(change.unsigned_abs());
    let counted = match trend.per {
        "iteration" => format!("iterations {} to {}", trend.left_out + 1, trend.rounds),
        _ => format!("repetitions {} to {}", trend.left_out + 1, trend.rounds),
    };
    let caveat = "this includes garbage that is not collected yet, and unrelated allocations; \
                  `heaptap leaks` shows what stays reachable";
    match trend.verdict {
        Verdict::Grows => vec![
            (
                None,
                format!("RssAnon grows by {amount} {one} ({range}; {counted}{since})"),
            ),
            (Some(Style::Dim), caveat.to_owned()),
        ],
        Verdict::Shrinks => vec![(
            None,
            format!("RssAnon shrinks by {amount} {one} ({range}; {counted}{since})"),
        )],
        _ => vec![(
            None,
            format!(
                "the trend of RssAnon is uncertain: {} {one} on average ({range}; \
                 {counted}{since}); more iterations narrow the interval",
                size(change)
            ),
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trend(verdict: Verdict, change: Option<i64>) -> Trend {
        Trend {
            per: "iteration",
            rounds: 8,
            left_out: 2,
            restarted: false,
            change,
            low: change.map(|c| c - 2048),
            high: change.map(|c| c + 2048),
            verdict,
        }
    }

    #[test]
    fn what_memory_did_is_told_with_how_sure_that_is() {
        let text = |t: &Trend| {
            let lines = trend_lines(t);
            lines
                .into_iter()
                .map(|l| l.1)
                .collect::<Vec<_>>()
                .join("\n")
        };
        let grows = text(&trend(Verdict::Grows, Some(102_400)));
        assert!(
            grows.starts_with(
                "RssAnon grows by 100.0 KiB per iteration (95% confidence: +98.0 KiB to +102.0 \
                 KiB; iterations 3 to 8)"
            ),
            "{grows}"
        );
        assert!(grows.contains("not collected yet"), "{grows}");
        let unclear = text(&trend(Verdict::Unclear, Some(0)));
        assert!(
            unclear.contains("trend of RssAnon is uncertain"),
            "{unclear}"
        );
        let mut few = trend(Verdict::TooFew, None);
        few.rounds = 3;
        few.restarted = true;
        let few = text(&few);
        assert!(
            few.starts_with("3 iterations are too few since the process restarted to determine"),
            "{few}"
        );
        let mut few = trend(Verdict::TooFew, None);
        few.per = "rotate";
        for (rounds, begin) in [
            (1, "1 repetition of rotate is too few to determine"),
            (4, "4 repetitions of rotate are too few to determine"),
        ] {
            few.rounds = rounds;
            let few = text(&few);
            assert!(few.starts_with(begin), "{few}");
        }
    }

    #[test]
    fn effects_go_below_where_there_is_no_room() {
        let console = Console::from_raw_args(&[]);
        let parts = [
            (Style::Dim, "in the background".to_owned()),
            (Style::Dim, ".Main launched".to_owned()),
        ];
        let line = "rotate  1 s";
        let laid = |width| laid_out(&console, line.to_owned(), &parts, width);
        let piped = laid(None);
        assert!(piped.len() == 1 && piped[0].starts_with(line), "{piped:?}");
        let narrow = laid(Some(30));
        assert_eq!(narrow.len(), 3, "{narrow:?}");
        for below in &narrow[1..] {
            assert!(below.starts_with("    ") && below.len() <= 30, "{below:?}");
        }
        assert!(laid(Some(40))[0].contains("in the background"));
        assert_eq!(laid_out(&console, line.to_owned(), &[], None), [line]);
    }
}
