//! Context of every command: the console, the global flags, and the device on demand.

#[cfg(feature = "virtual-phone")]
use std::sync::OnceLock;

use std::time::Duration;

use serde_json::json;
use tokio::sync::{OnceCell, mpsc};
use tokio::time::Instant;

use super::globals::Globals;
use super::typed::TypedOptions;
#[cfg(feature = "virtual-phone")]
use super::virtual_phone;
use crate::console::Console;
use crate::console::flags::conflicts::conflict;
use crate::console::signals::Signal;
use crate::recording::advice::{advises_collect, remove_collect};
use crate::recording::sessions::Scope;
#[cfg(feature = "virtual-phone")]
use ::virtual_phone::VirtualPhone;
use heaptap_adb::{Address, Device, DeviceError, DeviceState, Selector, Server};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::units::HumanDuration;
use heaptap_capture::session::CaptureError;

/// Advice for a virtual phone that outlives a command.
const LASTING_PHONE: &str = "run `heaptap virtual-phone --port 5038` in another terminal, and \
                             record with --adb-server 127.0.0.1:5038";

/// Interval for looking whether a device has appeared.
const DEVICE_LOOK: Duration = Duration::from_millis(500);
/// Kinds of errors that pass once the device, or a tunnel to its adb server, is there.
const APPEARS: [&str; 8] = [
    "no-device",
    "device-not-found",
    "device-offline",
    "device-unauthorized",
    "device-authorizing",
    "device-connecting",
    "no-adb-server",
    "adb-server-lost",
];

/// Context of every command.
pub struct Context {
    /// Output.
    pub console: Console,
    /// The global flags.
    pub globals: Globals,
    /// The typed options of the command.
    pub typed: TypedOptions,
    #[cfg(feature = "virtual-phone")]
    phone: OnceLock<VirtualPhone>,
    server: OnceCell<Server>,
    device: OnceCell<Device>,
}

impl Context {
    /// Stores the flags; does not connect yet.
    pub fn new(console: Console, globals: Globals, typed: TypedOptions) -> Self {
        Context {
            console,
            globals,
            typed,
            #[cfg(feature = "virtual-phone")]
            phone: OnceLock::new(),
            server: OnceCell::new(),
            device: OnceCell::new(),
        }
    }

    /// Returns a context whose console leaves stdout to a program that heaptap runs; without a
    /// device.
    pub fn beside_program(&self) -> Context {
        Context::new(
            self.console.beside_program(),
            self.globals.clone(),
            self.typed.clone(),
        )
    }

    /// Returns the selected adb server, found or started on first use; with `--virtual`, that of a
    /// virtual phone in this process, reached over loopback like any other.
    ///
    /// # Errors
    /// Returns an error if there is no server.
    pub async fn server(&self) -> Result<&Server, Failure> {
        self.server
            .get_or_try_init(|| async {
                #[cfg(feature = "virtual-phone")]
                if let Some(spec) = &self.globals.virtual_phone {
                    return self.virtual_server(spec);
                }
                let server = Server::locate(self.globals.adb_server.as_deref()).await?;
                if server.was_started() {
                    self.console.say(format_args!(
                        "started an adb server at {}",
                        server.address()
                    ));
                }
                Ok(server)
            })
            .await
    }

    /// Returns the servers of `--adb-server`, which can be several with commas. Of several, those
    /// that cannot be reached are there, too: requests to them fail.
    ///
    /// # Errors
    /// Returns an error if an address is invalid, or if the only server cannot be reached.
    pub async fn servers(&self) -> Result<Vec<Server>, Failure> {
        let flag = self.globals.adb_server.as_deref();
        let Some(several) = flag.filter(|flag| flag.contains(',')) else {
            return Ok(vec![self.server().await?.clone()]);
        };
        let mut servers: Vec<Server> = Vec::new();
        for address in several.split(',') {
            let flag = address.trim();
            let address = Address::parse(flag, "--adb-server")?;
            let located = Server::locate(Some(flag)).await;
            let server = located.unwrap_or_else(|_| Server::at(address));
            if servers
                .iter()
                .all(|known| known.address() != server.address())
            {
                servers.push(server);
            }
        }
        Ok(servers)
    }

