//! One phone: its commands and files through connections of their own, and its way back after
//! a lost cable; and the step from a server to one of its phones. Deadlines and what an answer
//! means are `operation`'s; the framing is `wire`'s, `shell`'s and `sync`'s.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};

use super::Output;
use super::command::Command;
use super::error::DeviceError;
use super::list::{DeviceState, ListedDevice};
use super::operation::Operation;
use super::printable::printable;
use super::select::Selector;
use super::server::Server;
use super::shell::{Framing, Marked, Packets, Shell};
use super::sync::{self, RemoteStat};
use super::wire::{Wire, WireError};

/// More output than this is no answer but a runaway command.
const MAX_OUTPUT: usize = 64 << 20;

/// Pause between two attempts to reach a server or device that is away.
const RETRY: Duration = Duration::from_millis(200);

/// How long a phone that is listed as ready may take to run nothing at all.
const PING: Duration = Duration::from_secs(5);

/// Pause between two requests to connect to a phone on the network that is away. The first
/// comes after it too: the server reconnects by itself where it can.
const KNOCK: Duration = Duration::from_millis(500);

/// A phone. Cheap to clone; each operation opens a connection of its own, and dropping the
/// operation's future closes it.
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

/// How the server is told which phone is meant: by serial, which outlives a replug, unless two
/// phones share it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Route {
    Serial,
    Transport(u64),
}

/// What the phone's adbd and the server both know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// Separate stdout, stderr, exit code; stdin that can be closed.
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
    /// The one device that `selector` means, if it is ready.
    ///
    /// # Errors
    /// As [`Selector::choose`]; errors of the connection.
    pub async fn select(&self, selector: &Selector) -> Result<Device, DeviceError> {
        let devices = self.devices().await?;
        let listed = selector.choose(&devices, &self.address())?;
        Ok(self.device(&listed, &devices))
    }

    /// A handle on `listed`, which stands in `devices`; reached by its serial where that is
    /// unique, else by its transport id. Asks nobody.
    pub fn device(&self, listed: &ListedDevice, devices: &[ListedDevice]) -> Device {
        let same = devices.iter().filter(|d| d.serial == listed.serial).count();
        Device::new(self.clone(), listed, same <= 1)
    }
}

impl Device {
    /// The device that `listed` names; `unique` where no other has its serial.
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

    /// The serial number by which the server knows it.
    pub fn serial(&self) -> &str {
        &self.inner.serial
    }

    /// The server behind which it is.
    pub fn server(&self) -> &Server {
        &self.inner.server
    }

    /// What the phone and the server can do. Asked once; later calls cost nothing.
    ///
    /// # Errors
    /// As [`Device::run`].
    pub async fn features(&self, deadline: Duration) -> Result<Features, DeviceError> {
        let op = self.op("the list of features");
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
                        // A server from before features: nothing can be relied on.
                        None => Ok(Features::default()),
                    },
                    Err(error) => Err(op.error(error)),
                }
            })
            .await
            .copied()
    }

    /// Runs `command` to its end, with no stdin.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] where the connection ends before the exit packet,
    /// [`DeviceError::Deadline`] where it takes longer than `deadline`.
    pub async fn run(&self, command: &Command, deadline: Duration) -> Result<Output, DeviceError> {
        self.run_with_stdin(command, &[], deadline).await
    }

    /// Runs `command` to its end, feeding it `stdin` and then closing it.
    ///
    /// On phones without `shell_v2` (before Android 7) stderr arrives in stdout.
    ///
    /// # Errors
    /// As [`Device::run`].
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

    /// Starts `command` and leaves it running; `deadline` is for the start alone.
    ///
    /// # Errors
    /// As [`Device::run`].
    pub async fn spawn(&self, command: &Command, deadline: Duration) -> Result<Shell, DeviceError> {
        let what = printable(command.what().as_bytes());
        let op = self.op(&what);
        op.within_device(deadline, self.start(command, None, op))
            .await
    }

    /// `stdin` is its length where it is known beforehand: without `shell_v2` that is the only
    /// way to let the command see its end.
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
            // The newlines keep a trailing comment or here-document from taking in the mark.
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

    /// What is at `path`, links followed; `None` where nothing is (other errors are errors).
    /// Without `stat_v2` (before Android 8) a file that may not be seen counts as absent.
    ///
    /// # Errors
    /// As [`Device::run`]; [`DeviceError::Refused`] where the phone forbids it.
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

    /// Pulls `path` into `sink`, block by block; returns the bytes received. `sink` may end
    /// the pull with an error (cancel, disk full), which comes back as [`DeviceError::Sink`].
    /// `stall` is the longest silence allowed between two blocks. Dropping the future closes
    /// the connection.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] where the stream ends before the phone's DONE;
    /// [`DeviceError::Deadline`] where it is silent for longer than `stall`.
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

    /// Writes `bytes` to `path` on the phone with `mode`.
    ///
    /// # Errors
    /// As [`Device::run`]; [`DeviceError::Refused`] where the phone forbids it.
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

    /// Waits until this device is listed as ready and runs a command again (after a pulled
    /// cable, a restarted server, a disconnected network device, which it asks the server to
    /// connect again). A local server that is gone is started again.
    ///
    /// # Errors
    /// Where it does not come back in time: what stood in its way last, such as
    /// [`DeviceError::Gone`], [`DeviceError::NotReady`] or [`DeviceError::Deadline`].
    pub async fn wait_ready(&self, deadline: Duration) -> Result<(), DeviceError> {
        let mut obstacle = None;
        let waiting = async {
            loop {
                match self.follow_until_listed(&mut obstacle).await {
                    // The list may lag behind a cable just pulled: only an answer counts.
                    Ok(()) => match self.run(&Command::program("true"), PING).await {
                        Ok(_) => return,
                        Err(error) => obstacle = Some(error),
                    },
                    Err(error) => obstacle = Some(error),
                }
                sleep(RETRY).await;
                if let Err(error) = self.inner.server.ensure_running().await {
                    obstacle = Some(error);
                }
            }
        };
        if timeout(deadline, waiting).await.is_ok() {
            return Ok(());
        }
        Err(obstacle.unwrap_or_else(|| DeviceError::Deadline {
            serial: self.serial().to_owned(),
            what: "becoming ready".to_owned(),
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
                        // Whether it worked, the list will say.
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
                        what: "waiting for it to come back".to_owned(),
                    });
                }
            }
        }
    }

    /// This device in a list: the one with its serial; of several, the one on its transport,
    /// or on its USB port.
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

    /// A device that came back has a new transport id.
    fn adopt(&self, listed: &ListedDevice) {
        let mut route = self
            .inner
            .route
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let (Route::Transport(_), Some(id)) = (*route, listed.transport_id) {
            *route = Route::Transport(id);
        }
    }

    fn route(&self) -> Route {
        *self
            .inner
            .route
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection to one of the phone's services.
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

    /// As [`Device::open`], with a limit.
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

/// Whether a serial is the address of a device that `connect` was used for.
fn is_network_serial(serial: &str) -> bool {
    serial
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}
