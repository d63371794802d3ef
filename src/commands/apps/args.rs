//! The flags of `heaptap apps`.

/// Flags of `apps`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap apps                  what was installed on the phone\n  \
    heaptap apps systemui         every package with that in its name\n  \
    heaptap apps --all --json")]
pub struct Args {
    /// Only packages whose name contains this, those of the system too
    #[arg(value_name = "FILTER")]
    pub filter: Option<String>,
    /// Those that came with the system, too
    #[arg(long)]
    pub all: bool,
}
