//! The flags of `heaptap meminfo`.

use super::live::args::LiveArgs;
use crate::system::meminfo::By;
use clap::ValueHint;
use std::path::PathBuf;

/// Flags of `meminfo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap meminfo com.example.app                 all processes of a package\n  \
    heaptap meminfo com.example.app:remote -d       one, with the parts of the Dalvik rows\n  \
    heaptap meminfo com.example.app --local         without asking the app: no collection\n  \
    heaptap meminfo com.example.app --explain       what each row means, the largest first\n  \
    heaptap meminfo com.example.app --explain Graphics   one in depth, and what to do\n  \
    heaptap meminfo com.example.app --save before   its text, for `heaptap diff before after`\n  \
    heaptap meminfo com.example.app --every 1s      how it moves, until Ctrl-C\n  \
    heaptap meminfo --system --by oom               the whole phone, by who is killed first\n  \
    heaptap meminfo --file bugreport-meminfo.txt    a text of any phone since Android 4\n\n\
    docs/meminfo.md explains rows, columns and what asking costs.")]
pub struct Args {
    /// Process name (with *), package (all its processes), process id; or what --file takes
    #[arg(
        value_name = "TARGET",
        required_unless_present_any = ["system", "file", "explain"],
    )]
    pub targets: Vec<String>,
    /// All columns: shared and clean pages, too
    #[arg(short, long)]
    pub all: bool,
    /// The parts of the Dalvik rows
    #[arg(short, long)]
    pub details: bool,
    /// Ask the system alone: the app is not called, collects no garbage, and tells neither its
    /// heaps' sizes nor its objects
    #[arg(long)]
    pub local: bool,
    /// The whole phone: processes by size, by importance, its RAM; costs the phone seconds
    #[arg(long, conflicts_with_all = ["all", "details", "local"])]
    pub system: bool,
    /// Of the whole phone, this alone: its processes, how soon they may be killed, kinds of memory
    #[arg(long, value_name = "WHAT", conflicts_with = "every")]
    pub by: Option<ByArg>,
    /// Of the whole phone, so many lines of each list; 0 for all
    #[arg(long, value_name = "N", conflicts_with = "every")]
    pub top: Option<usize>,
    /// Show a saved text or document (also gzip, zstd, xz), of `-` standard input, of a recording's
    /// folder the last text that was kept, or FOLDER@LABEL, FOLDER@N (beside dump N), FOLDER@last,
    /// FOLDER@end
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_hint = ValueHint::AnyPath,
        conflicts_with_all = ["all", "details", "local", "system"],
    )]
    pub file: Option<PathBuf>,
    /// Say what the rows mean that are there, the largest first; with a row's name behind it
    /// (`--explain Graphics`), of what that one is made and what to do about it
    #[arg(
        long,
        value_name = "ROW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        action = clap::ArgAction::Append,
    )]
    pub explain: Vec<String>,
    /// Save the phone's text as it came
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "file")]
    pub save: Option<PathBuf>,
    /// Overwrite a file that is there
    #[arg(long, requires = "save")]
    pub force: bool,
    /// Comma-separated values on stdout: a line for each number
    #[arg(long, conflicts_with_all = ["json", "json_lines", "explain"])]
    pub csv: bool,
    /// Whether it goes on.
    #[command(flatten)]
    pub live: LiveArgs,
}

/// By what the phone's memory is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ByArg {
    /// Processes.
    Process,
    /// How soon processes may be killed, with the processes of each.
    Oom,
    /// Kinds of memory.
    Category,
}

impl From<ByArg> for By {
    fn from(by: ByArg) -> By {
        match by {
            ByArg::Process => By::Process,
            ByArg::Oom => By::Oom,
            ByArg::Category => By::Category,
        }
    }
}
