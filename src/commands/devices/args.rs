//! The flags of `heaptap devices`.

/// Flags of `devices`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  heaptap devices --json\n  \
                  heaptap devices --pair 10.0.0.7:37041 123456\n  \
                  heaptap devices --connect 10.0.0.7:5555")]
pub struct Args {
    /// Connect to a phone on the network first
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with_all = ["disconnect", "mdns"])]
    pub connect: Option<String>,
    /// End the connection to a phone on the network first
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with = "mdns")]
    pub disconnect: Option<String>,
    /// Pair with a phone on the network first, by the address and code on its screen
    #[arg(long, num_args = 2, value_names = ["HOST:PORT", "CODE"], conflicts_with = "mdns")]
    pub pair: Option<Vec<String>>,
    /// Show what phones on the network announce, instead of the devices
    #[arg(long)]
    pub mdns: bool,
}
