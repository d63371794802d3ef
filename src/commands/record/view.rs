//! `heaptap record`: shows the progress of a recording: status line, keys, events, summary.

use super::args::Args;
use crate::commands::shared::progress::{self, Show};
use crate::commands::shared::{page, start};
use crate::console::exit::Outcome;
use crate::console::flags::conflicts::conflict;
use crate::console::flags::context::Context;
use crate::console::signals::watch_signals;
use crate::names::r8_mappings::R8Mappings;
use crate::recording::capture_kind::CaptureKind;
use crate::recording::companion_options::CompanionOptions;
use crate::recording::options::RecordOptions;
use crate::recording::outcome::Recorded;
use crate::recording::record;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::config::{DeviceLimits, Snapshots};
use heaptap_capture::session::{SnapshotMethod, Store};
use heaptap_export::pprof::PprofOptions;

/// Runs the command.
///
/// # Errors
/// Returns an error if the recording or its transfer fails.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    if args.host {
        return super::host::run(ctx, args).await;
    }
    ctx.check_detach(args.detach)?;
    let companions: CompanionOptions = args.with.iter().flat_map(|with| with.sources()).collect();
    let mut resolved = args.capture.resolve(&args.target.target(), &ctx.console)?;
    resolved.spec.companions = companions.in_trace();
    if args.capture.print_config {
        let config = resolved.spec.encode(&DeviceLimits::default())?;
        return Ok(start::print_config(&ctx.console, &config.text));
    }
    let launch = args.launch || resolved.launch;
    let targets = &resolved.spec.targets;
    if let (true, Some(pid)) = (launch, targets.pids.first())
        && targets.names.is_empty()
        && targets.packages.is_empty()
    {
        let message =
            format!("`--launch` needs the name of an app: PID {pid} ends when its app restarts");
        return Err(
            Failure::new(ErrorClass::Usage, "nothing-to-launch", message)
                .with_help("name the app with `-n` or `--package`"),
        );
    }
    if launch && resolved.spec.no_startup {
        return Err(conflict(
            "`--no-startup` leaves out the process that `--launch` starts",
            "leave out one of the two",
        ));
    }
    let asked = args.names.asked();
    let names = args.names.options(&ctx.console)?;
    // Report an unusable R8 mapping before anything is recorded.
    R8Mappings::check(&names)?;
    // From here on, a signal ends the recording gracefully.
    let mut signals = watch_signals()?;
    let store = Store::of_user()?;
    let options = RecordOptions {
        companions,
        output: args.output,
        force: args.no_check,
        launch,
        snapshots: match (args.no_snapshots, args.snapshots) {
            (true, _) => Snapshots::Off,
            (false, None) => resolved.snapshots,
            (false, period) => Snapshots::from_period(period),
        },
        detach: args.detach,
        retry_overrun: args.retry_overrun,
        disable_selinux: args.disable_selinux,
        user: ctx.globals.user,
        no_report: args.leave.no_report,
        pprof: PprofOptions {
            sample_names: args.sample_names.into(),
            annotations: !args.capture.no_annotations,
        },
        ..RecordOptions::new(CaptureKind::Native(Box::new(resolved.spec)), names)
    };
    let device = match args.wait_device {
        Some(limit) => ctx.device_within(limit, &mut signals).await?,
        None => ctx.device_or_interrupt(&mut signals).await?,
    };
    if options.detach && !options.companions.is_empty() {
        ctx.console.warn_with_help(
            "heaptap does not observe a detached recording. Of `--with`, it keeps only trace data \
             and the collections that are still in the log at the end.",
            Some("record without `--detach` to get meminfo, mappings and Java heaps at labels"),
        );
    }
    let mut show = Show::new(ctx, !options.detach);
    let recorded = show
        .during(signals, async |controls, on_event| {
            record::record(device, &store, &options, controls, on_event).await
        })
        .await?;
    match recorded {
        Recorded::Detached {
            session,
            output,
            snapshots,
        } => {
            let mut commands = vec![format!("status {session}")];
            if snapshots != SnapshotMethod::Impossible {
                commands.push(format!("snapshot {session} --label NAME"));
            }
            let output = output.to_string_lossy();
            commands.push(format!("stop {session}      ends it and writes {output}"));
            start::detached(&ctx.console, "recording", &session, &output, &commands);
            Ok(Outcome::Done)
        }
        Recorded::Finished(mut finished) => {
            let page = page::leave(ctx, args.leave, &mut finished).await;
            Ok(progress::finished(ctx, &finished, page.as_deref(), asked))
        }
    }
}
