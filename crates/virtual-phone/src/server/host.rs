//! Host services: versions, device lists, transports.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::wire::Wire;
use super::{Link, Server, jdwp, shell, sync};
use crate::faults::FaultKind;
use crate::faults::gate::Answer;

/// Protocol version of adb 1.0.41.
const VERSION: u64 = 41;

/// Features of adb on both sides.
const FEATURES: &str = "shell_v2,cmd,stat_v2,fixed_push_mkdir,apex,abb,abb_exec,\
    fixed_push_symlink_timestamp";

/// Answer of an adb server for an unauthorized device.
const UNAUTHORIZED: &str = "device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set\n\
    Try 'adb kill-server' if that seems wrong.\n\
    Otherwise check for a confirmation dialog on your device.";

/// Target of a host service.
enum Target<'a> {
    Any,
    /// An emulator or a device at an address, of which there are none.
    Local,
    Serial(&'a str),
    Transport(u64),
}

impl Server {
    /// Serves a connection: host services one after another, until one takes over the connection.
    pub(super) fn requests(self: &Arc<Self>, wire: &Arc<Wire>, id: u64) -> io::Result<()> {
        let mut device: Option<usize> = None;
        loop {
            let service = wire.request()?;
            let faults = device.map_or(&self.faults, |port| &self.ports[port].kernel.faults);
            if faults.has_struck(FaultKind::Hang) {
                wire.silence(None);
                return Ok(());
            }
            if let Some(ms) = faults.value(FaultKind::Slow, 500) {
                std::thread::sleep(Duration::from_millis(ms));
            }
            if faults.has_struck(FaultKind::Drop) {
                return Err(io::Error::other("dropped on request"));
            }
            match faults.pass(&service) {
                Answer::Serve => {}
                Answer::Nonsense if service.starts_with("shell,v2") => {
                    return shell::nonsense(wire);
                }
                other => return wire.give(other),
            }
            if let Some(port) = device
                && !service.starts_with("host:")
            {
                return self.device_service(wire, port, &service);
            }
            let (target, verb) = match split(&service) {
                Some(split) => split,
                None => return wire.fail("unknown host service"),
            };
            match self.host_service(wire, id, target, verb, device)? {
                Next::Transport(port) => device = Some(port),
                Next::Done => return Ok(()),
            }
        }
    }

    fn host_service(
        self: &Arc<Self>,
        wire: &Arc<Wire>,
        id: u64,
        target: Target<'_>,
        verb: &str,
        transported: Option<usize>,
    ) -> io::Result<Next> {
        let done = |result: io::Result<()>| result.map(|()| Next::Done);
        let (name, argument) = verb.split_once(':').unwrap_or((verb, ""));
        match name {
            "version" => {
                let version = self.faults.value(FaultKind::OldServer, 40);
                done(wire.answer(&format!("{:04x}", version.unwrap_or(VERSION))))
            }
            "kill" => {
                if !self.killable {
                    return done(wire.fail("this server is embedded: it can't be killed"));
                }
                wire.okay()?;
                self.end();
                Ok(Next::Done)
            }
            "devices" => done(wire.answer(&self.list(false))),
            "devices-l" => done(wire.answer(&self.list(true))),
            "track-devices" => done(self.track(wire, false)),
            "track-devices-l" => done(self.track(wire, true)),
            "host-features" => done(wire.answer(FEATURES)),
            "connect" => {
                let at = format!("failed to connect to '{argument}': Connection refused");
                done(wire.answer(&at))
            }
            "disconnect" => done(match argument {
                "" => wire.answer("disconnected everything"),
                serial if self.ports.iter().any(|p| p.kernel.serial == serial) => {
                    wire.answer(&format!("disconnected {serial}"))
                }
                serial => wire.fail(&format!("no such device '{serial}'")),
            }),
            "transport" | "transport-any" | "transport-usb" | "transport-local"
            | "transport-id" | "tport" => {
                let wanted = match (name, argument.split_once(':').unwrap_or((argument, ""))) {
                    ("transport", _) => Target::Serial(argument),
                    ("transport-id", _) => Target::Transport(argument.parse().unwrap_or(0)),
                    ("tport", ("serial", serial)) => Target::Serial(serial),
                    ("transport-local", _) | ("tport", ("local", _)) => Target::Local,
                    _ => Target::Any,
                };
                let port = match self.find(&wanted) {
                    Ok(port) => port,
                    Err(text) => return done(wire.fail(&text)),
                };
                let faults = &self.ports[port].kernel.faults;
                if faults.has_struck(FaultKind::TransportFail) {
                    return done(wire.fail("device offline"));
                }
                self.reached(id, port);
                wire.okay()?;
                if name == "tport" {
                    let transport = self.ports[port].transport.load(Ordering::SeqCst);
                    wire.write(&transport.to_le_bytes())?;
                }
                self.vanish(port);
                Ok(Next::Transport(port))
            }
            "get-state" | "get-serialno" | "features" => {
                let port = match transported.map_or_else(|| self.find(&target), Ok) {
                    Ok(port) => port,
                    Err(text) => return done(wire.fail(&text)),
                };
                let kernel = &self.ports[port].kernel;
                done(wire.answer(&match name {
                    "get-state" => "device".to_owned(),
                    "get-serialno" => kernel.serial.clone(),
                    _ => self.features(),
                }))
            }
            _ if name.starts_with("wait-for-") => done(self.wait_for(wire, &target, name)),
            _ => done(wire.fail(&format!("unknown host service '{verb}'"))),
        }
    }

