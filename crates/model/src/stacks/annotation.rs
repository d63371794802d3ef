//! Execution mode of a frame's code as a suffix of its name: ` [interp]`, ` [jit]`, ` [aot]`, and `
//! [common-frame]` for the runtime's own frames between managed ones. The rules are those of
//! Perfetto's converter, so that profiles of both are comparable.

use super::table::Kind;
use crate::names::{JavaCode, basename, java_code};
use crate::profile::{Frame, FrameId, Recording};

/// Suffix of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum Annotation {
    /// No suffix.
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
    /// Returns the suffix with its leading space; empty for none.
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

/// All visible annotations.
const SHOWN: [Annotation; 5] = [
    Annotation::Interp,
    Annotation::Jit,
    Annotation::Aot,
    Annotation::CommonFrame,
    Annotation::CommonFrameInterp,
];

impl Annotation {
    /// Returns the annotation at the end of a name.
    pub(super) fn of_name(name: &str) -> Option<Annotation> {
        let is_it = |annotation: &Annotation| name.ends_with(annotation.suffix());
        SHOWN.into_iter().find(is_it)
    }

    /// Returns the kind of functions with this annotation.
    pub(super) fn kind(self) -> Kind {
        match self {
            Annotation::None => Kind::Plain,
            Annotation::Interp | Annotation::Jit | Annotation::Aot => Kind::Java,
            Annotation::CommonFrame | Annotation::CommonFrameInterp => Kind::Runtime,
        }
    }
}

/// Class of a single frame, without its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameClass {
    Plain,
    Managed(Annotation),
    Runtime { interpreter: bool },
    Trampoline,
}

/// Name of the stub between Java and JNI code, in libart.so or compiled into an oat file.
const TRAMPOLINE: &str = "art_jni_trampoline";
const INTERPRETER: [&str; 5] = [
    "nterp_",
    "Nterp",
    "ExecuteNterp",
    "ExecuteSwitchImpl",
    "_ZN3art11interpreter",
];

#[derive(Debug)]
pub struct Classes {
    of_frames: Vec<FrameClass>,
    annotates: bool,
}

impl Classes {
    pub fn from_recording(recording: &Recording) -> Classes {
        let tables = &recording.tables;
        let kinds: Vec<MappingClass> = tables
            .mappings()
            .iter()
            .map(|mapping| MappingClass::from_path(tables.string(mapping.path)))
            .collect();
        let class = |frame: &Frame| {
            let kind = frame
                .mapping
                .map_or(MappingClass::Other, |id| kinds[id.0 as usize]);
            FrameClass::new(kind, tables.string(frame.name))
        };
        let of_frames: Vec<FrameClass> = tables.frames().iter().map(class).collect();
        let annotates =
            |class: &FrameClass| matches!(class, FrameClass::Managed(_) | FrameClass::Trampoline);
        Classes {
            annotates: of_frames.iter().any(annotates),
            of_frames,
        }
    }

    /// Returns whether any frame can be annotated.
    pub fn annotates(&self) -> bool {
        self.annotates
    }

    #[inline]
    pub fn get(&self, frame: FrameId) -> FrameClass {
        self.of_frames[frame.0 as usize]
    }
}

impl FrameClass {
    /// Returns the class of a frame in a mapping of some class, by its recorded name.
    fn new(mapping: MappingClass, name: &str) -> FrameClass {
        if name == TRAMPOLINE {
            return FrameClass::Trampoline;
        }
        match mapping {
            MappingClass::Managed(annotation) => FrameClass::Managed(annotation),
            MappingClass::Runtime => FrameClass::Runtime {
                interpreter: INTERPRETER.iter().any(|start| name.starts_with(start)),
            },
            MappingClass::Other => FrameClass::Plain,
        }
    }

    /// Returns the class of a frame by the path of its library and its recorded name.
    pub fn of_path(path: &str, name: &str) -> FrameClass {
        FrameClass::new(MappingClass::from_path(path), name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MappingClass {
    Managed(Annotation),
    Runtime,
    Other,
}

impl MappingClass {
    fn from_path(path: &str) -> MappingClass {
        let name = basename(path);
        if name.starts_with("libart.so") || name.starts_with("libartd.so") {
            return MappingClass::Runtime;
        }
        match java_code(path) {
            Some(JavaCode::Interpreted) => MappingClass::Managed(Annotation::Interp),
            Some(JavaCode::JustInTime) => MappingClass::Managed(Annotation::Jit),
            Some(JavaCode::AheadOfTime) => MappingClass::Managed(Annotation::Aot),
            None => MappingClass::Other,
        }
    }
}

/// Walks a callstack from root to leaf and returns the annotation of each frame.
#[derive(Debug, Clone, Copy, Default)]
pub struct Walk {
    below_managed: bool,
    below_trampoline: bool,
}

impl Walk {
    pub fn step(&mut self, class: FrameClass) -> Annotation {
        if std::mem::take(&mut self.below_trampoline) {
            // It can be the native side of a Java method, even within the runtime.
            return Annotation::None;
        }
        match class {
            FrameClass::Trampoline => {
                self.below_managed = true;
                self.below_trampoline = true;
                Annotation::CommonFrame
            }
            FrameClass::Managed(annotation) => {
                self.below_managed = true;
                annotation
            }
            FrameClass::Runtime { interpreter: true } if self.below_managed => {
                Annotation::CommonFrameInterp
            }
            FrameClass::Runtime { interpreter: false } if self.below_managed => {
                Annotation::CommonFrame
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
            (
                "/apex/com.android.art/lib64/libart.so (deleted)",
                MappingClass::Runtime,
            ),
            ("/data/app/x/base.apk!libfoo.so", MappingClass::Other),
            ("/system/lib64/libc.so", MappingClass::Other),
            ("", MappingClass::Other),
        ] {
            assert_eq!(MappingClass::from_path(path), class, "{path}");
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
        // Compiled into an oat file, without a managed frame above.
        let mut walk = Walk::default();
        let found: Vec<Annotation> = [Trampoline, Managed(Aot), runtime]
            .into_iter()
            .map(|class| walk.step(class))
            .collect();
        assert_eq!(found, [CommonFrame, None, CommonFrame]);
    }
}
