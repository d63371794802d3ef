//! What heaptap reads of heap dumps against what others read of them: `jmap -histo` and
//! `jmap -dump` of a program that is started here, and with HEAPTAP_HPROF=FOLDER the answers of
//! jmap, hprof-slurp and VisualVM that lie beside the dumps there. Where no JDK is installed the
//! first part is skipped and says so.
#![allow(clippy::print_stdout, reason = "a skipped test says so on its output")]

mod given;
mod jdk;
mod oracle;
