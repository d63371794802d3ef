//! `heaptap record`: shows a recording as it goes: status line, keys, events, summary.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::config::{CaptureSpec, Snapshots, Surroundings};
use crate::console::signals::watch_signals;
use crate::error::Failure;
use crate::exit::Outcome;
use crate::export::pprof::PprofOptions;
use crate::flags::capture::{CaptureArgs, TargetArgs, milliseconds};
use crate::flags::context::Context;
use crate::flags::leave::LeaveArgs;
use crate::flags::names::NamesArgs;
use crate::flags::sample_names::SampleNamesArg;
use crate::naming::maps::Maps;
use crate::recording::beside::{Source, With};
use crate::recording::record::{self, RecordOptions, Recorded};
use crate::recording::what::What;
use crate::session::{SessionError, SessionId, SnapshotWay, Store};
use crate::views::page as report;
use crate::views::progress::{self, Show};

/// Flags of `record`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap record -n com.example.app                         until Ctrl-C; `s` takes a snapshot\n  \
    heaptap record -n com.example.app -d 30s -o out           30 seconds into out/\n  \
    heaptap record -n com.example.app --launch --no-running   from the first allocation on\n  \
    heaptap record -n com.example.app --java-allocations      who allocates Java objects\n  \
    heaptap record -n com.example.app --with meminfo,gc,java  and what else its memory does")]
pub struct Args {
    /// Which processes.
    #[command(flatten)]
    pub target: TargetArgs,
    /// What to record.
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// What to record beside it: java,meminfo,smaps,gc or all
    ///
    /// meminfo: samples of the process's memory all along, and the whole of dumpsys meminfo at
    /// each label. gc: garbage collections. java: a Java heap graph at each label. smaps: the
    /// mappings at each label. All on one clock, in the same folder; docs/beside.md tells what
    /// each costs.
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        value_delimiter = ',',
        hide_possible_values = true,
        help_heading = "What to record"
    )]
    pub with: Vec<WithArg>,
    /// The folder to write to; must be empty or new [default: heaptap-TARGET-TIME-SESSION]
    #[arg(short, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, help_heading = "How to record")]
    pub output: Option<PathBuf>,
    /// Names of the sample types
    #[arg(
        long,
        value_name = "WHOSE",
        value_enum,
        default_value_t,
        help_heading = "How to record"
    )]
    pub sample_names: SampleNamesArg,
    /// Record even where the target does not look eligible
    #[arg(long, help_heading = "How to record")]
    pub force: bool,
    /// Force-stop the app, and start it once the recording is armed
    #[arg(long, help_heading = "How to record")]
    pub launch: bool,
    /// Period of the dumps for labels on builds that cannot dump on request [default: 2s to 10s]
    ///
    /// The shell of a production build cannot signal heapprofd, so heapprofd dumps at a period
    /// and a label takes the next dump. Without this flag the period is 5 s, 10 s with --detach,
    /// and a sixtieth of --duration, but at least 2 s and at most 10 s. --continuous-dump takes
    /// its place. The flag without a value means 2s. Builds that can dump on request ignore it.
    #[arg(
        long,
        value_name = "PERIOD",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2s",
        value_parser = milliseconds,
        help_heading = "How to record"
    )]
    pub snapshots: Option<Duration>,
    /// Make no dumps for labels on builds that cannot dump on request
    #[arg(long, conflicts_with = "snapshots", help_heading = "How to record")]
    pub no_snapshots: bool,
    /// Start and return; `heaptap status`, `stop` and `collect` go on from there
    #[arg(long, help_heading = "How to record")]
    pub detach: bool,
    /// Where the buffer overran, record again with a longer interval
    #[arg(long, help_heading = "How to record")]
    pub retry_overrun: bool,
    /// Switch SELinux to permissive while recording (needs root; undone afterwards)
    #[arg(long, help_heading = "How to record")]
    pub disable_selinux: bool,
    /// Whether a page is left.
    #[command(flatten, next_help_heading = "How to record")]
    pub leave: LeaveArgs,
    /// Where names come from.
    #[command(flatten)]
    pub names: NamesArgs,
}

