//! The adb server of the virtual phones: it listens on loopback, answers host services, and
//! connects clients to a device. Owns the list of devices and their transports; other modules run
//! the device's services.

mod host;
mod jdwp;
mod shell;
mod sync;
mod wire;

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use self::wire::Wire;
use super::events::{Events, lock};
use super::faults::{FaultKind, Faults};
use super::kernel::Kernel;

/// Maximum number of simultaneous connections.
const MAX_CONNECTIONS: u32 = 2_048;

/// State of a device in the server's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Device,
    Offline,
    Unauthorized,
    NoPermissions,
    /// Not listed.
    Gone,
}

/// A phone connected to this server.
pub(crate) struct Port {
    pub(crate) kernel: Arc<Kernel>,
    /// Counter of connections of the cable.
    transport: AtomicU64,
    link: Mutex<Link>,
}

impl Port {
    /// Returns the names of the device in `adb devices -l`.
    fn names(&self) -> [String; 3] {
        let release = self.kernel.spec.release();
        let device = release.device;
        [
            format!("product:{device}"),
            format!("model:{}", release.model.replace(' ', "_")),
            format!("device:{device}"),
        ]
    }
}

pub(crate) struct Server {
    ports: Vec<Port>,
    faults: Arc<Faults>,
    killable: bool,
    /// Events for changes of the device list.
    changes: Events,
    /// Number of restarts that are going on.
    away: AtomicU32,
    ended: AtomicBool,
    connections: AtomicU32,
    next_transport: AtomicU64,
    /// Open connections with their devices, to cut them.
    open: Mutex<Vec<(u64, Option<usize>, TcpStream)>>,
    next_connection: AtomicU64,
    address: SocketAddr,
}

impl Server {
    /// Starts on 127.0.0.1; port 0 lets the system choose.
    pub(crate) fn start(
        port: u16,
        phones: Vec<Arc<Kernel>>,
        faults: Arc<Faults>,
        killable: bool,
    ) -> io::Result<Arc<Server>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        // Each device is an occasion.
        let link = || {
            let mut kinds = [
                (FaultKind::NoDevice, Link::Gone),
                (FaultKind::Offline, Link::Offline),
                (FaultKind::Unauthorized, Link::Unauthorized),
                (FaultKind::NoPermissions, Link::NoPermissions),
            ]
            .into_iter();
            let struck = kinds.find(|(kind, _)| faults.has_struck(*kind));
            struck.map_or(Link::Device, |(_, link)| link)
        };
        let ports: Vec<Port> = phones
            .into_iter()
            .enumerate()
            .map(|(i, kernel)| Port {
                kernel,
                transport: AtomicU64::new(i as u64 + 1),
                link: Mutex::new(link()),
            })
            .collect();
        let server = Arc::new(Server {
            next_transport: AtomicU64::new(ports.len() as u64 + 1),
            ports,
            faults,
            killable,
            changes: Events::default(),
            away: AtomicU32::new(0),
            ended: AtomicBool::new(false),
            connections: AtomicU32::new(0),
            open: Mutex::default(),
            next_connection: AtomicU64::new(0),
            address: listener.local_addr()?,
        });
        let accepting = server.clone();
        std::thread::Builder::new()
            .name("virtual-adb".to_owned())
            .spawn(move || accepting.accept(&listener))?;
        Ok(server)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Waits until the server has ended.
    pub(crate) fn wait(&self) {
        loop {
            let seen = self.changes.seen();
            if self.has_ended() {
                return;
            }
            self.changes.wait(seen, None);
        }
    }

    /// Ends the server: accepts no more connections and cuts the open ones.
    pub(crate) fn end(&self) {
        if self.ended.swap(true, Ordering::SeqCst) {
            return;
        }
        for (_, _, stream) in lock(&self.open).drain(..) {
            // The stream might be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        for port in &self.ports {
            port.kernel.switch_off();
        }
        self.changes.notify();
        // Wakes the accepting thread, which then ends.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.has_ended() {
                return;
            }
            let Ok(stream) = stream else { continue };
            if self.away.load(Ordering::SeqCst) > 0 {
                continue;
            }
            if self.connections.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
                self.connections.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let server = self.clone();
            let serve = move || {
                server.serve(stream);
                server.connections.fetch_sub(1, Ordering::SeqCst);
            };
            // If the thread cannot start, the connection is dropped; the client sees it closed.
            let _ = std::thread::Builder::new()
                .stack_size(super::program::STACK)
                .spawn(serve);
        }
    }

    fn serve(self: &Arc<Self>, stream: TcpStream) {
        let fragment = self.faults.has_struck(FaultKind::Fragment);
        let wire = Arc::new(Wire::new(stream, fragment));
        let id = self.next_connection.fetch_add(1, Ordering::SeqCst);
        if let Ok(handle) = wire.handle() {
            lock(&self.open).push((id, None, handle));
        }
        // A broken connection ends only its thread.
        match self.requests(&wire, id) {
            Ok(()) => wire.finish(),
            Err(_) => wire.close(),
        }
        lock(&self.open).retain(|(open, ..)| *open != id);
    }

    /// Stores the device of a connection.
    fn reached(&self, id: u64, port: usize) {
        self.ports[port].kernel.clock.release();
        for entry in lock(&self.open).iter_mut().filter(|e| e.0 == id) {
            entry.1 = Some(port);
        }
    }

    /// Sets the listed state of a device; cuts its connections unless it is ready.
    pub(crate) fn set_link(&self, port: usize, link: Link) {
        let Some(entry) = self.ports.get(port) else {
            return;
        };
        let before = std::mem::replace(&mut *lock(&entry.link), link);
        if link == Link::Device && before != link {
            let id = self.next_transport.fetch_add(1, Ordering::SeqCst);
            entry.transport.store(id, Ordering::SeqCst);
        }
        if link != Link::Device {
            self.cut_device(port);
        }
        self.changes.notify();
    }

    /// Cuts every connection to a device.
    pub(crate) fn cut_device(&self, port: usize) {
        self.cut(|reached| reached == Some(port));
    }

    /// Cuts the connections whose device, if they reached one, is wanted.
    fn cut(&self, is_wanted: impl Fn(Option<usize>) -> bool) {
        for (_, reached, stream) in lock(&self.open).iter() {
            if is_wanted(*reached) {
                // The stream might be closed already.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }

    /// Returns the listed devices with their states.
    fn listed(&self) -> Vec<(usize, Link)> {
        let all = self.ports.iter().enumerate();
        all.map(|(i, p)| (i, *lock(&p.link)))
            .filter(|(_, link)| *link != Link::Gone)
            .collect()
    }
}
