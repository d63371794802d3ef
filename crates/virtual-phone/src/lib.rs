//! The virtual phone: an adb server in this process that uses the real wire protocol on loopback,
//! with Android phones that have files, processes, a shell, packages and perfetto. Real `adb` works
//! with it. It is for tests and demonstrations of programs that use a device.
//!
//! It does not share code with programs that record, pull and decode, so it does not repeat their
//! mistakes. It knows the actual allocations and the contents of the Java heaps:
//! [`VirtualPhone::truth`] and [`VirtualPhone::java_truth`] are the references for the results that
//! a program reads from a recording.
//!
//! # The method
//!
//! A phone is determined by its [`PhoneSpec`]: Android version, build type, apps, seed, speed. It
//! has its own clock, which runs `speed` times as fast as the host's. Equal specs give equal
//! phones. The state of a process is computed when a command reads it, without a running
//! simulation. [`Faults`] make connections and programs fail on request, and
//! [`VirtualPhone::unplug`] pulls the cable.
//!
//! Only what programs use is implemented: the commands are those that heaptap sends, and their
//! output is that of the Android version. `docs/internals/virtual-phone.md` lists keys, processes and
//! commands.
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
//! | `spec`, `faults` | specification of a phone, and fault injection |
//! | `server` | host services, transports, shell, sync, debugger connections |
//! | `kernel`, `state`, `clock`, `events` | one phone: its lock, mutable state, clocks, waiting |
//! | `fs`, `files`, `procfs`, `io`, `access` | its files, `/proc`, descriptors, permissions |
//! | `population`, `packages`, `installed`, `installer`, `image`, `properties` | processes, apps, libraries and
//! properties at boot |
//! | `process`, `init` | processes, and the start and stop of daemons and apps |
//! | `program`, `commands`, `shell` | environment of a program, the programs, `/system/bin/sh` |
//! | `tracing`, `traced` | recordings by perfetto; sessions, and the truth of each recording |
//! | `workload`, `history`, `app_actions` | allocations on native heaps, and events of processes |
//! | `strings`, `numbers`, `named` | numbered strings, pseudo-random numbers, enumerations |
//! | `java`, `memory`, `logcat` | Java heaps, memory accounting, the log |
//! | `screen`, `foreground` | tasks and activities, and their changes |
#![warn(missing_docs)]

mod access;
mod app_actions;
mod clock;
mod commands;
mod events;
mod faults;
mod files;
mod foreground;
mod fs;
mod history;
mod image;
mod init;
mod installed;
mod installer;
mod io;
mod java;
mod kernel;
mod logcat;
mod memory;
mod named;
mod numbers;
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
mod strings;
mod traced;
mod tracing;
mod workload;

use std::net::SocketAddr;
use std::sync::Arc;

