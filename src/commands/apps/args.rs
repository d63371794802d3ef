//! The flags of `heaptap apps`.

/// Flags of `apps`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  \
    heaptap apps                  installed apps\n  \
    heaptap apps systemui         every package with that in its name\n  \
    heaptap apps --all --json")]
pub struct Args {
    /// Only packages with this in the name, including system packages
    #[arg(value_name = "FILTER")]
    pub filter: Option<String>,
    /// Include packages of the system
    #[arg(long)]
    pub all: bool,
}
