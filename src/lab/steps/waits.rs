//! Waits of a run: for an activity, for a line of the log, and until the app is idle.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use regex::Regex;
use tokio::time::Instant;

use super::executor::StepExecutor;
use super::log::LogTail;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::parallel::lock;
use heaptap_capture::provoke::{self, Cancel, Event, Plan, Settle};

/// Pause between two looks at the device.
const PAUSE: Duration = Duration::from_millis(500);

impl StepExecutor<'_> {
    pub(super) async fn quiet(
        &self,
        rest: Duration,
        limit: Duration,
        ends: &Cancel,
    ) -> Result<(), Failure> {
        let plan = Plan {
            settle: Some(Settle { limit, rest }),
            ..Plan::new(self.target.clone(), Vec::new())
        };
        let unsettled = Mutex::new(None);
        let tell = |event: &Event| {
            if let Event::Settled { why, .. } = event {
                lock(&unsettled).clone_from(why);
            }
        };
        self.provoke(&plan, ends, &tell).await?;
        match unsettled
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
        {
            None => Ok(()),
            Some(why) => {
                let package = &self.target.package;
                Err(timed_out(
                    format!("{package} did not become idle: {why}"),
                    limit,
                ))
            }
        }
    }

    pub(super) async fn activity(&self, name: &str, limit: Duration) -> Result<(), Failure> {
        let until = Instant::now() + limit;
        loop {
            let front = provoke::foreground(self.device).await?;
            if front
                .as_deref()
                .is_some_and(|front| is_activity(front, name, &self.target.package))
            {
                return Ok(());
            }
            if Instant::now() + PAUSE >= until {
                let seen = front.unwrap_or_else(|| "no activity".to_owned());
                let message = format!("{name} did not come to the foreground; there is {seen}");
                return Err(timed_out(message, limit));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits for a line logged since the step began.
    pub(super) async fn log(&self, pattern: &str, limit: Duration) -> Result<(), Failure> {
        let regex = regex(pattern)?;
        let mut log = LogTail::begin(self.device).await?;
        let found = async {
            loop {
                if regex.is_match(&log.line().await?) {
                    return Ok(());
                }
            }
        };
        match tokio::time::timeout(limit, found).await {
            Ok(found) => found,
            Err(_) => Err(timed_out(
                format!("no line of the log matched {pattern}"),
                limit,
            )),
        }
    }
}

/// Compiles a regular expression that the check of the scenario has accepted.
pub(in crate::lab) fn regex(pattern: &str) -> Result<Regex, Failure> {
    Regex::new(pattern)
        .map_err(|error| Failure::new(ErrorClass::Usage, "bad-value", error.to_string()))
}

fn timed_out(message: String, limit: Duration) -> Failure {
    let message = format!("{message} (time limit {:.0} s)", limit.as_secs_f64());
    Failure::new(ErrorClass::Device, "wait-timeout", message)
        .with_help("give the step a longer `timeout`, or a `retry`")
}

/// Returns whether `front`, such as `com.example.app/.MainActivity`, is the activity `name`: its
/// component, its class, or the end of the class of an activity of `package` from a dot.
fn is_activity(front: &str, name: &str, own: &str) -> bool {
    let Some((package, class)) = front.split_once('/') else {
        return front == name;
    };
    let whole = match class.strip_prefix('.') {
        Some(_) => format!("{package}{class}"),
        None => class.to_owned(),
    };
    let name = name.strip_prefix(&format!("{package}/")).unwrap_or(name);
    let dotted = format!(".{}", name.trim_start_matches('.'));
    whole == name || package == own && whole.ends_with(&dotted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_activity_has_several_spellings() {
        let front = "com.example.app/.ui.MainActivity";
        for name in [
            "com.example.app/.ui.MainActivity",
            "com.example.app.ui.MainActivity",
            ".ui.MainActivity",
            ".MainActivity",
            "MainActivity",
        ] {
            assert!(is_activity(front, name, "com.example.app"), "{name}");
        }
        // Another app can have an activity of that name.
        assert!(!is_activity(front, ".MainActivity", "com.example.other"));
        for name in ["Activity", "ui", "com.example.other/.MainActivity", ""] {
            assert!(!is_activity(front, name, "com.example.app"), "{name}");
        }
        assert!(is_activity("com.a/com.b.Main", "com.b.Main", "com.a"));
    }
}
