//! A device: its commands and files, each over its own connection, and its return after a lost
//! cable. Also selects a device of a server. `operation` owns deadlines and the meaning of answers;
//! `wire`, `shell` and `sync` own the framing.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};

use super::command::Command;
use super::error::DeviceError;
use super::list::{DeviceState, ListedDevice};
use super::operation::Operation;
use super::printable::printable;
use super::select::Selector;
use super::server::Server;
use super::shell::{Framing, Marked, Output, Packets, Shell};
use super::sync::{self, RemoteStat};
use super::wire::{Wire, WireError};
use heaptap_base::parallel::lock;

/// Maximum output in bytes; a command that prints more is considered runaway.
const MAX_OUTPUT: usize = 64 << 20;

/// Maximum time to wait for a lost device, wherever that has a limit: while it starts, ends or fetches
/// a recording, and in `provoke` and `run`. Following a recording has none.
pub const RETURN_LIMIT: Duration = Duration::from_secs(120);

/// Pause between two attempts to reach a missing server or device.
const RETRY: Duration = Duration::from_millis(200);

/// Time limit for a device that is listed as ready to run an empty command.
const PING: Duration = Duration::from_secs(5);

/// Pause before each request to connect to a missing device on the network. The first request waits
/// too, because the server reconnects by itself if it can.
const KNOCK: Duration = Duration::from_millis(500);

/// A device. Cheap to clone. Each operation opens its own connection, and dropping the operation's
/// future closes it.
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

struct Inner {
    server: Server,
    serial: String,
    usb: Option<String>,
    route: Mutex<Route>,
    features: OnceCell<Features>,
}

/// Address of the device in requests to the server: its serial, which survives a reconnect, unless
/// two devices share it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Route {
    Serial,
    Transport(u64),
}

/// Features that both the device's adbd and the server support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// Separate stdout and stderr, an exit code, and stdin that can be closed.
    pub shell_v2: bool,
    /// 64-bit sizes and errors in `stat`.
    pub stat_v2: bool,
}

impl Features {
    fn parse(list: &str) -> Self {
        let has = |name| list.split(',').any(|feature| feature.trim() == name);
        Features {
            shell_v2: has("shell_v2"),
            stat_v2: has("stat_v2"),
        }
    }
}

impl Server {
    /// Returns the one device that `selector` matches, if it is ready.
    ///
    /// # Errors
    /// Returns the errors of [`Selector::choose`] and of the connection.
    pub async fn select(&self, selector: &Selector) -> Result<Device, DeviceError> {
        let devices = self.devices().await?;
        let listed = selector.choose(&devices, &self.address())?;
        Ok(self.device(&listed, &devices))
    }

    /// Creates a handle for `listed`, an element of `devices`. The handle uses the serial if it is
    /// unique, otherwise the transport ID. Sends no requests.
    pub fn device(&self, listed: &ListedDevice, devices: &[ListedDevice]) -> Device {
        let same = devices.iter().filter(|d| d.serial == listed.serial).count();
        Device::new(self.clone(), listed, same <= 1)
    }

    /// Creates a handle for a device that is not listed now, to wait for it. Sends no requests.
    pub fn absent(&self, serial: &str) -> Device {
        let listed = ListedDevice::absent(serial);
        Device::new(self.clone(), &listed, true)
    }
}

impl Device {
    /// Creates a handle for `listed`; `unique` if no other device has its serial.
    fn new(server: Server, listed: &ListedDevice, unique: bool) -> Self {
        let route = match listed.transport_id {
            Some(id) if !unique => Route::Transport(id),
            _ => Route::Serial,
        };
        Device {
            inner: Arc::new(Inner {
                server,
                serial: listed.serial.clone(),
                usb: listed.usb.clone(),
                route: Mutex::new(route),
                features: OnceCell::new(),
            }),
        }
    }

    /// Returns the serial number under which the server lists the device.
    pub fn serial(&self) -> &str {
        &self.inner.serial
    }

