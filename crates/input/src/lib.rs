//! Opens any file or directory that can contain a heap: a Perfetto trace, an HPROF or a pprof. The
//! input can be raw or in gzip, zstd, xz, ZIP or TAR, in a recording directory, or on stdin. The
//! crate also opens device texts, raw or in any of those except TAR, and the sections of bug
//! reports. It owns detection and unpacking. `perfetto-heap` decodes traces; `android-hprof` decodes
//! HPROFs.
//!
//! | function | result |
//! |---|---|
//! | [`detect`] | the file type, detected from the first bytes |
//! | [`open`], [`open_stream`] | the traces in a file, directory or stream |
//! | [`open_hprofs`], [`open_hprof_stream`] | heap dumps, as mapped or unpacked bytes |
//! | [`open_java`] | Java heaps from traces or HPROFs |
//! | [`open_heaps`] | heaps of any type |
//! | [`read_pprof`] | a pprof from any tool, as named stacks |
//! | [`TextInput`] | a device text: its first bytes, then a UTF-8 stream or the whole text |
//! | [`share`] | two independent readers of one source |
//!
//! # The method
//!
//! Only the first bytes decide the file type, never the name. The decoder reads a trace twice.
//! Therefore, any input other than a plain file is first unpacked to an unnamed temporary file;
//! small inputs stay in memory. Archive members are streamed: no path in an archive becomes a path
//! on the host. Allocations never follow a size that the input claims, and a budget limits the
//! unpacked bytes.
//!
//! | module | owns |
//! |---|---|
//! | `detect` | file types and the help text for each |
//! | `error` | errors and their help texts |
//! | `directory` | recordings and known texts in directories |
//! | `codec`, `parallel_gzip`, `archive`, `tar` | compression and archives around a trace or heap dump |
//! | `trace` | traces, also in directories and archives |
//! | `spool` | unpacked copies |
//! | `hprof`, `pprof`, `heaps` | heap dumps, pprofs, and files that can contain any of them |
//! | `shared` | two readers of one source |
//! | [`bugreport`] | the sections of a bug report |
//! | `text` | opening, unpacking, limiting and decoding texts |
//!
//! # A worked example
//!
//! ```
//! use heaptap_input::{Kind, detect};
//!
//! assert_eq!(detect(b"JAVA PROFILE 1.0.3\0"), Kind::Hprof);
//! assert_eq!(detect(&[0x1f, 0x8b, 8, 0]), Kind::Gzip);
//! assert_eq!(detect(b"hello"), Kind::Text);
//! ```

mod archive;
pub mod bugreport;
mod codec;
mod detect;
mod directory;
mod error;
mod heaps;
mod hprof;
mod parallel_gzip;
mod pprof;
mod shared;
mod spool;
mod tar;
mod text;
mod trace;

pub use codec::BYTES_BEHIND;
pub use detect::{Foreign, Kind, KnownText, REPORT_MARK, detect};
pub use error::{ImportError, help_missing, help_missing_file, help_unreadable};
pub use heaps::{HeapSource, open_heaps, open_heaps_stream, open_java, open_java_stream};
pub use hprof::{
    HprofInput, hprofs_in_directory, open_hprof, open_hprof_stream, open_hprofs, several_hprofs,
};
pub use pprof::{Pprof, PprofDamage, PprofInput, read_pprof};
pub use shared::share;
pub use text::{STDIN, STDIN_NAME, Text, TextInput, WholeText, is_directory};
pub use trace::{OpenTrace, not_fetched, open, open_stream, trace_in_directory};
