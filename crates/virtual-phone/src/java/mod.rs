//! The Java heaps of the phone's processes: classes, objects and roots as plain data, computed from
//! the specification's seed and the app's past activity, and the two dump formats. Owns the
//! assignment of heaps to processes. Shares no code with readers of dumps.

mod app;
mod builder;
mod framework;
mod graph;
mod heap;
mod hprof;
mod life;
mod native;
mod pictures;
mod screens;
mod size;
mod structures;
mod tables;
mod truth;

pub(crate) use graph::messages;
pub(crate) use hprof::file as hprof_file;
pub(crate) use life::Life;
pub(crate) use pictures::PictureFormat;
pub(crate) use size::{Model, Sizes};
pub use truth::{JavaDumpKind, JavaDumpTruth, PlantTruth, Retained};

use self::framework::Skeleton;
use self::heap::JavaHeap;
use self::truth::Plant;
use super::clock::BootNs;
use super::packages::{APP, Package};
use super::process::{Pid, Process, Processes, Role as ProcessRole};
use super::spec::PhoneSpec;

/// Kind of process that a heap belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
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
    android: u32,
    sdk: u32,
    model: &'static str,
    obfuscated: bool,
    role: Role,
    pub(crate) pid: Pid,
    pub(crate) uid: u32,
    pub(crate) process: String,
    pub(crate) package: String,
    version: u64,
    apk: String,
    has_activity: bool,
    /// PID, UID and name of every running app, which system_server holds.
    neighbours: Vec<(Pid, u32, String)>,
    /// Number of background objects besides the app's own ones.
    background: u32,
    life: Life,
    /// Time on the boot clock.
    pub(crate) moment: BootNs,
}

impl Inputs {
    /// Returns the inputs of the heap of `process` at `moment`; `None` if it has no Java heap.
    pub(crate) fn of(
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
    fn for_tests(android: u32, obfuscated: bool) -> Inputs {
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

    /// Computes the truth about a dump of this heap.
    pub(crate) fn truth(&self, kind: JavaDumpKind, path: &str) -> JavaDumpTruth {
        let (heap, plants) = build(self, None);
        let measured = heap.truth(&plants, kind);
        JavaDumpTruth {
            kind,
            pid: self.pid,
            process: self.process.clone(),
            boot_ns: self.moment,
            path: path.to_owned(),
            objects: measured.all.objects,
            shallow_bytes: measured.all.bytes,
            reachable_objects: measured.reachable.objects,
            reachable_bytes: measured.reachable.bytes,
            native_bytes: measured.all.native_bytes,
            planted: measured.planted,
        }
    }
}

/// Fills a heap; with pictures of its bitmaps if the dump has them.
fn build(inputs: &Inputs, pictures: Option<PictureFormat>) -> (JavaHeap, Vec<Plant>) {
    let mut skeleton = Skeleton::new(inputs);
    let mut plants = Vec::new();
    match inputs.role {
        Role::Example => plants = app::example(&mut skeleton),
        Role::Service => app::service(&mut skeleton),
        Role::Other => app::other(&mut skeleton),
        Role::System => app::system_server(&mut skeleton),
    }
    app::background(&mut skeleton);
    if let Some(format) = pictures {
        skeleton.draw_bitmaps(format);
    }
    skeleton.complete();
    (skeleton.b.finish(), plants)
}
