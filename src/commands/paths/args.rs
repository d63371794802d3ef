//! The flags of `heaptap paths`.

use crate::flags::java::JavaArgs;
use crate::flags::pattern::pattern;
use crate::heap_graph::ObjectId;
use regex::Regex;
use std::ffi::OsString;

/// Flags of `paths`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap paths dump.hprof --class 'ui\\.DetailActivity$'   what holds its objects\n  \
    heaptap paths rec@after-login --object 0x12c3a4f0        one object in full\n  \
    heaptap paths dump.hprof --class Bitmap --exclude soft,weak,finalizer,phantom")]
pub struct Args {
    /// A recording's folder, a trace or an HPROF; PATH@LABEL, PATH@N or PATH@last for one dump
    #[arg(value_name = "INPUT")]
    pub input: OsString,
    /// The objects of classes that match; case-sensitive only if the pattern has a capital letter
    #[arg(long, value_name = "REGEX", required_unless_present = "object", value_parser = pattern)]
    pub class: Option<Regex>,
    /// The object with this id, as `top --by object --json` and logs of the runtime have it
    #[arg(long, value_name = "ID", value_parser = object_id, conflicts_with = "class")]
    pub object: Option<ObjectId>,
    /// Holders of each object that are shown, those nearest to roots first; 0 is all
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub width: usize,
    /// Steps away from the objects; 0 is all
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub depth: usize,
    /// Fields, elements and referrers of an object; 0 is all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 60)]
    pub limit: usize,
    /// How the heap is looked at.
    #[command(flatten)]
    pub java: JavaArgs,
}

/// `0x1f` or `1f`, as dumps and logs write ids; decimal digits alone are hexadecimal too.
pub(super) fn object_id(typed: &str) -> Result<ObjectId, String> {
    let digits = typed.strip_prefix("0x").or(typed.strip_prefix("0X"));
    u64::from_str_radix(digits.unwrap_or(typed), 16)
        .map(ObjectId)
        .map_err(|_| "an id is a hexadecimal number such as 0x12c3a4f0".to_owned())
}
