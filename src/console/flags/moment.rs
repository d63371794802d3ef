//! Moments of an input: `--at MOMENT`, for inputs without `INPUT@MOMENT`.

use std::ffi::OsString;

use clap::Args;

use crate::console::flags::conflicts::conflict;
use crate::heaps::input::DumpScope;
use crate::heaps::selector::{ALL, DumpSelector, JavaInput};
use heaptap_base::error::Failure;

/// Selected moments of an input.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Selection")]
pub struct MomentArgs {
    /// Moment of inputs: a label, a number, last, end or all
    ///
    /// Applies to inputs without @MOMENT. Without it, commands that show one dump show the last one
    /// with a label, otherwise the last. A number is that of a dump: the N-th of its process and
    /// heap, from 1. `end` is that label or, without it, the end of the recording. May be repeated
    /// in commands that read several dumps. `gc` takes a period between two labels, FROM..TO.
    #[arg(long = "at", value_name = "MOMENT")]
    pub moments: Vec<String>,
}

impl MomentArgs {
    /// Returns the dumps of an input: those selected in it, or those of `--at`, or else `default`.
    pub fn scope(&self, input: &JavaInput, default: DumpScope) -> DumpScope {
        let named: Vec<DumpSelector> = match &input.which {
            Some(which) => vec![which.clone()],
            None => self
                .moments
                .iter()
                .map(|m| DumpSelector::parse(m))
                .collect(),
        };
        let is_all = |which: &DumpSelector| *which == DumpSelector::Label(ALL.to_owned());
        match named.is_empty() {
            true => default,
            false if named.iter().any(is_all) => DumpScope::All,
            false => DumpScope::These(named),
        }
    }

    /// Returns the selected dumps of an input; empty for all.
    pub fn dumps(&self, input: &JavaInput) -> Vec<DumpSelector> {
        match self.scope(input, DumpScope::All) {
            DumpScope::These(named) => named,
            DumpScope::All | DumpScope::Default => Vec::new(),
        }
    }

    /// Returns the input with its only moment.
    ///
    /// # Errors
    /// Returns an error if several moments are named.
    pub fn one(&self, input: JavaInput) -> Result<JavaInput, Failure> {
        let which = match self.scope(&input, DumpScope::Default) {
            DumpScope::These(mut all) if all.len() == 1 => all.pop(),
            DumpScope::Default => None,
            DumpScope::These(_) | DumpScope::All => {
                let message = "this command shows one moment, and several are named";
                return Err(
                    Failure::usage(message).with_help("name one: a label, a number, last or end")
                );
            }
        };
        Ok(JavaInput { which, ..input })
    }

    /// Refuses `--at` if every input names its own moment.
    ///
    /// # Errors
    /// Returns an error if `--at` would have no effect.
    pub fn check<'a>(&self, inputs: impl IntoIterator<Item = &'a OsString>) -> Result<(), Failure> {
        let names_none = |typed: &OsString| JavaInput::parse(typed).which.is_none();
        if self.moments.is_empty() || inputs.into_iter().any(names_none) {
            return Ok(());
        }
        let message = "--at names a moment, and the input does so with @";
        Err(conflict(message, "leave out one of the two"))
    }

    /// Refuses `--at` for a process on the device.
    ///
    /// # Errors
    /// Returns an error if a moment is named.
    pub fn refuse_without_input(&self) -> Result<(), Failure> {
        match self.moments.is_empty() {
            true => Ok(()),
            false => Err(conflict(
                "--at names a moment of an input, and a process on the device has only now",
                "name a recording, or leave out --at",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn args(moments: &[&str]) -> MomentArgs {
        MomentArgs {
            moments: moments.iter().map(|&moment| moment.to_owned()).collect(),
        }
    }

    #[test]
    fn moments_are_named_with_the_input_or_by_option() {
        let of = |moments: &[&str], typed: &str| {
            let input = JavaInput::parse(OsStr::new(typed));
            args(moments).scope(&input, DumpScope::All)
        };
        let these = |all: &[DumpSelector]| DumpScope::These(all.to_vec());
        let label = DumpSelector::Label("start".to_owned());
        assert_eq!(of(&[], "rec"), DumpScope::All);
        assert_eq!(of(&["3"], "rec"), these(&[DumpSelector::Number(3)]));
        assert_eq!(of(&["last"], "rec@start"), these(&[label]));
        assert_eq!(of(&["all"], "rec"), DumpScope::All);
        assert_eq!(of(&["1"], "rec@all"), DumpScope::All);
    }

    #[test]
    fn a_command_for_one_moment_refuses_several() {
        let input = || JavaInput::parse(OsStr::new("rec"));
        let one = args(&["last"]).one(input()).unwrap();
        assert_eq!(one.which, Some(DumpSelector::Last));
        assert_eq!(args(&[]).one(input()).unwrap().which, None);
        assert!(args(&["1", "2"]).one(input()).is_err());
        assert!(args(&["all"]).one(input()).is_err());
        assert!(args(&["last"]).refuse_without_input().is_err());
        let inputs = |all: &[&str]| all.iter().map(OsString::from).collect::<Vec<_>>();
        assert!(args(&["last"]).check(&inputs(&["rec@1", "rec@2"])).is_err());
        assert!(args(&["last"]).check(&inputs(&["rec@1", "rec"])).is_ok());
        assert!(args(&[]).check(&inputs(&["rec@1"])).is_ok());
    }
}
