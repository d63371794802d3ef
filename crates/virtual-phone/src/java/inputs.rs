//! All inputs that determine a heap.

use super::life::Life;
use crate::clock::BootNs;
use crate::packages::{APP, Package};
use crate::process::{Pid, Process, Processes, Role as ProcessRole};
use crate::spec::PhoneSpec;

/// Kind of process that a heap belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// `com.example.app`.
    Example,
    /// `com.example.app:service`.
    Service,
    /// Any other app.
    Other,
    System,
}

/// All inputs that determine a heap.
#[derive(Debug, Clone)]
pub(crate) struct Inputs {
    pub(super) android: u32,
    pub(super) sdk: u32,
    pub(super) model: &'static str,
    pub(super) obfuscated: bool,
    pub(super) role: Role,
    pub(crate) pid: Pid,
    pub(crate) uid: u32,
    pub(crate) process: String,
    pub(crate) package: String,
    pub(super) version: u64,
    pub(super) apk: String,
    pub(super) has_activity: bool,
    /// PID, UID and name of every running app, which system_server holds.
    pub(super) neighbours: Vec<(Pid, u32, String)>,
    /// Number of background objects besides the app's own ones.
    pub(super) background: u32,
    pub(super) life: Life,
    /// Time on the boot clock.
    pub(crate) moment: BootNs,
}

impl Inputs {
    /// Returns the inputs of the heap of `process` at `moment`; `None` if it has no Java heap.
    pub(crate) fn new(
        spec: &PhoneSpec,
        (packages, processes): (&[Package], &Processes),
        process: &Process,
        life: Life,
        moment: BootNs,
    ) -> Option<Inputs> {
        let (role, package) = match process.app() {
            Some((APP, _)) if process.name() == APP => (Role::Example, APP),
            Some((APP, _)) => (Role::Service, APP),
            Some((package, _)) => (Role::Other, package),
            None if process.role == ProcessRole::SystemServer => (Role::System, "android"),
            None => return None,
        };
        let installed = packages.iter().find(|p| p.name == package)?;
        let background = match role {
            Role::Example => spec.java,
            _ => spec.java / 4,
        };
        let apps = processes.iter().filter(|p| p.app().is_some());
        Some(Inputs {
            android: spec.android,
            sdk: spec.sdk(),
            model: spec.release().model,
            obfuscated: spec.obfuscated,
            role,
            pid: process.pid,
            uid: process.uid,
            process: process.name().to_owned(),
            version: installed.version,
            apk: installed.apk(),
            has_activity: installed.activity.is_some(),
            neighbours: apps.map(|p| (p.pid, p.uid, p.name().to_owned())).collect(),
            package: package.to_owned(),
            background,
            life,
            moment,
        })
    }

    /// Returns the inputs of `com.example.app` with few other objects.
    #[cfg(test)]
    pub(super) fn for_tests(android: u32, obfuscated: bool) -> Inputs {
        Inputs {
            android,
            sdk: 34,
            model: "Pixel",
            obfuscated,
            role: Role::Example,
            pid: 6_201,
            uid: 10_234,
            process: APP.to_owned(),
            package: APP.to_owned(),
            version: 42,
            apk: "/data/app/base.apk".to_owned(),
            has_activity: true,
            neighbours: Vec::new(),
            background: 300,
            life: Life {
                listeners: 1,
                thumbnails: 1,
                garbage: 0,
                destroyed: 0,
            },
            moment: 0,
        }
    }

    /// Returns the inputs after a requested collection.
    pub(crate) fn collected(self) -> Inputs {
        Inputs {
            life: self.life.collected(),
            ..self
        }
    }
}
