//! `heaptap virtual-phone`: serves the virtual phone until ended.

use super::args::Args;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::flags::virtual_phone::parse;
use heaptap_base::error::{ErrorClass, Failure};
use virtual_phone::VirtualPhone;

/// Runs the command: prints the address, serves until Ctrl-C or `adb kill-server`.
///
/// # Errors
/// Returns an error if SPEC is invalid or the port cannot be opened.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let mut spec = parse(&args.spec)?;
    // A server for others can be ended by `adb kill-server`.
    spec.killable = true;
    let phone = VirtualPhone::start_on(spec, args.port).map_err(|error| {
        Failure::new(
            ErrorClass::HostWrite,
            "port-taken",
            format!("cannot listen on 127.0.0.1:{}: {error}", args.port),
        )
        .with_help("choose another `--port`, or 0 for any free port")
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
