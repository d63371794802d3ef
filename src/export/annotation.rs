//! How a frame's code was run, shown behind its name: ` [interp]`, ` [jit]`, ` [aot]`, and
//! ` [common-frame]` for the runtime's own frames between managed ones. The rules are those of
//! Perfetto's converter, so that profiles of both compare.

use crate::names::basename;
use crate::profile::{Frame, Recording};

/// What is put behind a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum Annotation {
    /// Nothing.
    #[default]
    None,
    /// Interpreted Java.
    Interp,
    /// Java compiled just in time.
    Jit,
    /// Java compiled ahead of time.
    Aot,
    /// A frame of the runtime below a managed one.
    CommonFrame,
    /// A frame of the runtime's interpreter below a managed one.
    CommonFrameInterp,
}

impl Annotation {
    /// The suffix, with its leading space; empty for none.
    pub fn suffix(self) -> &'static str {
        match self {
            Annotation::None => "",
            Annotation::Interp => " [interp]",
            Annotation::Jit => " [jit]",
            Annotation::Aot => " [aot]",
            Annotation::CommonFrame => " [common-frame]",
            Annotation::CommonFrameInterp => " [common-frame-interp]",
        }
    }
}

/// What a frame is, looked at alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameClass {
    Plain,
    Managed(Annotation),
    Runtime { interpreter: bool },
    Trampoline,
}

/// Name of the stub between Java and JNI code.
const TRAMPOLINE: &str = "art_jni_trampoline";
const INTERPRETER: [&str; 5] = [
    "nterp_",
    "Nterp",
    "ExecuteNterp",
    "ExecuteSwitchImpl",
    "_ZN3art11interpreter",
];

/// Classes of all frames of a recording; empty if none would be annotated.
pub(super) fn classify(recording: &Recording) -> Vec<FrameClass> {
    let tables = &recording.tables;
    let kinds: Vec<MappingClass> = tables
        .mappings()
        .iter()
        .map(|mapping| MappingClass::of(tables.string(mapping.path)))
        .collect();
    if !kinds
        .iter()
        .any(|kind| matches!(kind, MappingClass::Managed(_)))
    {
        return Vec::new();
    }
    let class = |frame: &Frame| {
        let name = tables.string(frame.name);
        let kind = frame
            .mapping
            .map_or(MappingClass::Other, |id| kinds[id.0 as usize]);
        match kind {
            MappingClass::Managed(annotation) => FrameClass::Managed(annotation),
            MappingClass::Runtime if name == TRAMPOLINE => FrameClass::Trampoline,
            MappingClass::Runtime => FrameClass::Runtime {
                interpreter: INTERPRETER.iter().any(|start| name.starts_with(start)),
            },
            MappingClass::Other => FrameClass::Plain,
        }
    };
    tables.frames().iter().map(class).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MappingClass {
    Managed(Annotation),
    Runtime,
    Other,
}

impl MappingClass {
    fn of(path: &str) -> MappingClass {
        if path.starts_with("/memfd:jit-cache") || path.starts_with("/memfd:jit-zygote-cache") {
            return MappingClass::Managed(Annotation::Jit);
        }
        if matches!(basename(path), "libart.so" | "libartd.so") {
            return MappingClass::Runtime;
        }
        // Only the start of the extension counts: in-memory dex files end in ".apk]" and more.
        let extension = path.rfind('.').map_or("", |at| &path[at..]);
        let starts = |known: &[&str]| known.iter().any(|start| extension.starts_with(start));
        if starts(&[".oat", ".odex"]) {
            MappingClass::Managed(Annotation::Aot)
        } else if starts(&[".dex", ".vdex", ".jar", ".apk"]) {
            MappingClass::Managed(Annotation::Interp)
        } else {
            MappingClass::Other
        }
    }
}

/// Walks a callstack from root to leaf and says how each frame is annotated.
#[derive(Debug, Default)]
pub(super) struct Walk {
    below_managed: bool,
    below_trampoline: bool,
}

impl Walk {
    pub(super) fn step(&mut self, class: FrameClass) -> Annotation {
        let callee_of_trampoline = std::mem::take(&mut self.below_trampoline);
        match class {
            FrameClass::Managed(annotation) => {
                self.below_managed = true;
                annotation
            }
            FrameClass::Trampoline if self.below_managed => {
                self.below_trampoline = true;
                Annotation::CommonFrame
            }
            FrameClass::Runtime { interpreter } if self.below_managed && !callee_of_trampoline => {
                if interpreter {
                    Annotation::CommonFrameInterp
                } else {
                    Annotation::CommonFrame
                }
            }
            _ => Annotation::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_told_by_their_extension() {
        use Annotation::*;
        for (path, class) in [
            ("/data/app/x/base.apk", MappingClass::Managed(Interp)),
            (
                "/[anon:dalvik-classes.dex extracted in memory from /data/app/x/base.apk]",
                MappingClass::Managed(Interp),
            ),
            ("/system/framework/oat/boot.oat", MappingClass::Managed(Aot)),
            ("/data/app/x/base.odex", MappingClass::Managed(Aot)),
            ("/data/app/x/base.vdex", MappingClass::Managed(Interp)),
            ("/memfd:jit-cache (deleted)", MappingClass::Managed(Jit)),
            (
                "/apex/com.android.art/lib64/libart.so",
                MappingClass::Runtime,
            ),
            ("/system/lib64/libc.so", MappingClass::Other),
            ("", MappingClass::Other),
        ] {
            assert_eq!(MappingClass::of(path), class, "{path}");
        }
    }

    #[test]
    fn runtime_frames_are_common_below_managed_ones_only() {
        use Annotation::*;
        use FrameClass::*;
        let runtime = Runtime { interpreter: false };
        let mut walk = Walk::default();
        let found: Vec<Annotation> = [
            runtime,
            Managed(Interp),
            runtime,
            Runtime { interpreter: true },
            Trampoline,
            runtime,
            runtime,
            Plain,
        ]
        .into_iter()
        .map(|class| walk.step(class))
        .collect();
        assert_eq!(
            found,
            [
                None,
                Interp,
                CommonFrame,
                CommonFrameInterp,
                CommonFrame,
                None,
                CommonFrame,
                None
            ]
        );
    }
}