use self::faults::draws::Draws;
pub use self::faults::draws::Odds;
pub use self::faults::gate::{Answer, Gate};
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
    /// Returns an error if the host cannot provide a port or a thread.
    pub fn start(spec: PhoneSpec) -> std::io::Result<VirtualPhone> {
        Self::start_on(spec, 0)
    }

    /// Starts on a given port of 127.0.0.1; 0 lets the system choose.
    ///
    /// # Errors
    /// Returns an error if the port is in use or the host cannot provide a thread.
    pub fn start_on(spec: PhoneSpec, port: u16) -> std::io::Result<VirtualPhone> {
        let faults = Arc::new(Faults::new(&spec.faults));
        let phones: Vec<Arc<Kernel>> = (1..=spec.devices)
            .map(|n| {
                let serial = match n {
                    1 => spec.serial.clone(),
                    n => format!("{}-{n}", spec.serial),
                };
                let draws = spec.odds.map(|odds| Arc::new(Draws::new(odds, n.into())));
                // Phones do the same things at different times.
                let own = PhoneSpec {
                    seed: spec.seed.wrapping_add(u64::from(n - 1)),
                    ..spec.clone()
                };
                let faults = Arc::new(faults.with_draws(draws));
                let names = commands::programs(&spec).names();
                let kernel = Kernel::new(own, serial, faults, &names);
                if n > 1 {
                    kernel.clock.hold();
                }
                kernel
            })
            .collect();
        let server = Server::start(port, phones.clone(), faults.clone(), spec.killable)?;
        Ok(VirtualPhone {
            server,
            phones,
            faults,
        })
    }

    /// Returns the address of the adb server.
    pub fn addr(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the serial numbers of the phones.
    pub fn serials(&self) -> Vec<String> {
        self.phones.iter().map(|k| k.serial.clone()).collect()
    }

    /// Returns the injected faults; more can be added at run time.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Returns the faults that a phone (index in [`VirtualPhone::serials`]) has drawn so far.
    pub fn drawn_faults(&self, phone: usize) -> Vec<Fault> {
        self.of(phone, |k| k.faults.drawn())
    }

    /// Ends the draws: from now on, only armed faults strike.
    pub fn end_draws(&self) {
        self.phones.iter().for_each(|k| k.faults.end_draws());
    }

    /// Reads from a phone; the default if there is no such phone.
    fn of<T: Default>(&self, phone: usize, read: impl FnOnce(&Kernel) -> T) -> T {
        let phone = self.phones.get(phone);
        phone.map_or_else(T::default, |kernel| read(kernel))
    }

    /// Returns the actual allocations during each recording of the first phone so far.
    pub fn truth(&self) -> Vec<RecordingTruth> {
        self.truth_of(0)
    }

    /// Returns the actual allocations during each recording of a phone so far.
    pub fn truth_of(&self, phone: usize) -> Vec<RecordingTruth> {
        self.of(phone, |k| k.state().tracing.truths.clone())
    }

    /// Returns the contents of the Java heaps dumped on the first phone so far, in order.
    pub fn java_truth(&self) -> Vec<JavaDumpTruth> {
        let dumps = self.of(0, |k| k.state().tracing.java_dumps.clone());
        let truths = dumps.iter().map(|d| d.inputs.truth(d.kind, &d.path));
        truths.collect()
    }

    /// Returns the tracked allocations that runtimes of the first phone have reported, in order.
    pub fn tracked_truth(&self) -> Vec<TrackedTruth> {
        self.of(0, |k| k.state().tracing.tracked.clone())
    }

    /// Returns the processes of the first phone that track allocations.
    pub fn tracking(&self) -> Vec<u32> {
        let trackers = self.of(0, |k| k.state().tracing.trackers.clone());
        trackers.into_keys().map(|(pid, _)| pid).collect()
    }

    /// Returns whether a path exists on the first phone, regardless of permissions.
    pub fn has_file(&self, path: &str) -> bool {
        self.file(path).is_some()
    }

    /// Returns the bytes of a file on the first phone, regardless of permissions.
    pub fn file(&self, path: &str) -> Option<Vec<u8>> {
        self.of(0, |k| k.read_all(&access::Cred::root(), "/", path).ok())
    }

    /// Replaces or adds a file of the first phone, as an update of the system or an app does;
    /// `mode` is its permission bits.
    pub fn put_file(&self, path: &str, bytes: &[u8], mode: u32) {
        if let Some(kernel) = self.phones.first() {
            installed::put_file(&mut kernel.state().tree, path, bytes, mode);
        }
    }

    /// Returns the requests to the first phone's adbd so far, in order: `STA2:PATH`, `RECV:PATH`,
    /// `shell:COMMAND` and similar.
    pub fn requests(&self) -> Vec<String> {
        self.of(0, Kernel::requests)
    }

    /// Returns the names in a directory of the first phone, regardless of permissions.
    pub fn list(&self, path: &str) -> Vec<String> {
        self.list_of(0, path)
    }

    /// Returns the names in a directory of a phone, regardless of permissions.
    pub fn list_of(&self, phone: usize, path: &str) -> Vec<String> {
        let list = |k: &Kernel| k.list(&access::Cred::root(), "/", path);
        self.of(phone, |k| list(k).unwrap_or_default())
    }

    /// Returns the first phone's boot clock in nanoseconds.
    pub fn boot_ns(&self) -> u64 {
        self.of(0, |k| k.clock.boot())
    }

    /// Pulls the cable of a phone (index in [`VirtualPhone::serials`]): it is no longer listed, and
    /// its connections are cut.
    pub fn unplug(&self, phone: usize) {
        self.server.set_link(phone, Link::Gone);
    }

    /// Plugs the cable of a phone in again.
    pub fn plug_in(&self, phone: usize) {
        self.server.set_link(phone, Link::Device);
    }

    /// Restarts a phone: its processes and recordings end, files stay, the boot ID changes.
    pub fn reboot(&self, phone: usize) {
        if let Some(kernel) = self.phones.get(phone) {
            kernel.reboot();
            self.server.cut_device(phone);
        }
    }

    /// Cuts the connections of a phone, as a restart of its adbd does: it stays listed, and its
    /// processes go on.
    pub fn restart_adbd(&self, phone: usize) {
        self.server.cut_device(phone);
    }

    /// Ends the adb server, and starts it again after `ms` on the host's clock.
    pub fn restart_server(&self, ms: u64) {
        self.server.restart(ms);
    }

    /// Kills the processes of the first phone with this name, regardless of permissions. Returns
    /// their number.
    pub fn kill(&self, name: &str) -> usize {
        let Some(kernel) = self.phones.first() else {
            return 0;
        };
        let found: Vec<u32> = {
            let state = kernel.state();
            let named = state.processes.iter().filter(|p| p.name() == name);
            named.map(|p| p.pid).collect()
        };
        for pid in &found {
            kernel.signal(&access::Cred::root(), *pid, 9);
        }
        found.len()
    }

    /// Waits until a client ends the server (`host:kill`, if the specification has `killable`).
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
