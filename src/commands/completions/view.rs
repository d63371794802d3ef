//! `heaptap completions`: prints a completion script for a shell.

use super::args::Args;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use heaptap_base::error::Failure;

/// Prints the script for `tree`, the commands of the program.
///
/// # Errors
/// None. A failure to write to stdout is reported at the end of the run.
pub async fn run(ctx: &Context, args: Args, mut tree: clap::Command) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut tree, "heaptap", &mut script);
    ctx.console.raw(&script);
    Ok(Outcome::Done)
}
