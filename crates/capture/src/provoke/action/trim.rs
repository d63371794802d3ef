//! Trim requests: their levels, text forms and commands.

/// Trim request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trim {
    Level(TrimLevel),
    /// All levels in rising order.
    All,
}

impl Trim {
    /// Returns whether the app must be in the foreground for the first level.
    pub fn begins_in_front(self) -> bool {
        match self {
            Trim::All => true,
            Trim::Level(level) => !level.is_for_background(),
        }
    }
}

/// A level of `ComponentCallbacks2.onTrimMemory`, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrimLevel {
    /// The app is in the foreground; memory begins to run low.
    RunningModerate = 5,
    /// The app is in the foreground; memory is low.
    RunningLow = 10,
    /// The app is in the foreground; the system cannot keep other processes alive.
    RunningCritical = 15,
    /// The app is not visible any more.
    Hidden = 20,
    /// Recently moved to the background.
    Background = 40,
    /// Halfway to being killed.
    Moderate = 60,
    /// Next to be killed.
    Complete = 80,
}

impl TrimLevel {
    /// All levels in rising order.
    pub const ALL: [TrimLevel; 7] = [
        TrimLevel::RunningModerate,
        TrimLevel::RunningLow,
        TrimLevel::RunningCritical,
        TrimLevel::Hidden,
        TrimLevel::Background,
        TrimLevel::Moderate,
        TrimLevel::Complete,
    ];

    /// Returns the name as typed.
    pub fn name(self) -> &'static str {
        match self {
            TrimLevel::RunningModerate => "running-moderate",
            TrimLevel::RunningLow => "running-low",
            TrimLevel::RunningCritical => "running-critical",
            TrimLevel::Hidden => "hidden",
            TrimLevel::Background => "background",
            TrimLevel::Moderate => "moderate",
            TrimLevel::Complete => "complete",
        }
    }

    /// Returns the level for `am send-trim-memory`, as every release accepts it.
    pub fn word(self) -> String {
        self.name().to_ascii_uppercase().replace('-', "_")
    }

    /// Returns whether it is only for background apps, and refused for one in the foreground.
    pub fn is_for_background(self) -> bool {
        self >= TrimLevel::Hidden
    }

    pub(super) fn parse(text: &str) -> Option<TrimLevel> {
        let plain = text.to_ascii_lowercase().replace('_', "-");
        let plain = plain.strip_prefix("trim-memory-").unwrap_or(&plain);
        let fits = |level: &TrimLevel| {
            level.name() == plain
                || (*level as u32).to_string() == plain
                || (*level == TrimLevel::Hidden && plain == "ui-hidden")
        };
        TrimLevel::ALL.into_iter().find(fits)
    }
}
