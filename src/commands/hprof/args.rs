//! The flags of `heaptap hprof`.

use std::path::PathBuf;

/// Flags of `hprof`.
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    before_help = "Examples:\n  heaptap hprof info app.hprof\n  \
                  heaptap hprof strip app.hprof to-share.hprof"
)]
pub struct Args {
    /// Subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// Subcommand.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Write an Android dump as Java SE's tools read it, byte for byte as hprof-conv does
    Conv(ConvArgs),
    /// Describe a dump: contents, completeness, damage
    Info(InfoArgs),
    /// Write a copy without the contents of strings and arrays, to share
    ///
    /// Sizes, references and names of classes, fields and methods stay; without --fields, so do
    /// numbers in fields, except hash codes.
    Strip(StripArgs),
}

/// Flags of `hprof conv`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  \
    heaptap hprof conv app.hprof app-javase.hprof\n  \
    heaptap hprof conv -z app.hprof.gz - | gzip > app-only.hprof.gz")]
pub struct ConvArgs {
    /// The HPROF, or a recording's directory; - for stdin
    ///
    /// It may be packed with gzip, zstd or xz, or lie in a ZIP or TAR.
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// File to write; - for stdout
    #[arg(value_name = "OUT", value_hint = clap::ValueHint::FilePath)]
    pub output: PathBuf,
    /// Only the app's own heap, without objects of the zygote and boot image
    #[arg(short = 'z', long)]
    pub app_only: bool,
    /// Repeat hprof-conv's mistake with arrays without data
    #[arg(long)]
    pub compat: bool,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
}

/// Flags of `hprof info`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  heaptap hprof info app.hprof --json")]
pub struct InfoArgs {
    /// The HPROF, or a recording's directory; - for stdin
    ///
    /// It may be packed with gzip, zstd or xz, or lie in a ZIP or TAR.
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
}

/// Flags of `hprof strip`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  heaptap hprof strip --fields app.hprof to-share.hprof")]
pub struct StripArgs {
    /// The HPROF, or a recording's directory; - for stdin
    ///
    /// It may be packed with gzip, zstd or xz, or lie in a ZIP or TAR.
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// File to write; - for stdout
    #[arg(value_name = "OUT", value_hint = clap::ValueHint::FilePath)]
    pub output: PathBuf,
    /// Also zero numbers and characters in fields and statics
    ///
    /// `leaks` finds the same leaks in the copy. There it measures collections by their references and
    /// does not compare boxed numbers, because sizes and values are zero.
    #[arg(long)]
    pub fields: bool,
    /// Keep the text of strings
    #[arg(long)]
    pub keep_strings: bool,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
}
