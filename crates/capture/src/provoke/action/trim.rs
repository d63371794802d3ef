//! Requests to give memory back: which levels there are, how they are typed and sent.

/// Which request to give memory back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trim {
    /// One.
    Level(TrimLevel),
    /// All of them, rising.
    All,
}

impl Trim {
    /// Whether the app has to be in front when it is asked first.
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
    /// 5: in front; the system begins to run short.
    RunningModerate,
    /// 10: in front; it runs short.
    RunningLow,
    /// 15: in front; it can't keep others alive.
    RunningCritical,
    /// 20: nothing of the app is visible any more.
    Hidden,
    /// 40: just out of sight.
    Background,
    /// 60: half way to being killed.
    Moderate,
    /// 80: next to be killed.
    Complete,
}

impl TrimLevel {
    /// All, rising.
    pub const ALL: [TrimLevel; 7] = [
        TrimLevel::RunningModerate,
        TrimLevel::RunningLow,
        TrimLevel::RunningCritical,
        TrimLevel::Hidden,
        TrimLevel::Background,
        TrimLevel::Moderate,
        TrimLevel::Complete,
    ];

    /// As it is typed.
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

    /// As `am send-trim-memory` of every release takes it.
    pub fn word(self) -> &'static str {
        match self {
            TrimLevel::RunningModerate => "RUNNING_MODERATE",
            TrimLevel::RunningLow => "RUNNING_LOW",
            TrimLevel::RunningCritical => "RUNNING_CRITICAL",
            TrimLevel::Hidden => "HIDDEN",
            TrimLevel::Background => "BACKGROUND",
            TrimLevel::Moderate => "MODERATE",
            TrimLevel::Complete => "COMPLETE",
        }
    }

    /// As the app gets it.
    pub fn number(self) -> u32 {
        match self {
            TrimLevel::RunningModerate => 5,
            TrimLevel::RunningLow => 10,
            TrimLevel::RunningCritical => 15,
            TrimLevel::Hidden => 20,
            TrimLevel::Background => 40,
            TrimLevel::Moderate => 60,
            TrimLevel::Complete => 80,
        }
    }

    /// Whether it is for apps that are out of sight: refused for one in front.
    pub fn is_for_background(self) -> bool {
        self >= TrimLevel::Hidden
    }

    pub(super) fn parse(text: &str) -> Option<TrimLevel> {
        let plain = text.to_ascii_lowercase().replace('_', "-");
        let plain = plain.strip_prefix("trim-memory-").unwrap_or(&plain);
        let fits = |level: &TrimLevel| {
            level.name() == plain
                || level.number().to_string() == plain
                || (*level == TrimLevel::Hidden && plain == "ui-hidden")
        };
        TrimLevel::ALL.into_iter().find(fits)
    }
}
