//! The flags of `heaptap open`.

use super::run::UI;
use crate::console::flags::time::positive_time;
use std::ffi::OsString;
use std::time::Duration;

/// Flags of `open`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  \
    heaptap open rec                        the trace in Perfetto's UI (needs the network)\n  \
    heaptap open rec --print-url            for a browser that you start yourself")]
pub struct Args {
    /// A recording's directory, a trace or a page of `heaptap report`
    ///
    /// For an HPROF or a pprof heaptap shows the report.
    #[arg(value_name = "INPUT")]
    pub input: OsString,
    /// Print the address instead of starting a browser
    #[arg(long)]
    pub print_url: bool,
    /// Serve the trace from a page on any free port
    ///
    /// For Safari, which does not let the UI fetch from this host, and if port 9001 is in use.
    #[arg(long)]
    pub page: bool,
    /// Port to listen on [default: 9001, with --page any]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Address of another UI
    #[arg(long, value_name = "URL", default_value = UI)]
    pub ui: String,
    /// Give up after this time
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = positive_time)]
    pub timeout: Duration,
}
