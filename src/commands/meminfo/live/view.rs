//! Live view of `heaptap meminfo --every`: in a terminal, a block that is redrawn in place;
//! otherwise one line per sample. A summary of the figures follows at the end.
//!
//! | module | owns |
//! |---|---|
//! | `block` | the block of a terminal |
//! | `rows` | lines of a pipe, and CSV |
//! | `summary` | the summary at the end |

mod block;
mod rows;
mod summary;

use std::time::Duration;

use tokio::sync::Notify;

use self::block::Block;
use self::rows::Rows;
use super::args::LiveArgs;
use super::run::{self, Live, LiveEvent, LiveOptions};
use crate::console::Console;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::signals::watch_signals;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::sanitize;
use heaptap_capture::config::Targets;

/// Shows `targets` until the view ends.
///
/// # Errors
/// Returns an error if no selected process is running or the device does not answer.
pub(crate) async fn run(
    ctx: &Context,
    args: &LiveArgs,
    targets: Targets,
    allow_gc: bool,
    csv: bool,
) -> Result<Outcome, Failure> {
    let options = LiveOptions {
        targets,
        user: ctx.globals.user,
        every: args.every.unwrap_or(Duration::from_secs(1)),
        allow_gc,
        duration: args.duration,
    };
    let mut signals = watch_signals()?;
    let device = ctx.device_or_interrupt(&mut signals).await?;
    let console = &ctx.console;
    let mut view = View::new(console, csv, &options);
    let unheard = Notify::new();
    let stop = async {
        let signal = async {
            // A closed signal channel is not a signal.
            if signals.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = signal => {}
            () = unheard.notified() => {}
        }
    };
    let live = run::live(device, &options, stop, |live, event| {
        view.show(live, &event);
        // The reader of stdout closed it, as in `| head`.
        if console.stdout_is_closed() {
            unheard.notify_one();
        }
    })
    .await?;
    view.clear();
    summary::end(console, csv, &live);
    let saw_nothing = live.processes.iter().all(|of| of.series.is_empty());
    Ok(match saw_nothing && !console.stdout_is_closed() {
        true => {
            console.warn("no samples were received in that time");
            Outcome::Ended(ErrorClass::Empty)
        }
        false => Outcome::Done,
    })
}

/// Output form of the view.
enum Form {
    Block(Block),
    Lines(Rows),
    Csv {
        /// Whether the heading was printed. It comes with the first line, because there might be
        /// none.
        headed: bool,
    },
    /// One entry per line, as in a recording's timeline.
    JsonLines,
    /// Only the document at the end.
    Json,
}

struct View<'a> {
    console: &'a Console,
    form: Form,
}

impl<'a> View<'a> {
    fn new(console: &'a Console, csv: bool, options: &LiveOptions) -> View<'a> {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let form = if console.is_json_lines() {
            Form::JsonLines
        } else if console.is_json() {
            Form::Json
        } else if csv {
            Form::Csv { headed: false }
        } else if console.stdout_width().is_some() && !dumb {
            Form::Block(Block::new(options.every, options.parts_every()))
        } else {
            Form::Lines(Rows::default())
        };
        View { console, form }
    }

    fn show(&mut self, live: &Live, event: &LiveEvent<'_>) {
        let console = self.console;
        match (&mut self.form, event) {
            (Form::JsonLines, LiveEvent::Seen(entry)) => console.json(entry),
            (Form::Csv { headed }, LiveEvent::Seen(entry)) => {
                if let Some(line) = rows::csv_line(live, entry) {
                    if !std::mem::replace(headed, true) {
                        console.laid_out(rows::CSV_HEAD);
                    }
                    console.laid_out(line);
                }
            }
            (Form::Lines(rows), LiveEvent::Seen(entry)) => {
                if let Some(line) = rows.seen(live, entry) {
                    console.data(line);
                }
            }
            (Form::Lines(rows), LiveEvent::Round) => {
                for line in rows.round(live) {
                    console.data(line);
                }
            }
            (Form::Lines(_) | Form::Csv { .. }, LiveEvent::Connection) => match &live.away {
                Some(why) => console.say(format_args!("{}; waiting for the device", sanitize(why))),
                None => console.say("reconnected"),
            },
            (Form::Block(block), LiveEvent::Round | LiveEvent::Connection) => {
                block.draw(console, live)
            }
            _ => {}
        }
    }

    /// Removes the block; the summary replaces it.
    fn clear(&mut self) {
        if let Form::Block(block) = &mut self.form {
            block.clear(self.console);
        }
    }
}