    /// `adb wait-for-device` and its like, with which scripts begin.
    fn wait_for(&self, wire: &Wire, target: &Target<'_>, name: &str) -> io::Result<()> {
        wire.okay()?;
        loop {
            let seen = self.changes.seen();
            let is_there = self.find(target).is_ok();
            if is_there != name.ends_with("-disconnect") {
                return wire.okay();
            }
            if self.has_ended() {
                return Ok(());
            }
            self.changes.wait(seen, None);
        }
    }

    /// Applies the faults that remove a device after a number of transports.
    fn vanish(self: &Arc<Self>, port: usize) {
        let kernel = &self.ports[port].kernel;
        if kernel.faults.has_struck(FaultKind::Vanish) {
            self.set_link(port, Link::Gone);
        }
        if let Some(ms) = kernel.faults.value(FaultKind::Blink, 300) {
            self.blink(port, ms);
        }
        if let Some(ms) = kernel.faults.value(FaultKind::Restart, 1_000) {
            self.blink(port, ms);
            kernel.reboot();
        }
        if let Some(ms) = kernel.faults.value(FaultKind::ServerRestart, 300) {
            self.restart(ms);
        }
    }

    /// Removes the device for `ms` on the host's clock.
    fn blink(self: &Arc<Self>, port: usize, ms: u64) {
        self.set_link(port, Link::Gone);
        self.after(ms, move |server| server.set_link(port, Link::Device));
    }

    /// Restarts the server, which is away for `ms` on the host's clock.
    pub(crate) fn restart(self: &Arc<Self>, ms: u64) {
        self.away.fetch_add(1, Ordering::SeqCst);
        self.cut(|_| true);
        self.after(ms, |server| {
            server.away.fetch_sub(1, Ordering::SeqCst);
        });
        for port in &self.ports {
            let id = self.next_transport.fetch_add(1, Ordering::SeqCst);
            port.transport.store(id, Ordering::SeqCst);
        }
        // Trackers of the list notice that their connections are cut.
        self.changes.notify();
    }

    /// Acts after `ms` on the host's clock, unless the server has ended.
    fn after(self: &Arc<Self>, ms: u64, act: impl FnOnce(&Server) + Send + 'static) {
        let server = self.clone();
        // If the thread cannot start, a device stays away.
        let _ = std::thread::Builder::new().spawn(move || {
            std::thread::sleep(Duration::from_millis(ms));
            if !server.has_ended() {
                act(&server);
            }
        });
    }

    /// Returns the features of a device.
    fn features(&self) -> String {
        let mut features = FEATURES.to_owned();
        for (fault, missing) in [
            (FaultKind::NoShellV2, "shell_v2,cmd,"),
            (FaultKind::NoStatV2, "stat_v2,"),
        ] {
            if self.faults.has_struck(fault) {
                features = features.replace(missing, "");
            }
        }
        features
    }

    /// Returns the selected device, or the text of the refusal.
    fn find(&self, target: &Target<'_>) -> Result<usize, String> {
        let listed = self.listed();
        let matching: Vec<&(usize, Link)> = listed
            .iter()
            .filter(|(i, _)| {
                let port = &self.ports[*i];
                match target {
                    Target::Any => true,
                    Target::Local => false,
                    Target::Serial(serial) => {
                        port.kernel.serial == *serial
                            || *serial == format!("usb:1-{}", i + 1)
                            || port.names().contains(&(*serial).to_owned())
                    }
                    Target::Transport(id) => port.transport.load(Ordering::SeqCst) == *id,
                }
            })
            .collect();
        match (&matching[..], target) {
            ([(port, link)], _) => match link {
                Link::Device => Ok(*port),
                Link::Offline => Err("device offline".to_owned()),
                Link::Unauthorized => Err(UNAUTHORIZED.to_owned()),
                _ => Err(
                    "insufficient permissions for device: missing udev rules? user is in the \
                     plugdev group\nSee [http://developer.android.com/tools/device.html] for \
                     more information"
                        .to_owned(),
                ),
            },
            ([], Target::Serial(serial)) => Err(format!("device '{serial}' not found")),
            ([], Target::Transport(id)) => Err(format!("no device with transport id '{id}'")),
            ([], _) => Err("no devices/emulators found".to_owned()),
            _ => Err("more than one device/emulator".to_owned()),
        }
    }