/// A word of `--with`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum WithArg {
    /// A Java heap graph at each label.
    Java,
    /// How the memory divides.
    Meminfo,
    /// Mappings at each label.
    Smaps,
    /// Garbage collections.
    Gc,
    /// All of them.
    All,
}

impl WithArg {
    fn sources(self) -> Vec<Source> {
        match self {
            WithArg::Java => vec![Source::Java],
            WithArg::Meminfo => vec![Source::Meminfo],
            WithArg::Smaps => vec![Source::Smaps],
            WithArg::Gc => vec![Source::Gc],
            WithArg::All => Source::ASKED.to_vec(),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Whatever kept it from recording, or from fetching what it recorded.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    ctx.check_detach(args.detach)?;
    let with: With = args.with.iter().flat_map(|with| with.sources()).collect();
    let mut resolved = args.capture.resolve(&args.target, &ctx.console)?;
    resolved.spec.beside = with.in_trace();
    if args.capture.print_config {
        return print_config(ctx, &resolved.spec);
    }
    let asked = args.names.asked();
    let names = args.names.options(&ctx.console)?;
    // A mapping file that cannot be used is told before anything is recorded.
    Maps::check(&names)?;
    // From here on a signal means: end it in good order.
    let mut signals = watch_signals()?;
    let store = Store::of_user()?;
    let options = RecordOptions {
        what: What::Native(Box::new(resolved.spec)),
        with,
        output: args.output,
        stem: None,
        force: args.force,
        launch: args.launch || resolved.launch,
        snapshots: match (args.no_snapshots, args.snapshots) {
            (true, _) => Snapshots::Off,
            (false, None) => resolved.snapshots,
            (false, period) => Snapshots::of(period),
        },
        detach: args.detach,
        retry_overrun: args.retry_overrun,
        disable_selinux: args.disable_selinux,
        user: ctx.globals.user,
        pprof: PprofOptions {
            sample_names: args.sample_names.into(),
            annotations: !args.capture.no_annotations,
        },
        names,
    };
    let device = tokio::select! {
        device = ctx.device() => device?,
        _ = signals.recv() => return Err(SessionError::Interrupted.into()),
    };
    if options.detach && !options.with.is_empty() {
        ctx.console.warn_with_help(
            "nobody observes a detached recording: of --with it keeps what the trace holds, and \
             the collections that the log still has at the end",
            Some("record without --detach for meminfo, mappings and Java heaps at labels"),
        );
    }
    let mut show = Show::new(ctx, !options.detach);
    let recorded = show
        .during(signals, async |controls, tell| {
            record::record(device, &store, &options, controls, tell).await
        })
        .await?;
    match recorded {
        Recorded::Detached {
            session,
            output,
            snapshots,
        } => {
            detached(ctx, &session, &output, &snapshots);
            Ok(Outcome::Done)
        }
        Recorded::Finished(mut finished) => {
            let page = report::leave(ctx, args.leave, &mut finished).await;
            Ok(progress::finished(ctx, &finished, page.as_deref(), asked))
        }
    }
}

/// `--print-config`: what would be sent, without a device.
fn print_config(ctx: &Context, spec: &CaptureSpec) -> Result<Outcome, Failure> {
    let encoded = spec.encode(&Surroundings::default())?;
    if ctx.console.is_json() {
        ctx.console.json(&json!({ "config": encoded.text }));
    } else {
        ctx.console.raw(encoded.text.as_bytes());
    }
    Ok(Outcome::Done)
}

fn detached(ctx: &Context, session: &SessionId, output: &Path, snapshots: &SnapshotWay) {
    let console = &ctx.console;
    if console.is_json() {
        console.json(&json!({ "session": session, "output": output, "detached": true }));
        return;
    }
    console.data(session);
    console.say("recording in the background; go on with:");
    console.say(format_args!("  heaptap status {session}"));
    if *snapshots != SnapshotWay::Impossible {
        console.say(format_args!("  heaptap snapshot {session} --label NAME"));
    }
    console.say(format_args!(
        "  heaptap stop {session}      ends it and writes {}",
        output.display()
    ));
}
