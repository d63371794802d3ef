//! Prints the TraceConfig that records the native heap of an app, as `perfetto --txt -c -`
//! accepts it.
//!
//! ```console
//! $ cargo run -p heaptap-capture --example config -- com.example.app 30s
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use heaptap_base::error::Failure;
use heaptap_base::units::parse_duration;
use heaptap_capture::config::{DeviceLimits, Options, Targets, resolve};
use std::time::Duration;

fn config(app: &str, duration: Duration) -> Result<String, Failure> {
    let options = Options {
        targets: Targets {
            names: vec![app.to_owned()],
            ..Targets::default()
        },
        interval_bytes: Some(4096),
        duration: Some(duration),
        ..Options::default()
    };
    let spec = resolve(None, &options)?.spec;
    // Limits of a device affect the config; the default has no limits.
    Ok(spec.encode(&DeviceLimits::default())?.text)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: config PROCESS DURATION";
    let (app, duration) = (args.next().ok_or(usage)?, args.next().ok_or(usage)?);
    let duration = parse_duration(&duration, Duration::from_secs(1))?;
    print!("{}", config(&app, duration)?);
    Ok(())
}

#[test]
fn config_names_the_process() {
    let text = config("com.example.app", Duration::from_secs(30)).unwrap();
    assert_eq!(text.lines().next(), Some("buffers {"));
    assert!(text.contains("process_cmdline: \"com.example.app\""));
}