    /// Returns the server of the device.
    pub fn server(&self) -> &Server {
        &self.inner.server
    }

    /// Returns the features that the device and the server support. They are read once and cached.
    ///
    /// # Errors
    /// Returns the errors of [`Device::run`].
    pub async fn features(&self, deadline: Duration) -> Result<Features, DeviceError> {
        let op = self.op("reading its features");
        op.within_device(deadline, self.ask_features(op)).await
    }

    async fn ask_features(&self, op: Operation<'_>) -> Result<Features, DeviceError> {
        self.inner
            .features
            .get_or_try_init(|| async {
                let mut wire = self.inner.server.open().await?;
                let service = match self.route() {
                    Route::Serial => format!("host-serial:{}:features", self.serial()),
                    Route::Transport(id) => format!("host-transport-id:{id}:features"),
                };
                let list = async {
                    wire.request(&service).await?;
                    wire.text().await
                };
                match list.await {
                    Ok(list) => Ok(Features::parse(&list)),
                    Err(WireError::Fail(text)) => match op.unusable(&text) {
                        Some(error) => Err(error),
                        // A server that predates features might support none of them.
                        None => Ok(Features::default()),
                    },
                    Err(error) => Err(op.error(error)),
                }
            })
            .await
            .copied()
    }

    /// Runs `command` to its end, without stdin.
    ///
    /// # Errors
    /// Returns [`DeviceError::Lost`] if the connection ends before the exit packet, and
    /// [`DeviceError::Deadline`] if the command takes longer than `deadline`.
    pub async fn run(&self, command: &Command, deadline: Duration) -> Result<Output, DeviceError> {
        self.run_with_stdin(command, &[], deadline).await
    }

