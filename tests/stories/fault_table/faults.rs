//! The faults of the table, and the way back from each.

use std::io::{Read as _, Write as _};

use virtual_phone::{Answer, Fault as PhoneFault, FaultKind};

use crate::lab::{APP, Lab};

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    CableBack,
    CableOut,
    ServerRestart,
    ServerHangs,
    Reboot,
    Perfetto,
    Traced,
    AppKilled,
    DeviceFull,
    Refused,
    Garbled,
    Nonsense,
    PullCut,
    PullShort,
    PullFlip,
    HostFull,
    NoOutput,
    NoState,
    Interrupt,
    InterruptTwice,
    Terminate,
    HangUp,
    Kill,
    Stdout,
}

use Fault::*;

impl Fault {
    /// All faults, in the order of the page.
    pub const ALL: &'static [Fault] = &[
        CableBack,
        CableOut,
        ServerRestart,
        ServerHangs,
        Reboot,
        Perfetto,
        Traced,
        AppKilled,
        DeviceFull,
        Refused,
        Garbled,
        Nonsense,
        PullCut,
        PullShort,
        PullFlip,
        HostFull,
        NoOutput,
        NoState,
        Interrupt,
        InterruptTwice,
        Terminate,
        HangUp,
        Kill,
        Stdout,
    ];

    /// Name in the command line of the test, and title in the page.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            CableBack => ("cable-back", "The cable is pulled and plugged in again"),
            CableOut => (
                "cable-out",
                "The cable is pulled; after a while you press Ctrl-C twice",
            ),
            ServerRestart => (
                "server-restart",
                "The adb server is killed and started again",
            ),
            ServerHangs => (
                "server-hangs",
                "The adb server hangs; after a while you press Ctrl-C twice",
            ),
            Reboot => ("reboot", "The device restarts"),
            Perfetto => ("perfetto", "perfetto is killed"),
            Traced => ("traced", "traced is killed"),
            AppKilled => ("app-killed", "The app is killed"),
            DeviceFull => ("device-full", "The device's disk is full"),
            Refused => ("refused", "adbd refuses the request"),
            Garbled => ("garbled", "The answer is not of the protocol"),
            Nonsense => ("nonsense", "The output of the command is nonsense"),
            PullCut => ("pull-cut", "Each transfer breaks off"),
            PullShort => ("pull-short", "Each transfer ends early"),
            PullFlip => ("pull-flip", "Each transfer has a wrong byte"),
            HostFull => ("host-full", "The host's disk is full"),
            NoOutput => ("no-output", "The output directory is replaced by a file"),
            NoState => ("no-state", "The state directory cannot be written"),
            Interrupt => ("int", "Ctrl-C"),
            InterruptTwice => ("int-twice", "Ctrl-C twice"),
            Terminate => ("term", "TERM"),
            HangUp => ("hup", "The terminal is closed (HUP)"),
            Kill => ("kill", "kill -9"),
            Stdout => ("stdout", "The reader of stdout ends"),
        }
    }

    /// Whether the fault lasts until you do something.
    pub fn lasts(self) -> bool {
        matches!(self, CableOut | ServerHangs)
    }

    /// Whether it ends a recording.
    pub fn ends_recording(self) -> bool {
        matches!(self, Reboot | Perfetto | Traced | DeviceFull)
    }

    /// Whether this is a request of yours, after which no other one follows.
    pub fn is_signal(self) -> bool {
        matches!(self, Interrupt | InterruptTwice | Terminate | HangUp | Kill)
    }

    /// Signals that it sends to heaptap.
    pub fn signals(self) -> &'static [&'static str] {
        match self {
            Interrupt => &["INT"],
            InterruptTwice => &["INT", "INT"],
            Terminate => &["TERM"],
            HangUp => &["HUP"],
            Kill => &["KILL"],
            _ => &[],
        }
    }

    /// Does it to the phone; returns the answer to the stopped request.
    pub fn strike_phone(self, lab: &Lab) -> Answer {
        let phone = &lab.phone;
        let arm = |fault: &str| phone.faults().add(PhoneFault::parse(fault).unwrap());
        match self {
            CableBack => {
                phone.unplug(0);
                phone.plug_in(0);
                Answer::Close
            }
            CableOut => {
                phone.unplug(0);
                Answer::Close
            }
            ServerRestart => {
                phone.restart_server(200);
                Answer::Close
            }
            ServerHangs => {
                arm("hang");
                phone.restart_adbd(0);
                Answer::Silence
            }
            Reboot => {
                phone.reboot(0);
                Answer::Close
            }
            Perfetto => {
                phone.kill("perfetto");
                Answer::Serve
            }
            Traced => {
                phone.kill("/system/bin/traced");
                Answer::Serve
            }
            AppKilled => {
                phone.kill(APP);
                Answer::Serve
            }
            DeviceFull => {
                arm("disk-full");
                Answer::Serve
            }
            Refused => Answer::Refuse,
            Garbled => Answer::Garble,
            Nonsense => Answer::Nonsense,
            PullCut | PullShort | PullFlip => {
                arm(self.names().0);
                Answer::Serve
            }
            _ => Answer::Serve,
        }
    }

    /// Ends it, so that a later command meets a sound phone and host.
    pub fn end(self, lab: &Lab) {
        let faults = lab.phone.faults();
        match self {
            CableOut => lab.phone.plug_in(0),
            // A command that ended quickly finds no server yet.
            ServerRestart => lab.until("the adb server is back", has_server),
            ServerHangs => faults.remove(FaultKind::Hang),
            DeviceFull => faults.remove(FaultKind::DiskFull),
            PullCut => faults.remove(FaultKind::PullCut),
            PullShort => faults.remove(FaultKind::PullShort),
            PullFlip => faults.remove(FaultKind::PullFlip),
            NoState => {
                let state = lab.dir.path().join("state");
                if lab.dir.path().join("state.away").exists() {
                    std::fs::remove_file(&state).unwrap();
                    std::fs::rename(lab.dir.path().join("state.away"), state).unwrap();
                }
            }
            _ => {}
        }
    }

    /// Does it to the host.
    pub fn strike_host(self, lab: &Lab, pid: u32) {
        let out = lab.work().join("out");
        let state = lab.dir.path().join("state");
        match self {
            HostFull => limit_files(pid, 0),
            NoOutput => {
                let _ = std::fs::remove_dir_all(&out);
                std::fs::write(&out, b"in the way").unwrap();
            }
            NoState if state.exists() => {
                std::fs::rename(&state, lab.dir.path().join("state.away")).unwrap();
                std::fs::write(&state, b"in the way").unwrap();
            }
            _ => {}
        }
    }
}

/// Whether the adb server answers.
fn has_server(lab: &Lab) -> bool {
    let mut answer = [0; 4];
    let asked = std::net::TcpStream::connect(lab.phone.addr()).and_then(|mut stream| {
        stream.write_all(b"000chost:version")?;
        stream.read_exact(&mut answer)
    });
    asked.is_ok() && &answer == b"OKAY"
}

/// Lets no file of a process grow beyond a size.
#[cfg(target_os = "linux")]
pub fn limit_files(pid: u32, bytes: u64) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let limit = Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    prlimit(pid, Resource::Fsize, limit).expect("a limit for our own child");
}

#[cfg(not(target_os = "linux"))]
pub fn limit_files(_pid: u32, _bytes: u64) {
    panic!("the size of files is limited on Linux only");
}
