//! The flags of `heaptap paths`.

use crate::console::flags::java::JavaArgs;
use crate::console::flags::limit::unless_zero;
use crate::console::flags::moment::MomentArgs;
use crate::console::flags::pattern::pattern;
use heaptap_model::heap_graph::ObjectId;
use regex::Regex;
use std::ffi::OsString;

/// Flags of `paths`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  \
    heaptap paths dump.hprof --focus DetailActivity\n  \
    heaptap paths rec@after-login --object 0x12c3a4f0   one object in full\n  \
    heaptap paths dump.hprof --focus Bitmap --ignore-refs soft,weak,finalizer,phantom")]
pub struct Args {
    /// A recording's directory, a trace or an HPROF
    ///
    /// INPUT@MOMENT chooses one dump: INPUT@LABEL, INPUT@N, INPUT@last or INPUT@end.
    #[arg(value_name = "INPUT")]
    pub input: OsString,
    /// Only matching stacks or Java classes; may be repeated
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub focus: Vec<Regex>,
    /// Object with this ID, from `top --by object --json`, `query` or a log
    #[arg(long, value_name = "ID", value_parser = object_id, conflicts_with = "focus")]
    pub object: Option<String>,
    /// Maximum number of holders of each object; 0 means no limit
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = unless_zero, hide_short_help = true)]
    pub width: usize,
    /// Maximum number of levels; 0 means no limit
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = unless_zero)]
    pub depth: usize,
    /// Maximum number of fields of --object; 0 means no limit [default: 60]
    #[arg(short, long, value_name = "N", conflicts_with = "focus", value_parser = unless_zero)]
    pub limit: Option<usize>,
    #[command(flatten)]
    pub moment: MomentArgs,
    #[command(flatten)]
    pub java: JavaArgs,
}

pub(super) fn object_id(typed: &str) -> Result<String, String> {
    match typed.parse::<ObjectId>().is_ok() || typed.parse::<u64>().is_ok() {
        true => Ok(typed.to_owned()),
        false => Err("an id is a number such as 0x12c3a4f0 or 314811632".to_owned()),
    }
}
