//! `heaptap devices`: shows the devices of the adb server, and connects to and pairs with devices
//! on the network.

use serde::Serialize;

use super::args::Args;
use super::run::{PhoneRow, phones};
use crate::console::Style;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::table::show_columns;
use heaptap_adb::{Announced, DeviceError, Selector, Server};
use heaptap_base::error::{Classified, Failure};

#[derive(Serialize)]
struct Document<'a> {
    server: String,
    devices: &'a [PhoneRow],
}

#[derive(Serialize)]
struct MdnsDocument<'a> {
    services: &'a [Announced],
}

/// Runs the command.
///
/// # Errors
/// Returns an error if there is no adb server, or a device cannot be connected or paired.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    if args.mdns {
        announced(ctx, &ctx.server().await?.announced().await?);
        return Ok(Outcome::Done);
    }
    if let Some([at, code]) = args.pair.as_deref() {
        ctx.server().await?.pair_with(at, code).await?;
        ctx.console.say(format_args!("paired with {at}"));
    }
    if let Some(at) = &args.connect {
        ctx.server().await?.connect_to(at).await?;
        ctx.console.say(format_args!("connected to {at}"));
    }
    if let Some(at) = &args.disconnect {
        ctx.server().await?.disconnect_from(at).await?;
        ctx.console.say(format_args!("disconnected from {at}"));
    }
    // Not ANDROID_SERIAL: as with adb, its value is looked up in this list.
    let selector = match &ctx.globals.serial {
        Some(serial) => Selector::parse(serial),
        None => Selector::Only,
    };
    let servers = ctx.servers().await?;
    let several = servers.len() > 1;
    let (mut rows, mut errors) = (Vec::new(), Vec::new());
    for server in &servers {
        match phones(server, &selector).await {
            Ok(found) => rows.extend(found.into_iter().map(|row| PhoneRow {
                server: several.then(|| server.address()),
                ..row
            })),
            Err(error) => errors.push(error),
        }
    }
    // A server that does not answer might have the device.
    errors.sort_by_key(|error| matches!(error, DeviceError::NotFound { .. }));
    if rows.is_empty() && !errors.is_empty() {
        return Err(errors.swap_remove(0).into());
    }
    errors.retain(|error| !matches!(error, DeviceError::NotFound { .. }));
    let is_found = ctx.globals.serial.is_some();
    let addresses: Vec<String> = servers.iter().map(Server::address).collect();
    if ctx.console.is_json() {
        ctx.console.json(&Document {
            server: addresses.join(","),
            devices: &rows,
        });
    } else if rows.is_empty() {
        ctx.console.say(
            "no devices: connect a device with USB debugging enabled, or run `heaptap doctor`",
        );
    } else {
        show(ctx, &rows);
    }
    for error in &errors {
        ctx.console.warn_with_help(error, error.help().as_deref());
    }
    let missing = errors.iter().filter(|_| !is_found);
    Ok(Outcome::from_classes(missing.map(Classified::class)))
}

fn show(ctx: &Context, rows: &[PhoneRow]) {
    let heading = ["SERIAL", "STATE", "MODEL", "ANDROID", "BUILD", "ABI"];
    let mut table = vec![heading.map(str::to_owned).to_vec()];
    for row in rows {
        let android = match (&row.android, row.sdk) {
            (Some(android), Some(sdk)) => format!("{android} (SDK {sdk})"),
            (Some(android), None) => android.clone(),
            (None, Some(sdk)) => format!("SDK {sdk}"),
            (None, None) => "-".to_owned(),
        };
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        table.push(vec![
            row.name(),
            row.state.clone(),
            text(&row.model),
            android,
            text(&row.build_type),
            text(&row.abi),
        ]);
    }
    show_columns(&ctx.console, &table, &[]);
    for row in rows {
        let serial = ctx.console.on_stderr(Style::Strong, row.name());
        if let Some(error) = &row.error {
            ctx.console.say(format_args!("{serial}: {error}"));
        } else if let Some(fix) = &row.fix {
            ctx.console
                .say(format_args!("{serial}: {}: {fix}", row.state));
        }
    }
    // Only the transport ID distinguishes devices that share a serial.
    let twins = |row: &&PhoneRow| rows.iter().filter(|r| r.name() == row.name()).count() > 1;
    for row in rows.iter().filter(twins) {
        if let Some(id) = row.transport_id {
            let port = row.usb.as_deref().unwrap_or("?");
            ctx.console.say(format_args!(
                "{} on port {port}: -s transport:{id}",
                row.serial
            ));
        }
    }
}

fn announced(ctx: &Context, services: &[Announced]) {
    if ctx.console.is_json() {
        ctx.console.json(&MdnsDocument { services });
        return;
    }
    if services.is_empty() {
        ctx.console
            .say("no device found on the network: enable wireless debugging on the device");
        return;
    }
    let mut table = vec![["NAME", "SERVICE", "ADDRESS"].map(str::to_owned).to_vec()];
    table.extend(services.iter().map(|service| {
        let cells = [&service.name, &service.service, &service.address];
        cells.map(Clone::clone).to_vec()
    }));
    show_columns(&ctx.console, &table, &[]);
}
