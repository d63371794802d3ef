//! Name of a recording session, and the names on the device that are derived from it.

use std::fmt;
use std::str::FromStr;

use heaptap_base::directory::{
    SESSION_ID_LENGTH as LENGTH, SESSION_ID_LETTERS as LETTERS, is_session_id,
};
use serde::{Deserialize, Serialize};

/// Directory for Perfetto traces (SELinux does not let its client write elsewhere).
pub(super) const TRACE_DIR: &str = "/data/misc/perfetto-traces";

/// Name of a recording session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

impl SessionId {
    /// Creates a new ID.
    pub fn random() -> Self {
        let letter = |_| char::from(LETTERS[fastrand::usize(..LETTERS.len())]);
        SessionId((0..LENGTH).map(letter).collect())
    }

    /// Returns the ID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path of the session's trace file on the device. It contains the ID, so that any
    /// host can identify the session.
    pub fn remote_path(&self) -> String {
        format!("{TRACE_DIR}/heaptap-{}.pftrace", self.0)
    }

    /// Returns a text in the config of a session whose file has no name of its own, on Android 10.
    /// The trace repeats the config, so that the file of another session is recognized.
    pub fn trace_mark(&self) -> String {
        format!("heaptap-session-{}", self.0)
    }

    /// Returns the ID in the name of a file on the device, if it is a trace of heaptap.
    pub fn of_remote_name(name: &str) -> Option<Self> {
        let name = name.rsplit('/').next().unwrap_or(name);
        name.strip_prefix("heaptap-")?
            .strip_suffix(".pftrace")?
            .parse()
            .ok()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A text that is not a session ID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a session id")]
pub struct ParseSessionIdError(String);

impl FromStr for SessionId {
    type Err = ParseSessionIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match is_session_id(text) {
            true => Ok(SessionId(text.to_owned())),
            false => Err(ParseSessionIdError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for SessionId {
    type Error = ParseSessionIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remote_name_holds_the_id() {
        let id = SessionId::random();
        assert_eq!(SessionId::of_remote_name(&id.remote_path()), Some(id));
    }

    #[test]
    fn other_names_are_not_taken_for_ours() {
        for name in [
            "profile-shell",
            "heaptap-.pftrace",
            "heaptap-../../etc.pftrace",
            "heaptap-abcdefg1.pftrace",
            "heaptap-abcdefgh",
        ] {
            assert_eq!(SessionId::of_remote_name(name), None, "{name}");
        }
    }
}