    fn list(&self, long: bool) -> String {
        let mut text = String::new();
        for (i, link) in self.listed() {
            let port = &self.ports[i];
            let state = match link {
                Link::Device => "device",
                Link::Offline => "offline",
                Link::Unauthorized => "unauthorized",
                _ => {
                    "no permissions (missing udev rules? user is in the plugdev group); see \
                     [http://developer.android.com/tools/device.html]"
                }
            };
            let serial = &port.kernel.serial;
            if !long {
                text.push_str(&format!("{serial}\t{state}\n"));
                continue;
            }
            text.push_str(&format!("{serial:<22} {state} usb:1-{}", i + 1));
            if link == Link::Device {
                text.push_str(&format!(" {}", port.names().join(" ")));
            }
            let transport = port.transport.load(Ordering::SeqCst);
            text.push_str(&format!(" transport_id:{transport}\n"));
        }
        text
    }

    /// Sends the list after every change, until the client disconnects.
    fn track(&self, wire: &Wire, long: bool) -> io::Result<()> {
        wire.okay()?;
        let mut last = None;
        while !self.has_ended() {
            let seen = self.changes.seen();
            let list = self.list(long);
            if last.as_ref() != Some(&list) {
                wire.body(&list)?;
                last = Some(list);
            }
            self.changes.wait(seen, None);
        }
        Ok(())
    }

    /// Opens a service of the device: the connection is now raw.
    fn device_service(
        self: &Arc<Self>,
        wire: &Arc<Wire>,
        port: usize,
        service: &str,
    ) -> io::Result<()> {
        let kernel = &self.ports[port].kernel;
        let (name, argument) = service.split_once(':').unwrap_or((service, ""));
        if kernel.is_off() {
            return wire.fail("closed");
        }
        let (base, options) = name.split_once(',').unwrap_or((name, ""));
        if base != "sync" {
            kernel.note_request(base, argument);
        }
        match base {
            "shell" | "exec" => {
                let v2 = base == "shell"
                    && options.starts_with("v2")
                    && !self.faults.has_struck(FaultKind::NoShellV2);
                let pty = match v2 {
                    true => options.split(',').any(|option| option == "pty"),
                    false => base == "shell" && argument.is_empty(),
                };
                shell::serve(kernel, wire, argument, &shell::Protocol { v2, pty })
            }
            "sync" => sync::serve(kernel, wire),
            "jdwp" => jdwp::serve(kernel, wire, argument, &|ms| self.blink(port, ms)),
            "track-jdwp" => jdwp::track(kernel, wire),
            "root" => {
                wire.okay()?;
                wire.write(match crate::access::has_su(&kernel.spec) {
                    false => b"adbd cannot run as root in production builds\n",
                    true => b"adbd cannot run as root on this virtual phone: use su\n",
                })
            }
            _ => wire.fail("closed"),
        }
    }
}

enum Next {
    /// The connection now leads to this device.
    Transport(usize),
    Done,
}

/// Splits `host…:verb` into target and verb.
fn split(service: &str) -> Option<(Target<'_>, &str)> {
    if let Some(verb) = service.strip_prefix("host:") {
        return Some((Target::Any, verb));
    }
    if let Some(verb) = service.strip_prefix("host-usb:") {
        return Some((Target::Any, verb));
    }
    if let Some(verb) = service.strip_prefix("host-local:") {
        return Some((Target::Local, verb));
    }
    if let Some(rest) = service.strip_prefix("host-transport-id:") {
        let (id, verb) = rest.split_once(':')?;
        return Some((Target::Transport(id.parse().ok()?), verb));
    }
    let rest = service.strip_prefix("host-serial:")?;
    // A serial might contain a port: HOST:PORT:verb.
    let verbs = ["get-", "features", "wait-for-"];
    let (at, _) = rest.match_indices(':').find(|(i, _)| {
        let after = &rest[i + 1..];
        verbs.iter().any(|v| after.starts_with(v))
    })?;
    Some((Target::Serial(&rest[..at]), &rest[at + 1..]))
}
