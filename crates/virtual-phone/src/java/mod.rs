//! The Java heaps of the phone's processes: classes, objects and roots as plain data, computed from
//! the specification's seed and the app's past activity, and the two dump formats. Owns the
//! assignment of heaps to processes. Shares no code with readers of dumps.

mod app;
mod builder;
mod framework;
mod graph;
mod heap;
mod hprof;
mod inputs;
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
pub(crate) use inputs::Inputs;
pub(crate) use life::Life;
pub(crate) use pictures::PictureFormat;
pub(crate) use size::{Model, Sizes};
pub use truth::{JavaDumpKind, JavaDumpTruth, PlantTruth, Retained};

impl Inputs {
    /// Computes the truth about a dump of this heap.
    pub(crate) fn truth(&self, kind: JavaDumpKind, path: &str) -> JavaDumpTruth {
        let (heap, plants) = app::build(self, None);
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
