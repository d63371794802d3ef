//! The flags of `heaptap open`.

use super::run::UI;
use crate::units::parse_duration;
use std::ffi::OsString;
use std::time::Duration;

/// Flags of `open`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap open rec                        the trace in Perfetto's UI (needs the network)\n  \
    heaptap open rec --report               the recording's report.html (needs nothing)\n  \
    heaptap open rec --print-url            for a browser that you start yourself")]
pub struct Args {
    /// A recording's folder, a trace or a report's page; of an HPROF or a pprof the report is shown
    #[arg(value_name = "INPUT")]
    pub input: OsString,
    /// Show report.html in place of the trace; it is made where it is missing
    #[arg(long)]
    pub report: bool,
    /// Start no browser: print the address, and nothing else, on standard output
    #[arg(long)]
    pub print_url: bool,
    /// Hand the trace over by a page on this computer, from any free port
    ///
    /// For Safari, which lets the UI fetch nothing from this computer, and where port 9001 is in
    /// use.
    #[arg(long)]
    pub page: bool,
    /// The port to listen on [default: 9001, with --page any; another one implies --page]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Another UI, such as one of your own
    #[arg(long, value_name = "URL", default_value = UI)]
    pub ui: String,
    /// How long to wait for the browser
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = time)]
    pub timeout: Duration,
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text, Duration::from_millis(1)).map_err(|error| error.to_string())
}
