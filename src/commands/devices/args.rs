//! The flags of `heaptap devices`.

/// Flags of `devices`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  heaptap devices --json\n  \
                  heaptap devices --pair 10.0.0.7:37041 123456\n  \
                  heaptap devices --connect 10.0.0.7:5555")]
pub struct Args {
    /// First connect to a device on the network
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with_all = ["disconnect", "mdns"])]
    pub connect: Option<String>,
    /// First disconnect from a device on the network
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with = "mdns")]
    pub disconnect: Option<String>,
    /// First pair with a device on the network, by the code on its screen
    #[arg(long, num_args = 2, value_names = ["HOST:PORT", "CODE"], conflicts_with = "mdns")]
    pub pair: Option<Vec<String>>,
    /// Show what devices on the network announce, instead of the devices
    #[arg(long)]
    pub mdns: bool,
}
