//! The lowest floor of heaptap: what every other crate stands on. It does not know profiles, traces
//! or devices.
//!
//! | module | owns |
//! |---|---|
//! | [`mod@error`] | exit class and stable kind of every error |
//! | [`units`] | sizes, durations, build IDs; the memory limit of a reader for its input |
//! | [`untrusted`] | sanitized text from a device; quoting for shells and CI systems |
//! | [`text`] | the plain form of a text: line ends, UTF-16 |
//! | [`varint`] | variable-length integers |
//! | [`suggest`] | similar names for misspelled ones |
//! | [`bytes`] | bytes of a file, mapped or owned |
//! | [`mod@prefetch`] | pages of a mapped file read ahead |
//! | [`directory`] | names of files in a recording's directory |
//! | [`temp_cleanup`] | temporary files that the end of the program removes |
//! | [`unfinished`] | files that appear under their final name when they are complete |
//! | [`rename_retry`] | renames while another program has the file open |
//! | [`parallel`] | work shared out among the processors |
//! | [`host`] | differences between Linux, macOS and Windows, as data |
//! | `hangup` | whether a closed terminal ends this process (Unix) |
//!
//! # A worked example
//!
//! ```
//! use heaptap_base::units::{ByteSize, parse_duration};
//! use heaptap_base::untrusted::sanitize;
//! use std::time::Duration;
//!
//! assert_eq!(ByteSize(1536 << 10).to_string(), "1.5 MiB");
//! // A bare number is in seconds here.
//! assert_eq!(parse_duration("90", Duration::from_secs(1)), parse_duration("1m30s", Duration::ZERO));
//! // A process name from a device cannot change the terminal.
//! assert!(!sanitize("app\u{1b}[2J").contains('\u{1b}'));
//! ```

pub mod bytes;
pub mod directory;
pub mod error;
#[cfg(unix)]
pub mod hangup;
pub mod host;
pub mod parallel;
pub mod prefetch;
pub mod rename_retry;
pub mod suggest;
pub mod temp_cleanup;
pub mod text;
pub mod unfinished;
pub mod units;
pub mod untrusted;
pub mod varint;
