//! The actions to perform, and the app to perform them on.

use heaptap_base::error::{ErrorClass, Failure};

use super::action::Action;
use super::settle::Settle;

/// App to provoke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Package to start, stop and send events to.
    pub package: String,
    /// Process to watch and to ask for memory; the package's main process has the package's name.
    pub process: String,
    /// The Android user; by default the one in the foreground.
    pub user: Option<u32>,
}

impl Target {
    /// Parses `com.example.app` or `com.example.app:service`.
    ///
    /// # Errors
    /// Returns an error if the text is not a package or process name.
    pub fn parse(text: &str, user: Option<u32>) -> Result<Target, Failure> {
        let package = text.split(':').next().unwrap_or(text);
        let fits = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
        let good = !package.is_empty() && package.len() <= 223 && package.chars().all(fits);
        let good = good && text.len() <= 255 && !text.chars().any(|c| c.is_control() || c == ' ');
        match good {
            true => Ok(Target {
                package: package.to_owned(),
                process: text.to_owned(),
                user,
            }),
            false => {
                let message = format!("{text:?} is not a package or process name");
                Err(
                    Failure::new(ErrorClass::Usage, "bad-target", message).with_help(
                        "use a package name such as com.example.app; `heaptap apps` lists them",
                    ),
                )
            }
        }
    }
}

/// Actions to perform on an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub target: Target,
    /// Actions in order.
    pub actions: Vec<Action>,
    /// Number of iterations of all actions.
    pub rounds: u32,
    /// Wait after each iteration until the app is idle.
    pub settle: Option<Settle>,
    /// Seed of each monkey without its own; it increases with each monkey of later iterations.
    pub seed: u32,
}

impl Plan {
    /// Creates a plan with one iteration of these actions.
    pub fn new(target: Target, actions: Vec<Action>) -> Plan {
        Plan {
            target,
            actions,
            rounds: 1,
            settle: None,
            seed: 1,
        }
    }

    pub(super) fn turns(&self) -> bool {
        let turns = |a: &Action| matches!(a, Action::Rotate(_) | Action::Monkey(_));
        self.actions.iter().any(turns)
    }

    pub(super) fn needs_screen(&self) -> bool {
        self.actions.iter().any(Action::needs_screen)
    }
}
