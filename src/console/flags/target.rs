//! Options that select processes, in every command.

use clap::Args;

use crate::heaps::selector::ProcessFilter;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::config::Targets;

/// Selected processes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Selection")]
pub struct TargetArgs {
    /// Process names, with *; several with commas
    #[arg(short = 'n', long = "name", value_name = "NAME", value_delimiter = ',')]
    pub names: Vec<String>,
    /// Process IDs; several with commas
    #[arg(short = 'p', long = "pid", value_name = "PID", value_delimiter = ',', value_parser = pid)]
    pub pids: Vec<u32>,
    /// All processes of these packages
    #[arg(long = "package", value_name = "PKG", value_delimiter = ',')]
    pub packages: Vec<String>,
}

impl TargetArgs {
    /// Returns true if no process is named.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.pids.is_empty() && self.packages.is_empty()
    }

    /// Returns itself, for a command that queries the device.
    ///
    /// # Errors
    /// Returns an error if no process is named.
    pub fn required(&self) -> Result<&Self, Failure> {
        match self.is_empty() {
            false => Ok(self),
            true => Err(
                Failure::new(ErrorClass::Usage, "no-target", "no process is named").with_help(
                    "name one with -n NAME, -p PID or --package PKG; `heaptap apps` lists packages",
                ),
            ),
        }
    }

    /// Returns the process filter of an input.
    pub fn filter(&self) -> ProcessFilter {
        ProcessFilter {
            names: self.names.clone(),
            pids: self.pids.iter().copied().map(u64::from).collect(),
            packages: self.packages.clone(),
        }
    }

    /// Returns the selected processes of a device.
    pub fn targets(&self) -> Targets {
        Targets {
            names: self.names.clone(),
            pids: self.pids.clone(),
            packages: self.packages.clone(),
        }
    }
}

/// Selected processes of a command that reads no file: a bare word is a name, too.
#[derive(Debug, Clone, Default, Args)]
pub struct NamedTargetArgs {
    /// Process names, as with -n
    #[arg(value_name = "NAME", value_delimiter = ',', hide_short_help = true)]
    pub words: Vec<String>,
    #[command(flatten)]
    target: TargetArgs,
}

impl NamedTargetArgs {
    /// Returns the selected processes, with those of bare words.
    pub fn target(&self) -> TargetArgs {
        let mut target = self.target.clone();
        target.names.extend(self.words.iter().cloned());
        target
    }
}

/// Parses a process id.
fn pid(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(pid) if pid > 0 => Ok(pid),
        _ => Err("a process id is a number, such as 1234; names go with -n".to_owned()),
    }
}
