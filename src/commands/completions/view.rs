//! `heaptap completions`: prints a completion script for a shell.

use crate::error::Failure;
use crate::exit::Outcome;
use crate::flags::context::Context;

/// Flags of `completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap completions bash > ~/.local/share/bash-completion/completions/heaptap\n  \
    heaptap completions zsh > \"${fpath[1]}/_heaptap\"\n  \
    heaptap completions fish > ~/.config/fish/completions/heaptap.fish\n  \
    heaptap completions powershell >> $PROFILE")]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Prints the script for `tree`, the commands of the program.
///
/// # Errors
/// None; a failing stdout is told at the end of the run.
pub async fn run(ctx: &Context, args: Args, mut tree: clap::Command) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut tree, "heaptap", &mut script);
    ctx.console.raw(&script);
    Ok(Outcome::Done)
}
