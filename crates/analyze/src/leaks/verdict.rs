//! What can be said of one object: whether it should be gone, how sure that is, and why.

/// Whether an object should still be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Status {
    /// Its life is over, or something on the path before it is of that sort.
    Leaking,
    /// It is in use, so whatever holds it is not to blame.
    NotLeaking,
    /// Nothing is known.
    #[default]
    Unknown,
}

impl Status {
    /// For JSON: `leaking`, `not-leaking`, `unknown`.
    pub fn name(self) -> &'static str {
        match self {
            Status::Leaking => "leaking",
            Status::NotLeaking => "not-leaking",
            Status::Unknown => "unknown",
        }
    }
}

/// How sure it is that an object leaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Certainty {
    /// The dump has the value that says so.
    #[default]
    Certain,
    /// References alone prove it but for a short moment of the object's life.
    Likely,
    /// References fit a leak as well as something harmless.
    Possible,
}

impl Certainty {
    /// For people and JSON: `certain`, `likely`, `possible`.
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Certain => "certain",
            Certainty::Likely => "likely",
            Certainty::Possible => "possible",
        }
    }
}

/// What a rule says of an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Verdict {
    pub status: Status,
    pub certainty: Certainty,
    /// A fragment of a sentence, such as `mDestroyed is true`; empty where nothing is known.
    pub reason: String,
}

impl Verdict {
    pub fn leaking(certainty: Certainty, reason: impl Into<String>) -> Verdict {
        Verdict {
            status: Status::Leaking,
            certainty,
            reason: reason.into(),
        }
    }

    pub fn in_use(reason: impl Into<String>) -> Verdict {
        Verdict {
            status: Status::NotLeaking,
            certainty: Certainty::Certain,
            reason: reason.into(),
        }
    }

    /// Nothing known, with a remark that helps to read the path.
    pub fn unknown(remark: impl Into<String>) -> Verdict {
        Verdict {
            reason: remark.into(),
            ..Verdict::default()
        }
    }
}
