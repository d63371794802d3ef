//! Selection of a recording on the command line.

use crate::console::flags::context::Context;
use crate::recording::sessions::{Scope, SessionSelector, at_server};
use heaptap_adb::{Address, Server};
use heaptap_base::error::Failure;
use heaptap_capture::session::Store;

/// Parses the start of a session ID. All IDs begin with nothing, as of an unset variable of a shell.
pub(crate) fn id(typed: &str) -> Result<String, &'static str> {
    match typed {
        "" => Err("a session ID has at least one character"),
        _ => Ok(typed.to_owned()),
    }
}

/// Returns the selector for the given session or for the flags. Starts the session's adb server if
/// it is the one of these flags.
pub(crate) async fn selector(
    ctx: &Context,
    store: &Store,
    named: Option<String>,
) -> Result<SessionSelector, Failure> {
    let flag = ctx.globals.adb_server.as_deref();
    let server = Server::named(flag)?.unwrap_or_else(Address::local);
    let (session_states, _) = store.list()?;
    if ctx.globals.virtual_phone.is_none()
        && server.is_local()
        && session_states.iter().any(|c| at_server(&c.header, &server))
    {
        // Errors are reported when the session's device is searched.
        let _ = ctx.server().await;
    }
    Ok(match named {
        Some(id) => SessionSelector::Id(id),
        None => SessionSelector::Only(ctx.scope().await?),
    })
}

/// Returns the scope of a command for all sessions: those of every server. A device is typed to select
/// its sessions.
pub(crate) async fn scope_of_all(ctx: &Context) -> Scope {
    match ctx.globals.serial {
        Some(_) => Scope {
            server: None,
            ..ctx.scope().await.unwrap_or_default()
        },
        None => Scope::default(),
    }
}
