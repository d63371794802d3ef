//! The virtual phone: an adb server in this process that speaks the real wire protocol on loopback,
//! and behind it Android phones with files, processes, a shell, packages and perfetto. Real `adb`
//! works with it. It is for tests and demonstrations of programs that use a phone.
//!
//! It shares no code with programs that record, pull and decode, so a mistake of theirs is not
//! repeated here. It knows what was allocated and what the Java heaps held: [`VirtualPhone::truth`]
//! and [`VirtualPhone::java_truth`] are the yardsticks for what a program reads from a recording.
//!
//! # The method
//!
//! A phone follows from its [`PhoneSpec`]: Android version, build type, apps, seed, speed. Its clock
//! is its own and runs `speed` times as fast as the host's; equal specs give equal phones. What
//! happens to a process is computed when a command asks, not ticked through. [`Faults`] make
//! connections and programs fail on request, and [`VirtualPhone::unplug`] pulls the cable.
//!
//! Only what programs ask for exists: the commands are those that heaptap sends, and their text is
//! that of the Android version. `docs/virtual-phone.md` lists keys, processes, commands and faults.
//!
//! # A worked example
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//! use virtual_phone::{PhoneSpec, VirtualPhone};
//!
//! let phone = VirtualPhone::start(PhoneSpec::parse("android=12,serial=lab")?)?;
//! let mut adb = TcpStream::connect(phone.addr())?;
//! adb.write_all(b"000chost:devices")?;
//! let mut answer = String::new();
//! adb.read_to_string(&mut answer)?;
//! assert_eq!(answer, "OKAY000blab\tdevice\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! | module | owns |
//! |---|---|
//! | `spec`, `faults` | what the phone is asked to be, and what goes wrong on request |
//! | `server` | host services, transports, shell, sync, debugger connections |
//! | `kernel`, `state`, `clock`, `events` | one phone: its lock, what changes, clocks, waiting |
//! | `fs`, `files`, `procfs`, `io`, `access` | its files, `/proc`, descriptors, permissions |
//! | `population`, `packages`, `installed`, `image`, `properties` | processes, apps, libraries and properties at boot |
//! | `process`, `init` | processes, and how daemons and apps start and stop |
//! | `program`, `commands`, `shell` | how a program runs, the programs, `/system/bin/sh` |
//! | `tracing`, `traced` | recordings by perfetto; sessions, and the truth of each recording |
//! | `workload`, `history`, `deeds` | what native heaps get, and what happened to processes |
//! | `java`, `memory`, `logcat` | Java heaps, the account of memory, the log |
//! | `screen`, `foreground` | tasks and activities, and what brings them to the front |
#![warn(missing_docs)]

mod access;
mod clock;
mod commands;
mod deeds;
mod events;
mod faults;
mod files;
mod foreground;
mod fs;
mod history;
mod image;
mod init;
mod installed;
mod io;
mod java;
mod kernel;
mod logcat;
mod memory;
mod packages;
mod population;
mod process;
mod procfs;
mod program;
mod properties;
mod screen;
mod server;
mod shell;
mod spec;
mod state;
mod traced;
mod tracing;
mod workload;

use std::net::SocketAddr;
use std::sync::Arc;

pub use self::faults::{Fault, FaultError, FaultKind, Faults};
pub use self::image::{MAPPING, unstripped_libraries};
pub use self::java::{JavaDumpKind, JavaDumpTruth, PlantTruth, Retained};
use self::kernel::Kernel;
use self::server::{Link, Server};
pub use self::spec::{Abi, AppState, BuildType, Names, PhoneSpec, ScreenState, SpecError};
pub use self::traced::{DumpTruth, RecordingTruth, SiteTruth};
pub use self::workload::TrackedTruth;

/// A running adb server with its phones. Dropping it ends both.
pub struct VirtualPhone {
    server: Arc<Server>,
    phones: Vec<Arc<Kernel>>,
    faults: Arc<Faults>,
}

impl VirtualPhone {
    /// Starts on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// Where this host gives no port or no thread.
    pub fn start(spec: PhoneSpec) -> std::io::Result<VirtualPhone> {
        Self::start_on(spec, 0)
    }

