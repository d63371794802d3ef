//! `heaptap doctor`: shows the readiness of the host and the device.

use std::path::Path;

use super::args::Args;
use super::run::{Check, Side, Status, diagnose};
use super::try_view;
use crate::console::Style;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use heaptap_base::error::Failure;

/// Runs the command.
///
/// # Errors
/// Without `--try` none: problems are shown and set the exit code. With it, an error if nothing
/// could be tried or written.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    if args.tries {
        return try_view::run(ctx, args).await;
    }
    let output = args.output.as_deref().unwrap_or(Path::new("."));
    let diagnosis = diagnose(ctx.server().await, &ctx.selector(), output).await;
    if ctx.console.is_json() {
        ctx.console.json(&diagnosis);
    } else {
        for (side, title) in [(Side::Device, "Device and adb"), (Side::Host, "Host")] {
            ctx.console.in_style(Style::Strong, title);
            for check in diagnosis.checks.iter().filter(|c| c.side == side) {
                show(ctx, check);
            }
        }
        if diagnosis.ready {
            let device = ctx.globals.device_words();
            ctx.console.say(format_args!(
                "ready: run `heaptap record -n PROCESS{device}` (`heaptap apps{device}` lists \
                 processes)"
            ));
        }
    }
    Ok(Outcome::from_classes(diagnosis.classes()))
}

fn show(ctx: &Context, check: &Check) {
    let console = &ctx.console;
    let mark = match check.status {
        Status::Ok => console.styled(Style::Good, "ok  "),
        Status::Warn => console.styled(Style::Warn, "warn"),
        Status::Fail => console.styled(Style::Error, "FAIL"),
    };
    console.data(format_args!("  {mark}  {}", check.what));
    if let Some(fix) = &check.fix {
        let label = console.styled(Style::Help, "help:");
        console.data(format_args!("        {label} {fix}"));
    }
}