    /// Runs `command` to its end, and returns what it printed to stdout, whatever its exit code.
    ///
    /// # Errors
    /// Returns the errors of [`Device::run`].
    pub async fn text(&self, command: &Command, deadline: Duration) -> Result<String, DeviceError> {
        let output = self.run(command, deadline).await?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs `command` to its end, writes `stdin` to it and then closes its stdin.
    ///
    /// On devices without `shell_v2` (before Android 7), stderr is part of stdout.
    ///
    /// # Errors
    /// Returns the errors of [`Device::run`].
    pub async fn run_with_stdin(
        &self,
        command: &Command,
        stdin: &[u8],
        deadline: Duration,
    ) -> Result<Output, DeviceError> {
        let what = printable(command.what().as_bytes());
        let op = self.op(&what);
        op.within_device(deadline, async {
            let mut shell = self.start(command, Some(stdin.len()), op).await?;
            shell.finish(stdin, MAX_OUTPUT).await
        })
        .await
    }

    /// Starts `command` and leaves it running; `deadline` limits only the start.
    ///
    /// # Errors
    /// Returns the errors of [`Device::run`].
    pub async fn spawn(&self, command: &Command, deadline: Duration) -> Result<Shell, DeviceError> {
        let what = printable(command.what().as_bytes());
        let op = self.op(&what);
        op.within_device(deadline, self.start(command, None, op))
            .await
    }

    /// Starts `command`. `stdin` is the length of the input, if it is known: without `shell_v2`,
    /// only that length lets the command read the end of its input.
    async fn start(
        &self,
        command: &Command,
        stdin: Option<usize>,
        op: Operation<'_>,
    ) -> Result<Shell, DeviceError> {
        let (service, framing) = if self.ask_features(op).await?.shell_v2 {
            let service = format!("shell,v2,raw:{}", command.text());
            (service, Framing::Packets(Packets::default()))
        } else {
            // The newlines separate the mark from a trailing comment or here-document.
            let mark = format!("heaptap:{:016x}:", fastrand::u64(..));
            let feed = match stdin {
                Some(0) => "</dev/null ".to_owned(),
                Some(length) => format!("head -c {length} | "),
                None => String::new(),
            };
            let body = command.text();
            let service = match stdin {
                Some(0) => format!("exec:(\n{body}\n) {feed}2>&1\necho {mark}$?"),
                _ => format!("exec:{feed}(\n{body}\n) 2>&1\necho {mark}$?"),
            };
            (service, Framing::Marked(Marked::new(&mark)))
        };
        Ok(Shell {
            wire: self.open(&service, op).await?,
            framing,
            serial: self.serial().to_owned(),
            what: op.what.to_owned(),
        })
    }

    /// Runs `stat` on `path` and follows symbolic links; `None` if the path does not exist. Without
    /// `stat_v2` (before Android 8), an inaccessible file counts as missing.
    ///
    /// # Errors
    /// Returns the errors of [`Device::run`], and [`DeviceError::Refused`] if the device denies
    /// access.
    pub async fn stat(
        &self,
        path: &str,
        deadline: Duration,
    ) -> Result<Option<RemoteStat>, DeviceError> {
        let what = format!("stat {}", printable(path.as_bytes()));
        let op = self.op(&what);
        op.within_device(deadline, async {
            let v2 = self.ask_features(op).await?.stat_v2;
            let mut wire = self.open("sync:", op).await?;
            sync::stat(&mut wire, path, v2)
                .await
                .map_err(|e| op.error(e))
        })
        .await
    }

    /// Pulls `path` into `sink`, block by block, and returns the number of received bytes. `sink`
    /// can end the pull with an error (canceled, disk full), which is returned as
    /// [`DeviceError::Sink`]. `stall` is the maximum silence between two blocks. Dropping the
    /// future closes the connection.
    ///
    /// # Errors
    /// Returns [`DeviceError::Lost`] if the stream ends before the device's DONE, and
    /// [`DeviceError::Deadline`] if the device sends nothing for longer than `stall`.
    pub async fn pull(
        &self,
        path: &str,
        sink: &mut (dyn FnMut(&[u8]) -> io::Result<()> + Send),
        stall: Duration,
    ) -> Result<u64, DeviceError> {
        let what = format!("pull {}", printable(path.as_bytes()));
        let op = self.op(&what);
        let mut wire = op.within_device(stall, self.open("sync:", op)).await?;
        sync::pull(&mut wire, op, path, sink, stall).await
    }

    /// Writes `bytes` to `path` on the device with `mode`.
    ///
    /// # Errors
    /// Returns the errors of [`Device::run`], and [`DeviceError::Refused`] if the device denies
    /// access.
    pub async fn push(
        &self,
        bytes: &[u8],
        path: &str,
        mode: u32,
        deadline: Duration,
    ) -> Result<(), DeviceError> {
        let what = format!("push to {}", printable(path.as_bytes()));
        let op = self.op(&what);
        op.within_device(deadline, async {
            let mut wire = self.open("sync:", op).await?;
            sync::push(&mut wire, bytes, path, mode)
                .await
                .map_err(|e| op.error(e))
        })
        .await
    }

    /// Waits until this device is listed as ready and runs a command again. It might be missing
    /// after a pulled cable, a server restart or a disconnected network; for a network device, the
    /// server is requested to reconnect. A missing local server is started again.
    ///
    /// # Errors
    /// Returns the last obstacle if the device does not return in time, such as
    /// [`DeviceError::Gone`], [`DeviceError::NotReady`] or [`DeviceError::Deadline`].
    pub async fn wait_ready(&self, deadline: Duration) -> Result<(), DeviceError> {
        let mut obstacle = None;
        let waiting = async {
            loop {
                match self.follow_until_listed(&mut obstacle).await {
                    // The list might lag behind a cable just pulled: only an answer counts.
                    Ok(()) => match self.run(&Command::program("true"), PING).await {
                        Ok(_) => return,
                        Err(error) => obstacle = Some(error),
                    },
                    Err(error) => obstacle = Some(error),
                }
                sleep(RETRY).await;
                if let Err(error) = self.inner.server.ensure_back().await {
                    obstacle = Some(error);
                }
            }
        };
        if timeout(deadline, waiting).await.is_ok() {
            return Ok(());
        }
        Err(obstacle.unwrap_or_else(|| DeviceError::Deadline {
            serial: self.serial().to_owned(),
            what: "waiting for it to become ready".to_owned(),
            after: deadline,
        }))
    }

    async fn follow_until_listed(
        &self,
        obstacle: &mut Option<DeviceError>,
    ) -> Result<(), DeviceError> {
        let mut tracker = self.inner.server.track().await?;
        let mut absent = false;
        loop {
            let devices = if absent && is_network_serial(self.serial()) {
                match timeout(KNOCK, tracker.next()).await {
                    Ok(devices) => devices?,
                    Err(_) => {
                        // The list shows whether the device reconnected.
                        let _ = self.inner.server.connect_device(self.serial()).await;
                        continue;
                    }
                }
            } else {
                tracker.next().await?
            };
            let listed = self.find_in(&devices);
            absent = listed.is_none();
            match listed {
                Some(listed) if listed.state == DeviceState::Device => {
                    self.adopt(listed);
                    return Ok(());
                }
                Some(listed) => {
                    *obstacle = Some(DeviceError::NotReady {
                        serial: listed.serial.clone(),
                        state: listed.state.clone(),
                    });
                }
                None => {
                    *obstacle = Some(DeviceError::Gone {
                        serial: self.serial().to_owned(),
                        what: "waiting for it to reconnect".to_owned(),
                    });
                }
            }
        }
    }

    /// Finds this device in a list by its serial. If several share the serial, finds the one on its
    /// transport or USB port.
    fn find_in<'a>(&self, devices: &'a [ListedDevice]) -> Option<&'a ListedDevice> {
        let same: Vec<&ListedDevice> = devices
            .iter()
            .filter(|d| d.serial == self.serial())
            .collect();
        match self.route() {
            Route::Serial => same.first().copied(),
            Route::Transport(id) => same
                .iter()
                .find(|d| d.transport_id == Some(id))
                .or_else(|| {
                    same.iter()
                        .find(|d| d.usb.is_some() && d.usb == self.inner.usb)
                })
                .copied(),
        }
    }

    /// Stores the transport ID, which changes when a device reconnects.
    fn adopt(&self, listed: &ListedDevice) {
        let mut route = lock(&self.inner.route);
        if let (Route::Transport(_), Some(id)) = (*route, listed.transport_id) {
            *route = Route::Transport(id);
        }
    }

    fn route(&self) -> Route {
        *lock(&self.inner.route)
    }

    /// Opens a connection to one of the device's services.
    async fn open(&self, service: &str, op: Operation<'_>) -> Result<Wire, DeviceError> {
        let mut wire = self.inner.server.open().await?;
        let transport = match self.route() {
            Route::Serial => format!("host:transport:{}", self.serial()),
            Route::Transport(id) => format!("host:transport-id:{id}"),
        };
        let opened = async {
            wire.request(&transport).await?;
            wire.request(service).await
        };
        match opened.await {
            Ok(()) => Ok(wire),
            Err(error) => Err(op.error(error)),
        }
    }

    /// Opens a connection like [`Device::open`], with a time limit.
    pub(super) async fn open_service(
        &self,
        service: &str,
        deadline: Duration,
    ) -> Result<Wire, DeviceError> {
        let op = self.op(service);
        op.within_device(deadline, self.open(service, op)).await
    }

    fn op<'a>(&'a self, what: &'a str) -> Operation<'a> {
        Operation {
            serial: self.serial(),
            what,
        }
    }
}

/// Returns whether a serial is a network address, as used with `connect`.
fn is_network_serial(serial: &str) -> bool {
    serial
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}
