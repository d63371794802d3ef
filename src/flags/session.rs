//! Which recording is meant, as it is typed.

use crate::device::{Address, Server};
use crate::error::Failure;
use crate::flags::context::Context;
use crate::recording::sessions::{SessionSelector, at_server};
use crate::session::Store;

/// The session that was named, or what the flags say of it. Its adb server is started where
/// it is the one that these flags mean.
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
        // What comes of it is told where the session's device is looked for.
        let _ = ctx.server().await;
    }
    Ok(match named {
        Some(id) => SessionSelector::Id(id),
        None => SessionSelector::Only(ctx.scope().await?),
    })
}
