//! The flags of `heaptap run`.

use crate::console::flags::globals::positive;
use crate::console::flags::names::NamesArgs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Flags of `run`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  \
    heaptap run --init com.example.app > login.yaml      a first scenario to edit\n  \
    heaptap run login.yaml --virtual                     on the virtual phone\n  \
    heaptap run login.yaml                               on the connected device\n  \
    heaptap run login.yaml -o night --resume             go on after an interruption")]
pub struct Args {
    /// YAML files of scenarios
    #[arg(value_name = "SCENARIO", value_hint = clap::ValueHint::FilePath, required_unless_present_any = ["schema", "init"])]
    pub scenario: Vec<PathBuf>,
    /// Run on all connected devices, side by side
    ///
    /// -s also takes several serials with commas.
    #[arg(long, conflicts_with = "serial")]
    pub all_devices: bool,
    /// Only devices of this class of the scenario
    #[arg(long, value_name = "CLASS")]
    pub device_class: Option<String>,
    /// Maximum number of devices at the same time
    #[arg(
        long,
        value_name = "N",
        default_value = "8",
        value_parser = positive,
        hide_short_help = true
    )]
    pub jobs: NonZeroUsize,
    /// Only part I of N of the scenarios, such as 1/3
    #[arg(long, value_name = "I/N", value_parser = shard, hide_short_help = true)]
    pub shard: Option<(usize, usize)>,
    /// A new or empty directory [default: heaptap-SCENARIO-TIME-ID]
    #[arg(short, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Go on with the runs in the directory of --output
    ///
    /// The recording of an interrupted run is fetched first. The run counts if its steps were done
    /// and its recording had ended. An empty directory begins.
    #[arg(long, requires = "output")]
    pub resume: bool,
    /// Figures of an earlier build [default: SCENARIO with .baseline, if it exists]
    ///
    /// Budgets with `change` compare with them.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub baseline: Option<PathBuf>,
    /// Write the figures into the baseline, for version control
    #[arg(long)]
    pub update_baseline: bool,
    /// Old build to compare the one in `install` with: its APK, or several with commas
    ///
    /// The two alternate on each device: old new, new old. `repeats` counts these pairs. Budgets
    /// with `change` compare the builds, and other budgets are for the new one.
    #[arg(long, value_name = "APK", value_delimiter = ',', value_hint = clap::ValueHint::FilePath, conflicts_with_all = ["plan", "dry_run"])]
    pub against: Vec<String>,
    /// Print the commands without running them
    ///
    /// It also prints the number of runs, and the budgets.
    #[arg(long, conflicts_with = "resume")]
    pub dry_run: bool,
    /// Estimate the runs that each budget needs, from those in a directory
    ///
    /// The estimate is for a decision at 95% confidence in four of five cases. It prints a range,
    /// because the spread of a few runs is uncertain.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, conflicts_with_all = ["resume", "dry_run", "output"])]
    pub plan: Option<PathBuf>,
    /// Print a first scenario for a package
    #[arg(long, value_name = "PACKAGE", conflicts_with_all = ["scenario", "schema"])]
    pub init: Option<String>,
    /// Print the JSON Schema of scenarios, or of the results in result.json
    #[arg(long, value_name = "DOCUMENT", conflicts_with = "scenario", num_args = 0..=1, require_equals = true, default_missing_value = "scenarios")]
    pub schema: Option<SchemaOf>,
    #[command(flatten)]
    pub names: NamesArgs,
}

/// A document with a JSON Schema.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum SchemaOf {
    Scenarios,
    Results,
}

/// Parses `1/3`.
fn shard(typed: &str) -> Result<(usize, usize), String> {
    let parts = typed
        .split_once('/')
        .map(|(at, of)| (at.parse(), of.parse()));
    match parts {
        Some((Ok(at), Ok(of))) if (1..=of).contains(&at) => Ok((at, of)),
        _ => Err("write it as I/N, such as 1/3".to_owned()),
    }
}
