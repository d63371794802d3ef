//! Compares heaptap's reading of heap dumps with other tools: `jmap -histo` and `jmap -dump` of a
//! program started here, and the answers of jmap, hprof-slurp and VisualVM stored next to the dumps
//! of the fixtures and of HEAPTAP_HPROF=DIR.

mod given;
mod jdk;
mod oracle;
