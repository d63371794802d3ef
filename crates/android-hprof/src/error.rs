//! Errors of dumps that cannot be read at all.

use super::records::HeaderError;
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};

/// Reason why a dump cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HprofError {
    /// The file does not have a valid header.
    #[error("not a readable HPROF: {0}")]
    Header(#[from] HeaderError),
    /// The dump has more than 32-bit indices can number.
    #[error("the dump has too many {what}")]
    TooLarge {
        /// `bytes`, `objects` or `references`.
        what: &'static str,
    },
}

impl Classified for HprofError {
    fn facts(&self) -> ErrorFacts {
        match self {
            HprofError::Header(header) => ErrorFacts::new(ErrorClass::BadInput, "hprof-header")
                .with_help(match header {
                    HeaderError::CutShort => {
                        "fetch the dump again or take another one"
                    }
                    _ => {
                        "use a dump written by ART (`heaptap dump --hprof`), HotSpot (`jmap -dump`) \
                         or a converter of Android dumps"
                    }
                }),
            HprofError::TooLarge { .. } => ErrorFacts::new(ErrorClass::BadInput, "hprof-too-large")
                .with_help(
                    "count the objects with `heaptap hprof info`; other commands number objects \
                     and references with 32 bits",
                ),
        }
    }
}
