//! `heaptap virtual-phone`: serves the virtual phone until ended.

use super::{Context, Outcome};
use crate::error::{ErrorClass, Failure};
use crate::phone::{PhoneSpec, SpecError, VirtualPhone};

/// Flags of `virtual-phone`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap virtual-phone --port 5038 android=14,build=user")]
pub struct Args {
    /// The port to listen on; 0 lets the system choose
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// Which phone: a list such as android=14,build=user
    #[arg(value_name = "SPEC", default_value = "")]
    pub spec: String,
}

/// The phone that a SPEC describes.
///
/// # Errors
/// Returns an error if the SPEC can't be understood.
pub(super) fn parse(spec: &str) -> Result<PhoneSpec, Failure> {
    let failure = |e: SpecError| Failure::new(ErrorClass::Usage, "phone-spec", e.to_string());
    PhoneSpec::parse(spec).map_err(failure)
}

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
