//! `heaptap status`: shows the recordings in the journal and on the device.

use super::args::Args;
use crate::console::Style;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::flags::session::scope_of_all;
use crate::recording::sessions::{self, SessionStatus, State, Statuses};
use heaptap_adb::Address;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::units::{ByteSize, HumanDuration};
use heaptap_base::untrusted::shell::quoted;
use heaptap_capture::session::{CaptureError, Store, Unreadable};
use serde::Serialize;
use serde_json::json;
use std::time::Duration;

/// Shows the recordings in the journal and on the device.
///
/// # Errors
/// Returns an error if the journal cannot be read.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let store = Store::of_user()?;
    // Without a device, the journal still has the recordings.
    let (devices, broken) = match ctx.devices_at_hand().await {
        Ok(devices) => (devices, None),
        Err(failure) => (Vec::new(), Some((ctx.server_address(), failure))),
    };
    let scope = scope_of_all(ctx).await;
    let Statuses {
        sessions: mut all,
        mut unreadable,
        silent,
        broken,
    } = sessions::status(&store, &scope, &devices, broken).await?;
    if args.session.is_none() {
        all.retain(|s| !s.is_part);
    }
    if let Some(wanted) = &args.session {
        all.retain(|s| s.session.as_str().starts_with(wanted.as_str()));
        unreadable.retain(|(path, _)| sessions::is_journal_of(path, wanted));
        if all.is_empty() && unreadable.is_empty() {
            return Err(CaptureError::no_such_session(wanted).into());
        }
    }
    let unread = |(path, source): Unreadable| Failure::from(CaptureError::state(&path, source));
    let unlooked = |(serial, error): (String, CaptureError)| {
        let mut failure = Failure::from(error);
        failure.message = format!(
            "cannot look for recordings on {serial}: {}",
            failure.message
        );
        failure
    };
    let at_broken = |(address, mut failure): (String, Failure)| {
        failure.message = format!(
            "cannot look for recordings at the adb server {address}: {}",
            failure.message
        );
        failure
    };
    let is_blind = !broken.is_empty();
    let unreadable = unreadable.into_iter().map(unread);
    let unreadable = unreadable.chain(silent.into_iter().map(unlooked));
    let unreadable: Vec<Failure> = unreadable
        .chain(broken.into_iter().map(at_broken))
        .collect();
    let outcome = match args.fail {
        true => {
            let unread = (!unreadable.is_empty()).then_some(ErrorClass::Inconclusive);
            let left = all.iter().filter_map(|session| session.state.class_left());
            Outcome::from_classes(left.chain(unread))
        }
        false => Outcome::from_classes(is_blind.then_some(ErrorClass::NoDevice)),
    };
    let console = &ctx.console;
    if console.is_json() {
        let unreadable: Vec<&str> = unreadable.iter().map(|f| f.message.as_str()).collect();
        let sessions: Vec<Shown<'_>> = all
            .iter()
            .map(|status| Shown {
                next: command(ctx, status),
                status,
            })
            .collect();
        console.json(&json!({ "sessions": sessions, "unreadable": unreadable }));
        return Ok(outcome);
    }
    for failure in &unreadable {
        console.warn_with_help(&failure.message, failure.help.as_deref());
    }
    if all.is_empty() && unreadable.is_empty() {
        console.say("no recording runs or waits");
    }
    for session in &all {
        console.data(status_line(session));
        if !session.labels.is_empty() {
            console.data(format_args!(
                "          snapshots: {}",
                session.labels.join(", ")
            ));
        }
        let label = console.on_stderr(Style::Help, "next");
        console.say(format_args!(
            "          {label}: {}",
            next_step(ctx, session)
        ));
    }
    Ok(outcome)
}

/// A session in JSON.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    status: &'a SessionStatus,
    next: Option<String>,
}

fn status_line(session: &SessionStatus) -> String {
    let state = match session.state {
        State::Starting => "starting",
        State::Recording => "recording",
        State::Detached if !session.in_journal => "recording, started elsewhere",
        State::Detached => "recording, detached",
        State::Unattended => "recording; its heaptap process is gone",
        State::Uncollected if !session.in_journal => "ended, not fetched, started elsewhere",
        State::Uncollected if session.restarted => "ended by a restart of the device, not fetched",
        State::Uncollected => "ended, not fetched",
        State::Fetched => "fetched, not finished",
        State::Finished => "finished; a copy may still be on the device",
        State::Collecting => "being fetched",
        State::Away => "device not connected",
        State::ServerDown => "adb server not running",
        State::Unreadable => "unreadable: the adb server does not answer as one",
        State::Lost if session.restarted => "lost: the device restarted, and nothing is left on it",
        State::Lost => "lost: nothing is left on the device",
    };
    let mut parts = vec![format!("{}  {state}", session.session)];
    if !session.targets.is_empty() {
        parts.push(session.targets.join(", "));
    }
    parts.push(format!("on {}", session.serial));
    if let Some(bytes) = session.trace_bytes {
        let what = match session.is_heap_dump {
            true => "heap dump",
            false => "trace",
        };
        parts.push(format!("{what} {}", ByteSize(bytes)));
    }
    if session.selinux_relaxed {
        parts.push("SELinux permissive until it ends".to_owned());
    }
    if let Some(started) = session.started {
        let ago = time::OffsetDateTime::now_utc() - started;
        let ago = Duration::try_from(ago).unwrap_or_default();
        parts.push(format!("started {} ago", HumanDuration(ago)));
    }
    parts.join("  ")
}

fn next_step(ctx: &Context, session: &SessionStatus) -> String {
    let Some(command) = command(ctx, session) else {
        return "wait; another heaptap process is fetching it".to_owned();
    };
    let first = match session.state {
        State::Away => "connect the device".to_owned(),
        State::Unreadable => "restart the adb server".to_owned(),
        State::ServerDown => match other_server(session) {
            Some(address) => format!(
                "start the adb server at {address} with `adb -P {} start-server` on its host",
                address.port()
            ),
            None => "start the adb server with `heaptap devices`".to_owned(),
        },
        _ => return command,
    };
    let id = &session.session;
    format!("{first}, then run `{command}` (or forget it with `heaptap stop --forget {id}`)")
}

/// Returns the command that goes on; `None` while another process does.
fn command(ctx: &Context, session: &SessionStatus) -> Option<String> {
    let id = &session.session;
    if !session.in_journal && ctx.globals.virtual_phone.is_none() {
        // Only the journal knows which device has it.
        let (server, serial) = (server_flag(session), quoted(&session.serial));
        return Some(format!("heaptap{server} -s {serial} stop {id}"));
    }
    match session.state {
        State::Collecting => None,
        State::Lost => Some(format!("heaptap stop --forget {id}")),
        _ => Some(format!("heaptap stop {id}")),
    }
}

fn server_flag(session: &SessionStatus) -> String {
    match other_server(session) {
        Some(_) => format!(" --adb-server {}", quoted(&session.server)),
        None => String::new(),
    }
}

/// Returns the adb server of a session if it is not the usual one.
fn other_server(session: &SessionStatus) -> Option<Address> {
    let address = Address::parse(&session.server, "the session journal").ok()?;
    (!address.is_same(&Address::local())).then_some(address)
}
