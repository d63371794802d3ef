//! Tasks of the database: a status line while they run, and their end after signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::output::Output;
use crate::commands::shared::blocking;
use crate::console::flags::context::Context;
use crate::console::signals::watch_signals;
use heaptap_base::error::Failure;
use heaptap_query::{Database, QueryError};

/// Refresh interval of the status line.
const TICK: Duration = Duration::from_millis(200);

/// Time limit for a statement to end after a signal: SQLite sorts and some tables are computed
/// without looking at the interrupt.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Database to continue with, and the result of the statements.
pub(super) type Ran = (Database, Result<(), Failure>);

/// Runs statements. A signal cancels the running statement. A second one, or the end of the
/// `patience`, does not wait for it.
pub(super) async fn execute(
    ctx: &Context,
    mut database: Database,
    sql: String,
    mut output: Output,
    patience: Option<Duration>,
) -> Result<Ran, Failure> {
    database.forget_interrupts();
    let interrupter = database.interrupter();
    let rows = output.counter();
    let task = tokio::task::spawn_blocking(move || {
        let ran = database.run(&sql, &mut output);
        let ran = ran.map(|_| output.finish());
        (database, ran.map_err(Failure::from))
    });
    let interrupt = || interrupter.interrupt();
    wait(ctx, task, "running", &rows, interrupt, patience).await
}

/// Waits for a task of the database, and shows a status line until it returns rows. After a signal
/// waits for the `patience`, if there is one.
pub(super) async fn wait<T>(
    ctx: &Context,
    mut task: tokio::task::JoinHandle<T>,
    what: &str,
    rows: &Arc<AtomicU64>,
    interrupt: impl Fn(),
    patience: Option<Duration>,
) -> Result<T, Failure> {
    let status = ctx.console.status();
    let mut signals = watch_signals()?;
    let began = Instant::now();
    let mut asked: Option<Instant> = None;
    let result = loop {
        tokio::select! {
            result = &mut task => break Some(result),
            _ = signals.recv() => {
                if asked.is_some() {
                    break None;
                }
                asked = Some(Instant::now());
                interrupt();
            }
            () = tokio::time::sleep(TICK) => {
                let waited = asked.map(|asked| asked.elapsed());
                if waited.zip(patience).is_some_and(|(waited, patience)| waited >= patience) {
                    break None;
                }
                let seconds = began.elapsed().as_secs();
                if rows.load(Ordering::Relaxed) > 0 {
                    status.finish_and_clear();
                } else if seconds > 0 {
                    ctx.console.set_status(&status, format_args!("{what} … {seconds} s"));
                }
            }
        }
    };
    status.finish_and_clear();
    match result {
        None => Err(QueryError::Interrupted.into()),
        result => blocking::ended(result.map(|result| result.map(Ok::<T, Failure>))),
    }
}