    /// Returns the device selector of the flags.
    pub fn selector(&self) -> Selector {
        let flag = self.globals.serial.as_deref();
        match &self.globals.virtual_phone {
            // ANDROID_SERIAL selects a real device.
            Some(_) if flag.is_none() => Selector::Only,
            _ => Selector::from_flag_or_env(flag),
        }
    }

    /// Refuses a detached recording on a virtual phone that ends with this process.
    ///
    /// # Errors
    /// Returns an error if `detach` is combined with `--virtual`.
    pub fn check_detach(&self, detach: bool) -> Result<(), Failure> {
        if !detach || self.globals.virtual_phone.is_none() {
            return Ok(());
        }
        let message = "--virtual and --detach exclude each other: the virtual phone ends with this \
                       command, and the recording with it";
        let help = format!("leave out --detach; or {LASTING_PHONE}");
        Err(conflict(message, help))
    }

    /// Removes the advice to fetch a recording from a phone that no longer exists.
    pub(crate) fn without_collect(&self, mut failure: Failure) -> Failure {
        if self.globals.virtual_phone.is_none() || !advises_collect(&failure) {
            return failure;
        }
        remove_collect(&mut failure);
        // Fetched data remain.
        let is_lost = failure.class == ErrorClass::NotFetched || failure.hints.is_empty();
        if failure.class == ErrorClass::NotFetched {
            failure.class = ErrorClass::Device;
            failure.kind = "trace-gone";
        }
        let what = match is_lost {
            true => ", and the recording with it",
            false => "",
        };
        let gone = gone_phone(what);
        match failure.help {
            None => failure.help = Some(gone),
            Some(_) => failure.hints.push(gone),
        }
        failure
    }

    /// Returns advice about a phone that ends with this command; `None` for others.
    pub(crate) fn gone_phone(&self) -> Option<String> {
        let is_virtual = self.globals.virtual_phone.is_some();
        is_virtual.then(|| gone_phone(", and what was left on it"))
    }

    /// Returns the device as given by the flags and adb's variables, for selecting a session.
    ///
    /// # Errors
    /// Returns an error if they are invalid, or select a missing device other than by serial.
    pub async fn scope(&self) -> Result<Scope, Failure> {
        if self.globals.virtual_phone.is_some() {
            let address = self.server().await?.address();
            return Ok(Scope {
                server: Some(Address::parse(&address, "--virtual")?),
                serial: None,
            });
        }
        Ok(Scope {
            server: Server::named(self.globals.adb_server.as_deref())?,
            serial: match self.selector() {
                Selector::Only => None,
                Selector::Serial(serial) => Some(serial),
                _ => Some(self.device().await?.serial().to_owned()),
            },
        })
    }

    /// Starts the virtual phone of `--virtual`; it ends with this context.
    #[cfg(feature = "virtual-phone")]
    fn virtual_server(&self, spec: &str) -> Result<Server, Failure> {
        let phone = VirtualPhone::start(virtual_phone::parse(spec)?).map_err(|error| {
            Failure::new(
                ErrorClass::NoDevice,
                "virtual-phone",
                format!("the virtual phone could not be started: {error}"),
            )
            .with_help("it listens on a free port of 127.0.0.1: does a firewall forbid that?")
        })?;
        let address = Address::new(phone.addr().ip().to_string(), phone.addr().port());
        // The cell is empty: the server's cell lets this run once.
        let _ = self.phone.set(phone);
        Ok(Server::over(heaptap_adb::Tcp(address)))
    }

    /// Returns the selected device, chosen on first use.
    ///
    /// # Errors
    /// Returns an error if there is no device, no adb server, or no unique choice, or if the device
    /// is unauthorized or offline.
    pub async fn device(&self) -> Result<&Device, Failure> {
        self.device
            .get_or_try_init(|| async {
                let server = self.server().await?;
                let selector = self.selector();
                let listed = server.devices().await?;
                let chosen = selector.choose(&listed, &server.address());
                let chosen = chosen.map_err(with_doctor)?;
                let others = selector.fitting(&listed).into_iter();
                for other in others.filter(|other| other.state == DeviceState::Offline) {
                    let (serial, offline) = (&chosen.serial, &other.serial);
                    self.console
                        .note(format_args!("{offline} is offline; using {serial}"));
                }
                Ok::<_, Failure>(server.device(&chosen, &listed))
            })
            .await
    }

