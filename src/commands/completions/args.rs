//! The flags of `heaptap completions`.

/// Flags of `completions`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  \
    heaptap completions bash > ~/.local/share/bash-completion/completions/heaptap\n  \
    heaptap completions zsh > \"${fpath[1]}/_heaptap\"\n  \
    heaptap completions fish > ~/.config/fish/completions/heaptap.fish\n  \
    heaptap completions powershell >> $PROFILE")]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}
