//! Verdict on one object: status, certainty and reason.

/// Lifecycle status of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The object's lifecycle has ended, or that of an earlier object on the path.
    Leaking,
    /// The object is in use, so its holders are not to blame.
    NotLeaking,
    #[default]
    Unknown,
}

/// Certainty that an object leaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Certainty {
    /// A value in the dump proves it.
    #[default]
    Certain,
    /// References prove it, except for a short moment of the object's lifecycle.
    Likely,
    /// References fit both a leak and a harmless state.
    Possible,
}

/// As its name.
impl serde::Serialize for Certainty {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Certainty {
    /// Returns the name for output and JSON: `confirmed`, `likely`, `possible`.
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Certain => "confirmed",
            Certainty::Likely => "likely",
            Certainty::Possible => "possible",
        }
    }
}

/// Verdict of a rule on an object.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Verdict {
    pub status: Status,
    pub certainty: Certainty,
    /// Sentence fragment, such as `mDestroyed is true`; empty if nothing is known.
    pub reason: String,
}

impl Verdict {
    pub(super) fn leaking(certainty: Certainty, reason: impl Into<String>) -> Verdict {
        Verdict {
            status: Status::Leaking,
            certainty,
            reason: reason.into(),
        }
    }

    pub(super) fn in_use(reason: impl Into<String>) -> Verdict {
        Verdict {
            status: Status::NotLeaking,
            certainty: Certainty::Certain,
            reason: reason.into(),
        }
    }

    /// Creates a verdict of unknown status with a remark that helps to read the path.
    pub(super) fn unknown(remark: impl Into<String>) -> Verdict {
        Verdict {
            reason: remark.into(),
            ..Verdict::default()
        }
    }
}
