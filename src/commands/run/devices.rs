//! The devices of `run`: of one adb server or several.

use tokio::task::JoinSet;

use crate::device::{Device, DeviceState, ListedDevice, Selector, Server};
use crate::error::Failure;
use crate::flags::context::Context;
use crate::provoke;
use crate::session;

/// A selected device.
pub struct Chosen {
    pub device: Device,
    /// Name in the results: its serial number, with several servers after their address.
    pub name: String,
}

impl Chosen {
    fn of_one_server(device: Device) -> Chosen {
        Chosen {
            name: device.serial().to_owned(),
            device,
        }
    }
}

/// Returns the selected device or devices, as typed.
pub fn typed(ctx: &Context, all: bool) -> Option<String> {
    let is_virtual = ctx.globals.virtual_phone.is_some();
    // The variable selects a real device.
    let named = || std::env::var("ANDROID_SERIAL").ok().filter(|_| !is_virtual);
    ctx.globals.serial.clone().or_else(named).filter(|_| !all)
}

/// Returns the devices of the flags; with `all`, those that are ready, each once.
///
/// # Errors
/// Returns an error if there is none, or if one is missing or ambiguous.
pub async fn choose(ctx: &Context, all: bool) -> Result<Vec<Chosen>, Failure> {
    let typed = typed(ctx, all);
    let servers = ctx.servers().await?;
    // Several devices, or one that is named with its server.
    let is_listed = |typed: &String| typed.contains([',', '/']);
    if servers.len() == 1 && !all && !typed.as_ref().is_some_and(is_listed) {
        return Ok(vec![Chosen::of_one_server(ctx.device().await?.clone())]);
    }
    let mut listed = Listed::default();
    for server in &servers {
        for device in server.devices().await? {
            listed.devices.push(device);
            listed.servers.push(server);
        }
    }
    if all {
        let is_ready = |at: &usize| listed.devices[*at].state == DeviceState::Device;
        let ready: Vec<usize> = (0..listed.devices.len()).filter(is_ready).collect();
        if ready.is_empty() {
            // The error names the reason.
            return match servers.len() {
                1 => Ok(vec![Chosen::of_one_server(ctx.device().await?.clone())]),
                _ => listed.find(&servers, "").map(|_| Vec::new()),
            };
        }
        let is_usb: Vec<bool> = (ready.iter())
            .map(|at| listed.devices[*at].usb.is_some())
            .collect();
        let chosen = ready.into_iter().map(|at| listed.chosen(at, servers.len()));
        let chosen: Vec<Chosen> = chosen.collect();
        let ids = physical_ids(&chosen).await;
        let kept = kept_connections(&ids, &is_usb);
        for (one, kept) in chosen.iter().zip(&kept) {
            let kept = &chosen[*kept].name;
            if one.name != *kept {
                ctx.console.note(format_args!(
                    "{} is the device {kept} on another connection; it is left out",
                    one.name
                ));
            }
        }
        let chosen = chosen.into_iter().enumerate().zip(kept);
        let chosen = chosen.filter(|((at, _), kept)| at == kept);
        return Ok(chosen.map(|((_, one), _)| one).collect());
    }
    let typed = typed.unwrap_or_default();
    let mut places = Vec::new();
    for one in typed.split(',').map(str::trim) {
        let is_blank = one.is_empty() && typed.contains(',');
        if !is_blank {
            let place = listed.find(&servers, one)?;
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    let chosen = places.into_iter();
    Ok(chosen.map(|at| listed.chosen(at, servers.len())).collect())
}

/// Returns a device that is not at hand, by its name in the results; `None` if it is of another
/// server, or at hand after all, but left out because it has another connection.
///
/// # Errors
/// Returns an error if no server answers.
pub async fn absent(ctx: &Context, name: &str) -> Result<Option<Chosen>, Failure> {
    let servers = ctx.servers().await?;
    let (address, serial) = match name.split_once('/') {
        Some((address, serial)) => (Some(address), serial),
        None if servers.len() == 1 => (None, name),
        None => return Ok(None),
    };
    let is_its = |server: &&Server| address.is_none_or(|own| server.address() == own);
    let Some(server) = servers.iter().find(is_its) else {
        return Ok(None);
    };
    let listed = server.devices().await?;
    let is_at_hand = |it: &ListedDevice| it.serial == serial && it.state == DeviceState::Device;
    Ok((!listed.iter().any(is_at_hand)).then(|| Chosen {
        device: server.absent(serial),
        name: name.to_owned(),
    }))
}

/// Returns what tells devices apart, however they are connected; `None` for one that does not
/// answer. Emulators on several hosts can share a serial number, but not the ID of the boot.
async fn physical_ids(chosen: &[Chosen]) -> Vec<Option<(String, String)>> {
    let mut ids = vec![None; chosen.len()];
    if chosen.len() < 2 {
        return ids;
    }
    let mut reading = JoinSet::new();
    for (at, one) in chosen.iter().enumerate() {
        let device = one.device.clone();
        reading.spawn(async move {
            let serial = provoke::hardware_serial(&device).await.ok()?;
            let boot = provoke::boot(&device).await.ok()?;
            let server = device.server().address();
            Some((
                at,
                session::identity(device.serial(), &serial, &server),
                boot,
            ))
        });
    }
    while let Some(read) = reading.join_next().await {
        if let Ok(Some((at, identity, boot))) = read {
            ids[at] = Some((identity, boot));
        }
    }
    ids
}

/// Returns for each connection the one to use for its device: USB if there is one, otherwise the
/// first.
fn kept_connections(ids: &[Option<(String, String)>], is_usb: &[bool]) -> Vec<usize> {
    let kept = |at: usize| {
        let same = (0..ids.len()).filter(|other| ids[at].is_some() && ids[*other] == ids[at]);
        same.min_by_key(|other| !is_usb[*other]).unwrap_or(at)
    };
    (0..ids.len()).map(kept).collect()
}

/// The devices of all servers, each with its server.
#[derive(Default)]
struct Listed<'a> {
    devices: Vec<ListedDevice>,
    servers: Vec<&'a Server>,
}

impl Listed<'_> {
    /// Returns the place of a device: `SERIAL`, or `HOST:PORT/SERIAL` if servers share a serial.
    fn find(&self, servers: &[Server], typed: &str) -> Result<usize, Failure> {
        let at_server = typed.split_once('/').and_then(|(address, rest)| {
            let server = servers.iter().find(|server| server.address() == address);
            server.map(|_| (address, rest))
        });
        let (address, rest) = match at_server {
            Some((address, rest)) => (Some(address), rest),
            None => (None, typed),
        };
        let is_there = |at: &usize| address.is_none_or(|own| self.servers[*at].address() == own);
        let places: Vec<usize> = (0..self.devices.len()).filter(is_there).collect();
        let devices: Vec<ListedDevice> = (places.iter())
            .map(|at| self.devices[*at].clone())
            .collect();
        let selector = match rest.is_empty() {
            true => Selector::Only,
            false => Selector::parse(rest),
        };
        let addresses: Vec<String> = servers.iter().map(Server::address).collect();
        let chosen = selector.choose(&devices, &addresses.join(", "))?;
        // Exactly one fits.
        let place = devices.iter().position(|device| *device == chosen);
        Ok(places[place.unwrap_or_default()])
    }

    fn chosen(&self, at: usize, servers: usize) -> Chosen {
        let (server, listed) = (self.servers[at], &self.devices[at]);
        let own = (self.devices.iter().zip(&self.servers))
            .filter(|(_, other)| other.address() == server.address())
            .map(|(device, _)| device.clone());
        let own: Vec<ListedDevice> = own.collect();
        let device = server.device(listed, &own);
        match servers {
            1 => Chosen::of_one_server(device),
            _ => Chosen {
                name: format!("{}/{}", server.address(), listed.serial),
                device,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phone_on_usb_and_on_the_network_is_one_device() {
        let id = |serial: &str, boot: &str| Some((serial.to_owned(), boot.to_owned()));
        let ids = [
            id("R5", "a"),
            id("R6", "b"),
            id("R5", "a"),
            // Another device that reports the same serial number.
            id("R5", "c"),
            None,
            None,
        ];
        let usb = [false, true, true, false, false, false];
        assert_eq!(kept_connections(&ids, &usb), [2, 1, 2, 3, 4, 5]);
        assert_eq!(kept_connections(&ids, &[false; 6]), [0, 1, 0, 3, 4, 5]);
    }
}
