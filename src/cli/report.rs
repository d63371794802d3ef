//! `heaptap report`: a page to look at, to keep, to attach to a bug.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::java_args::JavaArgs;
use super::{Context, Outcome, blocking, summary};
use crate::app::java::{self, JavaInput};
use crate::app::report::{self, ReportError, ReportFile};
use crate::error::{ErrorClass, Failure};
use crate::heap_graph::Follow;
use crate::units::ByteSize;

/// Flags of `report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap report dump.hprof                      writes dump.hprof.html\n  \
    heaptap report rec@after-login                 writes report.html into the recording\n  \
    heaptap report dump.hprof -o - | less          the page on standard output")]
pub struct Args {
    /// A recording's folder, a trace or an HPROF; PATH@LABEL, PATH@N or PATH@last for one dump
    #[arg(value_name = "INPUT")]
    pub input: OsString,
    /// The page, - for stdout [default: report.html in a recording's folder, else a file called
    /// after INPUT in the current folder]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Overwrite a file that is no report of heaptap
    #[arg(long)]
    pub force: bool,
    /// How the heap is looked at.
    #[command(flatten)]
    pub java: JavaArgs,
}

/// Runs the command.
///
/// # Errors
/// Where the input holds no Java heap, or the page can't be written.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let input = JavaInput::parse(&args.input);
    let options = args.java.options(Follow::default());
    let goal = args.output.unwrap_or_else(|| beside(&input.path));
    let to_stdout = goal == Path::new("-");
    if to_stdout && console.is_json() {
        let message = "--json and the page cannot both go to standard output";
        return Err(
            Failure::new(ErrorClass::Usage, "usage", message).with_help("name a file with -o")
        );
    }
    let force = args.force;
    let (page, file, findings, class) = {
        let goal = goal.clone();
        blocking::stepwise(ctx, move |steps| -> Result<_, ReportError> {
            let file = match to_stdout {
                true => None,
                false => Some(ReportFile::create(&goal, &input.path, force)?),
            };
            let heap = java::open(&input, options, steps)?;
            let page = report::java_page(&heap, steps);
            Ok((page, file, heap.findings.clone(), heap.class()))
        })
        .await?
    };
    let bytes = page.len() as u64;
    match file {
        Some(file) => file.finish(&page).map_err(Failure::from)?,
        None => console.raw(page.as_bytes()),
    }
    for finding in &findings {
        console.warn_with_help(&finding.message, finding.help.as_deref());
    }
    if !to_stdout {
        if console.is_json() {
            console.json(&json!({ "output": goal, "bytes": bytes }));
        }
        console.say(format_args!(
            "wrote {} ({}): open it in any browser",
            summary::near(&goal).display(),
            ByteSize(bytes)
        ));
    }
    Ok(class.into())
}

/// The page's place where none was named.
fn beside(input: &Path) -> PathBuf {
    if input.is_dir() {
        return input.join("report.html");
    }
    let name = input.file_name().unwrap_or_else(|| "heap".as_ref());
    let mut name = name.to_owned();
    name.push(".html");
    PathBuf::from(name)
}
