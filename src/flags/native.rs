//! Which native heap to look at: the flags that `top`, `diff`, `leaks`, `report` and `query`
//! share, beside those of Java heaps.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use crate::error::{ErrorClass, Failure};
use crate::flags::java::{HeapArg, JavaArgs};
use crate::flags::names::{existing, mapping, proguard_variable};
use crate::heap_graph::HeapKind;
use crate::heaps::input::{DumpScope, LookOptions};
use crate::heaps::selector::{DumpSelector, JavaInput};
use crate::naming::device_libs::PullLibs;
use crate::naming::names::{NameOptions, absolute};

/// Which heap of an input is meant, and how native heaps are looked at.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Which heap")]
pub struct NativeArgs {
    /// Only this heap: libc.malloc, com.android.art or a custom one; of Java: app, zygote, image
    #[arg(long, value_name = "HEAP")]
    pub heap: Option<String>,
    /// This dump, by its number or label, `last` or `end`; the same as INPUT@DUMP
    ///
    /// May be repeated where several dumps are looked at.
    #[arg(long = "dump", value_name = "N|LABEL|last|end")]
    pub dumps: Vec<String>,
    /// The Java heaps, where the input has native ones, too
    #[arg(long = "java")]
    pub is_java: bool,
    /// Look for symbols here: folders, libraries, ZIPs, APKs; may be repeated
    ///
    /// Nothing else is searched: the names that the recording has are there anyway.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, value_parser = existing())]
    pub symbols: Vec<PathBuf>,
}

impl NativeArgs {
    /// An input as it was typed, and the dumps of it that are meant: those that were named with
    /// it or with `--dump`, else `default`.
    pub fn input(&self, typed: &OsStr, default: DumpScope) -> (JavaInput, DumpScope) {
        let input = JavaInput::parse(typed);
        let mut named: Vec<DumpSelector> = input.which.clone().into_iter().collect();
        named.extend(self.dumps.iter().map(|dump| DumpSelector::parse(dump)));
        let wanted = match named.is_empty() {
            true => default,
            false => DumpScope::These(named),
        };
        (input, wanted)
    }

    /// The input for a Java heap, of which one dump is shown.
    ///
    /// # Errors
    /// Where several dumps were named.
    pub fn java_input(&self, typed: &OsStr) -> Result<JavaInput, Failure> {
        let (input, wanted) = self.input(typed, DumpScope::Last);
        let which = match wanted {
            DumpScope::These(mut all) if all.len() == 1 => all.pop(),
            DumpScope::These(_) => {
                let message = "several dumps are named, and one can be shown";
                return Err(Failure::new(ErrorClass::Usage, "usage", message));
            }
            DumpScope::Last | DumpScope::All => None,
        };
        Ok(JavaInput { which, ..input })
    }

    /// How to open native heaps.
    pub fn options(&self, java: &JavaArgs) -> LookOptions {
        LookOptions {
            process: java.process.clone(),
            heap: self.heap.clone(),
            names: NameOptions {
                symbolize: !self.symbols.is_empty(),
                symbols: self.symbols.iter().map(|path| absolute(path)).collect(),
                mappings: java.mappings.iter().map(|given| mapping(given)).collect(),
                discover: false,
                pull_libs: PullLibs::Never,
                folder: absolute(Path::new(".")),
                variables: proguard_variable(),
                ..NameOptions::default()
            },
            ..LookOptions::default()
        }
    }

    /// The heap of the Java runtime that is meant.
    ///
    /// # Errors
    /// Where the name is of none.
    pub fn java_heap(&self) -> Result<Option<HeapKind>, Failure> {
        let Some(name) = &self.heap else {
            return Ok(None);
        };
        match <HeapArg as clap::ValueEnum>::from_str(name, true) {
            Ok(heap) => Ok(Some(heap.into())),
            Err(_) => {
                let message = format!("a Java heap has no heap {name:?}: app, zygote or image");
                Err(Failure::new(ErrorClass::Usage, "no-such-heap", message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_are_named_with_the_input_or_beside_it() {
        let args = |dumps: &[&str]| NativeArgs {
            dumps: dumps.iter().map(|&dump| dump.to_owned()).collect(),
            ..NativeArgs::default()
        };
        let of = |dumps: &[&str], typed: &str| {
            let (input, wanted) = args(dumps).input(OsStr::new(typed), DumpScope::All);
            (input.path.display().to_string(), wanted)
        };
        let these = |all: &[DumpSelector]| DumpScope::These(all.to_vec());
        let label = DumpSelector::Label("start".to_owned());
        assert_eq!(of(&[], "rec"), ("rec".to_owned(), DumpScope::All));
        assert_eq!(of(&["3"], "rec").1, these(&[DumpSelector::Number(3)]));
        assert_eq!(
            of(&["last"], "rec@start").1,
            these(&[label, DumpSelector::Last])
        );
        let one = args(&["last"]).java_input(OsStr::new("rec")).unwrap();
        assert_eq!(one.which, Some(DumpSelector::Last));
        assert!(args(&["1", "2"]).java_input(OsStr::new("rec")).is_err());
    }

    #[test]
    fn heaps_of_java_are_those_of_its_runtime() {
        let of = |heap: &str| {
            let args = NativeArgs {
                heap: Some(heap.to_owned()),
                ..NativeArgs::default()
            };
            args.java_heap()
        };
        assert_eq!(of("zygote").unwrap(), Some(HeapKind::Zygote));
        assert!(of("libc.malloc").is_err());
        assert_eq!(NativeArgs::default().java_heap().unwrap(), None);
    }
}
