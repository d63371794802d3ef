//! The flags of `heaptap check`.

/// Flags of `check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap check com.example.app\n  \
    heaptap check 'com.example.*' --for both --json\n\n\
    Exit code 4 where any process is not eligible, or nothing was found.")]
pub struct Args {
    /// Process names (with *), or process ids
    #[arg(value_name = "TARGET", required_unless_present = "packages")]
    pub targets: Vec<String>,
    /// All processes of this package
    #[arg(long = "package", value_name = "PKG", value_delimiter = ',')]
    pub packages: Vec<String>,
    /// Which kind of profile the exit code is about
    ///
    /// Both are always shown. A native program has no Java heap: that alone is no reason to
    /// fail.
    #[arg(long = "for", value_enum, value_name = "KIND", default_value_t)]
    pub kind: Kind,
}

/// Which kind of profile the exit code is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Kind {
    /// Native heap profiles.
    #[default]
    Native,
    /// Java heap dumps.
    Java,
    /// Both.
    Both,
}