    /// Starts on a given port of 127.0.0.1; 0 lets the system choose.
    ///
    /// # Errors
    /// Where the port is taken, or this host gives no thread.
    pub fn start_on(spec: PhoneSpec, port: u16) -> std::io::Result<VirtualPhone> {
        let faults = Arc::new(Faults::new(&spec.faults));
        let phones: Vec<Arc<Kernel>> = (1..=spec.devices)
            .map(|n| {
                let serial = match n {
                    1 => spec.serial.clone(),
                    n => format!("{}-{n}", spec.serial),
                };
                Kernel::new(
                    spec.clone(),
                    serial,
                    faults.clone(),
                    &commands::programs(&spec).names(),
                )
            })
            .collect();
        let server = Server::start(port, phones.clone(), faults.clone(), spec.killable)?;
        Ok(VirtualPhone {
            server,
            phones,
            faults,
        })
    }

    /// Where the adb server listens.
    pub fn addr(&self) -> SocketAddr {
        self.server.address()
    }

    /// Serial numbers of the phones.
    pub fn serials(&self) -> Vec<String> {
        self.phones.iter().map(|k| k.serial.clone()).collect()
    }

    /// What is to go wrong; more can be added while it runs.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// What was really allocated during each recording of the first phone, so far.
    pub fn truth(&self) -> Vec<RecordingTruth> {
        let first = self.phones.first();
        first
            .map(|k| k.state().tracing.truths.clone())
            .unwrap_or_default()
    }

    /// What the Java heaps held that were dumped on the first phone so far, in order.
    pub fn java_truth(&self) -> Vec<JavaDumpTruth> {
        let dumps = self
            .phones
            .first()
            .map(|k| k.state().tracing.java_dumps.clone());
        let dumps = dumps.unwrap_or_default();
        dumps
            .iter()
            .map(|d| d.inputs.truth(d.kind, &d.path))
            .collect()
    }

    /// What runtimes of the first phone told of the allocations that they tracked, in order.
    pub fn tracked_truth(&self) -> Vec<TrackedTruth> {
        let first = self.phones.first();
        first
            .map(|k| k.state().tracing.tracked.clone())
            .unwrap_or_default()
    }

    /// Processes of the first phone that track allocations.
    pub fn tracking(&self) -> Vec<u32> {
        let state = self.phones.first().map(|k| k.state());
        let keys = state.iter().flat_map(|state| state.tracing.trackers.keys());
        keys.map(|(pid, _)| *pid).collect()
    }

    /// Whether a path exists on the first phone, whoever may read it.
    pub fn has_file(&self, path: &str) -> bool {
        self.file(path).is_some()
    }

    /// Bytes of a file on the first phone, whoever may read it.
    pub fn file(&self, path: &str) -> Option<Vec<u8>> {
        let kernel = self.phones.first()?;
        kernel.read_all(&access::Cred::root(), "/", path).ok()
    }

    /// Replaces a file of the first phone, or adds one, as an update of the system or an app
    /// does; `mode` are its permission bits.
    pub fn put_file(&self, path: &str, bytes: &[u8], mode: u32) {
        if let Some(kernel) = self.phones.first() {
            installed::put_file(&mut kernel.state().tree, path, bytes, mode);
        }
    }

    /// What was asked of the first phone's adbd so far, in order: `STA2:PATH`, `RECV:PATH`,
    /// `shell:COMMAND` and the like.
    pub fn requests(&self) -> Vec<String> {
        let first = self.phones.first();
        first.map(|kernel| kernel.requests()).unwrap_or_default()
    }

    /// Names in a directory of the first phone, whoever may read it.
    pub fn list(&self, path: &str) -> Vec<String> {
        let listed = self
            .phones
            .first()
            .and_then(|k| k.list(&access::Cred::root(), "/", path).ok());
        listed.unwrap_or_default()
    }

    /// The first phone's boot clock in nanoseconds.
    pub fn boot_ns(&self) -> u64 {
        self.phones.first().map_or(0, |k| k.clock.boot())
    }

    /// Pulls the cable of a phone (by its place in [`VirtualPhone::serials`]): it is no longer
    /// listed, and its connections are cut.
    pub fn unplug(&self, phone: usize) {
        self.server.set_link(phone, Link::Gone);
    }

    /// Plugs it in again.
    pub fn plug_in(&self, phone: usize) {
        self.server.set_link(phone, Link::Device);
    }

    /// Restarts a phone: its processes and recordings end, files stay, the boot id changes.
    pub fn reboot(&self, phone: usize) {
        if let Some(kernel) = self.phones.get(phone) {
            kernel.reboot();
            self.server.cut(phone);
        }
    }

    /// Waits until someone ends the server (`host:kill`, where the SPEC says `killable`).
    pub fn wait(&self) {
        self.server.wait();
    }

    /// Ends the server and its phones.
    pub fn shutdown(&self) {
        self.server.end();
    }
}

impl Drop for VirtualPhone {
    fn drop(&mut self) {
        self.shutdown();
    }
}
