//! The devices of `run`: of one adb server or several.

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use crate::console::flags::context::Context;
use crate::lab::device_pool::Phone;
use heaptap_adb::{Device, DeviceState, ListedDevice, Selector, Server};
use heaptap_base::error::Failure;
use heaptap_capture::provoke;
use heaptap_capture::session;

fn phone(name: String, device: Device) -> Phone {
    Phone {
        device,
        name,
        requests: Vec::new(),
        obstacle: None,
    }
}

fn of_one_server(device: Device) -> Phone {
    phone(device.serial().to_owned(), device)
}

/// Returns whether this stands for the devices of a server that does not answer.
pub fn is_server(phone: &Phone) -> bool {
    phone.device.serial().is_empty()
}

/// Returns the selected device or devices, as typed.
pub fn typed(ctx: &Context, all: bool) -> Option<String> {
    let is_virtual = ctx.globals.virtual_phone.is_some();
    // The variable selects a real device.
    let named = || std::env::var("ANDROID_SERIAL").ok();
    let named = || named().filter(|serial| !serial.is_empty() && !is_virtual);
    ctx.globals.serial.clone().or_else(named).filter(|_| !all)
}

/// Returns the devices of the flags, without scenarios. With `all`, these are the ready ones, each once, then those that
/// have an obstacle, because the results have to name them.
///
/// # Errors
/// Returns an error if none is ready, or if a typed one is missing or ambiguous.
pub async fn choose(ctx: &Context, all: bool) -> Result<Vec<Phone>, Failure> {
    let typed = typed(ctx, all);
    let servers = ctx.servers().await?;
    // Several devices, or one that is named with its server.
    let is_listed = |typed: &String| typed.contains([',', '/']);
    if servers.len() == 1 && !all && !typed.as_ref().is_some_and(is_listed) {
        return Ok(vec![of_one_server(ctx.device().await?.clone())]);
    }
    let mut listed = Listed::default();
    let mut unreached = Vec::new();
    for server in &servers {
        match server.devices().await {
            Ok(devices) => {
                listed.servers.extend(vec![server; devices.len()]);
                listed.devices.extend(devices);
            }
            Err(error) if all && servers.len() > 1 => unreached.push(Phone {
                obstacle: Some(error.into()),
                ..phone(server.address(), server.absent(""))
            }),
            Err(error) => return Err(error.into()),
        }
    }
    if all {
        let mut states = listed.devices.iter().map(|device| &device.state);
        if !states.any(|state| *state == DeviceState::Device) {
            if let Some(obstacle) = unreached.pop().and_then(|one| one.obstacle) {
                return Err(obstacle);
            }
            // The error names the reason.
            return match servers.len() {
                1 => Ok(vec![of_one_server(ctx.device().await?.clone())]),
                _ => listed.find(&servers, "").map(|_| Vec::new()),
            };
        }
        let is_usb: Vec<bool> = (listed.devices.iter())
            .map(|device| device.usb.is_some())
            .collect();
        let places = 0..listed.devices.len();
        let chosen: Vec<Phone> = places.map(|at| listed.chosen(at, servers.len())).collect();
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
        let mut chosen: Vec<Phone> = chosen.map(|((_, one), _)| one).chain(unreached).collect();
        chosen.sort_by_key(|one| one.obstacle.is_some());
        // Without permissions, adb lists each device as `????????????`.
        let mut names = BTreeSet::new();
        chosen.retain(|one| names.insert(one.name.clone()) || one.obstacle.is_none());
        return Ok(chosen);
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

/// The devices of each server; none of a server that does not answer.
pub type AtHand = Vec<(Server, Vec<ListedDevice>)>;

/// Returns the devices of all servers.
///
/// # Errors
/// Returns an error if the only server does not answer.
pub async fn at_hand(ctx: &Context) -> Result<AtHand, Failure> {
    let servers = ctx.servers().await?;
    let is_only = servers.len() == 1;
    let mut all = Vec::new();
    for server in servers {
        let devices = match server.devices().await {
            Err(error) if is_only => return Err(error.into()),
            listed => listed.unwrap_or_default(),
        };
        all.push((server, devices));
    }
    Ok(all)
}

/// Returns a device that is not at hand, by its name in the results; `None` if it is of another
/// server, or at hand after all, but left out because it has another connection.
pub fn absent(at_hand: &AtHand, name: &str) -> Option<Phone> {
    let (address, serial) = match name.split_once('/') {
        Some((address, serial)) => (Some(address), serial),
        None if at_hand.len() == 1 => (None, name),
        None => return None,
    };
    let mut servers = at_hand.iter();
    let (server, listed) =
        servers.find(|(server, _)| address.is_none_or(|own| server.address() == own))?;
    let is_at_hand = |it: &ListedDevice| it.serial == serial && it.state == DeviceState::Device;
    let is_absent = !listed.iter().any(is_at_hand);
    is_absent.then(|| phone(name.to_owned(), server.absent(serial)))
}

/// Returns what tells devices apart, however they are connected; `None` for one that does not
/// answer. Emulators on several hosts can share a serial number, but not the ID of the boot.
async fn physical_ids(chosen: &[Phone]) -> Vec<Option<(String, String)>> {
    let mut ids = vec![None; chosen.len()];
    if chosen.len() < 2 {
        return ids;
    }
    let mut reading = JoinSet::new();
    let ready = chosen.iter().enumerate();
    for (at, one) in ready.filter(|(_, one)| one.obstacle.is_none()) {
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

    fn chosen(&self, at: usize, servers: usize) -> Phone {
        let (server, listed) = (self.servers[at], &self.devices[at]);
        let own = (self.devices.iter().zip(&self.servers))
            .filter(|(_, other)| other.address() == server.address())
            .map(|(device, _)| device.clone());
        let own: Vec<ListedDevice> = own.collect();
        let device = server.device(listed, &own);
        let chosen = match servers {
            1 => of_one_server(device),
            _ => phone(format!("{}/{}", server.address(), listed.serial), device),
        };
        let alone = Selector::Only.choose(std::slice::from_ref(listed), &server.address());
        Phone {
            obstacle: alone.err().map(Failure::from),
            ..chosen
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
