//! The devices of `run`: of one adb server or several.

use crate::device::{Device, DeviceState, ListedDevice, Selector, Server};
use crate::error::Failure;
use crate::flags::context::Context;

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

/// Returns the devices of the flags; with `all`, those that are ready.
///
/// # Errors
/// Returns an error if there is none, or if one is missing or ambiguous.
pub async fn choose(ctx: &Context, all: bool) -> Result<Vec<Chosen>, Failure> {
    let flag = ctx.globals.serial.clone();
    let typed = flag.or_else(|| std::env::var("ANDROID_SERIAL").ok());
    let typed = typed.filter(|_| !all && ctx.globals.virtual_phone.is_none());
    let servers = ctx.servers().await?;
    if servers.len() == 1 && !all && !typed.as_ref().is_some_and(|typed| typed.contains(',')) {
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
        let chosen = ready.into_iter().map(|at| listed.chosen(at, servers.len()));
        return Ok(chosen.collect());
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
