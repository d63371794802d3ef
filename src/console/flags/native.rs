//! Selection of native heaps: the flags that `top`, `diff`, `leaks`, `report` and `query` share, in
//! addition to those of Java heaps.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use crate::console::flags::heap::HeapArgs;
use crate::console::flags::java::JavaArgs;
use crate::console::flags::moment::MomentArgs;
use crate::console::flags::names::{existing, mapping, proguard_variable};
use crate::heaps::input::{DumpScope, LookOptions};
use crate::heaps::selector::JavaInput;
use crate::names::device_libs::PullLibs;
use crate::names::options::{NameOptions, absolute};
use heaptap_base::error::Failure;

/// Selection and analysis options of native heaps.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Selection")]
pub struct NativeArgs {
    #[command(flatten)]
    pub heap: HeapArgs,
    #[command(flatten)]
    pub moment: MomentArgs,
    /// Places of symbols; may be repeated
    ///
    /// Directories, libraries, ZIPs or APKs. heaptap searches no other places; names in the recording are there anyway.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, value_parser = existing(), hide_short_help = true)]
    pub symbols: Vec<PathBuf>,
}

impl NativeArgs {
    /// Parses an input and its selected dumps.
    pub fn input(&self, typed: &OsStr, default: DumpScope) -> (JavaInput, DumpScope) {
        let input = JavaInput::parse(typed);
        let scope = self.moment.scope(&input, default);
        (input, scope)
    }

    /// Parses the input of a command that shows one dump.
    ///
    /// # Errors
    /// Returns an error if several dumps are named.
    pub fn one_dump(&self, typed: &OsStr) -> Result<JavaInput, Failure> {
        self.moment.one(JavaInput::parse(typed))
    }

    /// Returns the options for opening native heaps.
    pub fn options(&self, java: &JavaArgs) -> LookOptions {
        LookOptions {
            processes: java.target.filter(),
            heaps: self.heap.native_names(),
            names: NameOptions {
                symbolize: !self.symbols.is_empty(),
                symbols: self.symbols.iter().map(|path| absolute(path)).collect(),
                mappings: java.mappings.iter().map(|given| mapping(given)).collect(),
                discover: false,
                pull_libs: PullLibs::Never,
                directory: absolute(Path::new(".")),
                variables: proguard_variable(),
                ..NameOptions::default()
            },
            ..LookOptions::default()
        }
    }
}