    /// As [`Context::device`], but an interrupt while waiting for it is an error.
    ///
    /// # Errors
    /// As [`Context::device`]; also if the user interrupts.
    pub(crate) async fn device_or_interrupt(
        &self,
        signals: &mut mpsc::UnboundedReceiver<Signal>,
    ) -> Result<&Device, Failure> {
        tokio::select! {
            device = self.device() => device,
            _ = signals.recv() => Err(CaptureError::interrupted().into()),
        }
    }

    /// As [`Context::device_or_interrupt`], but waits so long for the device to appear.
    ///
    /// # Errors
    /// Returns the last error if it does not.
    pub(crate) async fn device_within(
        &self,
        limit: Duration,
        signals: &mut mpsc::UnboundedReceiver<Signal>,
    ) -> Result<&Device, Failure> {
        let deadline = Instant::now() + limit;
        let mut is_told = false;
        loop {
            let failure = match self.device_or_interrupt(signals).await {
                Err(failure) if APPEARS.contains(&failure.kind) => failure,
                other => return other,
            };
            let now = Instant::now();
            if now >= deadline {
                return Err(failure);
            }
            if !std::mem::replace(&mut is_told, true) {
                let limit = HumanDuration(limit);
                self.console
                    .say(format_args!("waiting up to {limit} for the device …"));
                self.console
                    .event(&json!({ "event": "waiting-for-device" }));
            }
            tokio::select! {
                () = tokio::time::sleep(DEVICE_LOOK.min(deadline - now)) => {}
                _ = signals.recv() => return Err(CaptureError::interrupted().into()),
            }
        }
    }

    /// Returns the selected device if there is one, for commands that also work without it. They do
    /// not start an adb server, unless `--serial` requests a device.
    pub async fn device_at_hand(&self) -> Option<&Device> {
        match self.has_server().await {
            true => self.device().await.ok(),
            false => None,
        }
    }

    /// As [`Context::device_at_hand`], but all devices that are ready if none is selected.
    ///
    /// # Errors
    /// Returns an error if the server does not answer as an adb server does, or if none runs at an
    /// address that a flag or a variable names.
    pub async fn devices_at_hand(&self) -> Result<Vec<Device>, Failure> {
        if !self.has_server().await {
            let named = Server::named(self.globals.adb_server.as_deref())?;
            if let Some(address) = named {
                Server::at(address).version().await?;
            }
            return Ok(Vec::new());
        }
        let server = self.server().await?;
        let listed = server.devices().await?;
        if self.selector() != Selector::Only {
            return Ok(self.device().await.ok().cloned().into_iter().collect());
        }
        let ready = listed.iter().filter(|d| d.state == DeviceState::Device);
        Ok(ready.map(|device| server.device(device, &listed)).collect())
    }

    /// Returns the address of the selected adb server, for messages.
    pub fn server_address(&self) -> String {
        if let Some(server) = self.server.get() {
            return server.address();
        }
        let named = Server::named(self.globals.adb_server.as_deref())
            .ok()
            .flatten();
        named.unwrap_or_else(Address::local).to_string()
    }

    /// Returns whether a server runs, or may be started for the requested device.
    async fn has_server(&self) -> bool {
        let globals = &self.globals;
        if globals.virtual_phone.is_some() || globals.serial.is_some() {
            return true;
        }
        match Server::named(globals.adb_server.as_deref()) {
            Ok(address) => {
                let server = Server::at(address.unwrap_or_else(Address::local));
                server.is_running().await
            }
            Err(_) => false,
        }
    }
}

fn gone_phone(what: &str) -> String {
    format!("the virtual phone ended with this command{what}; to keep one, {LASTING_PHONE}")
}

/// The failure of a choice of a device; where none is connected, its help names `doctor`, too.
fn with_doctor(error: DeviceError) -> Failure {
    let is_missing = matches!(error, DeviceError::NoDevice { .. });
    let mut failure = Failure::from(error);
    if let Some(help) = failure.help.as_mut().filter(|_| is_missing) {
        help.push_str("; for more checks, run `heaptap doctor`");
    }
    failure
}
