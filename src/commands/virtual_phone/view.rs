//! `heaptap virtual-phone`: serves the virtual phone until ended.

use super::args::Args;
use crate::error::{ErrorClass, Failure};
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::virtual_phone::parse;
use crate::phone::VirtualPhone;

/// Runs the command: prints the address, serves until Ctrl-C or `adb kill-server`.
///
/// # Errors
/// A SPEC that can't be understood; a port that can't be had.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let mut spec = parse(&args.spec)?;
    // Whoever serves it for others may also end it as adb does.
    spec.killable = true;
    let phone = VirtualPhone::start_on(spec, args.port).map_err(|error| {
        Failure::new(
            ErrorClass::NoDevice,
            "port-taken",
            format!("can't listen on 127.0.0.1:{}: {error}", args.port),
        )
        .with_help("choose another --port; 0 lets the system choose")
    })?;
    ctx.console
        .data(format_args!("listening on {}", phone.addr()));
    let ended = tokio::task::spawn_blocking({
        let phone = std::sync::Arc::new(phone);
        move || phone.wait()
    });
    tokio::select! {
        _ = ended => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(Outcome::Done)
}
