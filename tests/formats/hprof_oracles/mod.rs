//! What heaptap reads of heap dumps against what others read of them: `jmap -histo` and
//! `jmap -dump` of a program that is started here, and the answers of jmap, hprof-slurp and
//! VisualVM that lie beside the dumps of the fixtures and beside those of HEAPTAP_HPROF=FOLDER.

mod given;
mod jdk;
mod oracle;
