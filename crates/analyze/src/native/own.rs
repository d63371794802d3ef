//! Classification of frames as app code or platform code. A leak is reported at code that its
//! developer can change, not in the library that allocated the memory.

use super::groups::function_of;
use super::scope::parts_of_impl;
use heaptap_model::names::platform::is_platform;
use heaptap_model::stacks::{FrameId, Kind, StackTable};

/// Paths of platform files on the device and on the build host.
const PLATFORM_PATHS: [&str; 9] = [
    "/system/",
    "/system_ext/",
    "/apex/",
    "/vendor/",
    "/product/",
    "/odm/",
    "/usr/",
    "/lib/",
    "/lib64/",
];

/// Packages of libraries, in addition to the platform's, that are not app code.
const LIBRARY_PACKAGES: [&str; 3] = ["com.google.android.", "org.chromium.", "okhttp3."];

/// Namespaces of the C++ and Rust libraries that are compiled into everything.
const LIBRARY_SCOPES: [&str; 8] = [
    "std::",
    "__gnu_cxx::",
    "__cxxabi",
    "alloc::",
    "core::",
    "hashbrown::",
    "absl::",
    "fmt::",
];

/// Usefulness of a frame to a developer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    Bare,
    /// A named frame of the platform.
    Named,
    /// An address in a native library of the app.
    OwnAddress,
    Own,
}

/// Frames of a table by their usefulness.
pub struct OwnFrames(Vec<Worth>);

impl OwnFrames {
    /// Classifies the frames of a table.
    pub fn from_table(table: &StackTable) -> OwnFrames {
        let frames = (0..table.frames().len() as u32).map(FrameId);
        let worth = frames.map(|frame| match () {
            () if is_library_code(table, frame) => Worth::Bare,
            () => match (has_name(table, frame), is_of_app(table, frame)) {
                (true, true) => Worth::Own,
                // An address of compiled Java code can be the platform's, and does not help.
                (false, true) if function_of(table, frame).kind == Kind::Plain => Worth::OwnAddress,
                (true, false) => Worth::Named,
                (false, _) => Worth::Bare,
            },
        });
        OwnFrames(worth.collect())
    }

    /// Returns the named app frame nearest to the allocation; without one, the nearest address in a
    /// library of the app, then the nearest frame with a name, then the allocating frame. `None`
    /// without frames. The outermost frame is the first.
    pub fn of_stack(&self, frames: impl Iterator<Item = FrameId>) -> Option<FrameId> {
        frames.max_by_key(|frame| self.0[frame.0 as usize])
    }
}

/// Returns whether a frame is in a file of the app, or is Java code of no file.
fn is_of_app(table: &StackTable, frame: FrameId) -> bool {
    let function = function_of(table, frame);
    let path = table.text_of(table.libraries()[function.library.0 as usize].path);
    match function.kind {
        Kind::Allocator | Kind::Runtime | Kind::Class => false,
        // For Java code the path is weak evidence, because just-in-time compiled code is in no
        // file.
        Kind::Java => !is_platform_path(path),
        Kind::Plain => !path.is_empty() && !path.starts_with('[') && !is_platform_path(path),
    }
}

fn is_library_code(table: &StackTable, frame: FrameId) -> bool {
    let function = function_of(table, frame);
    let name = table.text_of(function.name);
    match function.kind {
        Kind::Java => is_platform(name) || LIBRARY_PACKAGES.iter().any(|p| name.starts_with(p)),
        _ => is_library_function(name),
    }
}

/// Returns whether a C++ or Rust function is of the libraries that are compiled into everything. A
/// Rust method is if its type and its trait are: `<alloc::vec::Vec<T> as app::Load>::load` is of
/// the app. Types without a scope, such as `<u8 as …>`, are of the language, or stand for any type.
pub fn is_library_function(name: &str) -> bool {
    // Parameters are only in names of C++, where an app can have these namespaces, too.
    let is_cpp = name.ends_with([')', ']']) || name.ends_with(") const");
    let is_library = |path: &str| {
        let of_rust = ["alloc::", "core::"]
            .iter()
            .any(|scope| path.starts_with(scope));
        !(is_cpp && of_rust) && LIBRARY_SCOPES.iter().any(|scope| path.starts_with(scope))
    };
    let Some(subject) = name.strip_prefix('<') else {
        return is_library(without_return_type(name));
    };
    let (subject, of_trait) = parts_of_impl(subject);
    let path = subject.trim_start_matches(|c: char| "&*[( ".contains(c));
    let path = ["mut ", "const ", "dyn "]
        .iter()
        .fold(path, |path, word| path.strip_prefix(word).unwrap_or(path));
    let has_scope = path
        .find("::")
        .is_some_and(|at| path[..at].chars().all(|c| c.is_alphanumeric() || c == '_'));
    (!has_scope || is_library(path)) && of_trait.is_none_or(is_library)
}

/// Returns a name without its return type. Demangled templates begin with it: `void std::f<int>()`.
fn without_return_type(name: &str) -> &str {
    let scope = name.find("::").unwrap_or(0);
    match name[..scope].rfind([' ', '*', '&']) {
        Some(at) => &name[at + 1..],
        None => name,
    }
}

fn is_platform_path(path: &str) -> bool {
    PLATFORM_PATHS.iter().any(|p| path.starts_with(p))
}

/// Returns whether a function has a name rather than an address.
fn has_name(table: &StackTable, frame: FrameId) -> bool {
    let name = table.text_of(function_of(table, frame).name);
    !name.is_empty() && !name.starts_with("0x") && !name.contains("+0x")
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::stacks::{Frame, Function, Library, TextId};

    #[test]
    fn methods_of_rust_are_of_a_library_by_type_and_trait() {
        for (name, is_library) in [
            ("std::__1::vector<a::B>::grow()", true),
            ("void std::f<a::B>()", true),
            ("alloc::boxed::Box<T>::new", true),
            ("core::Engine::load(int) const", false),
            ("alloc::Pool::take()", false),
            (
                "<alloc::vec::Vec<T> as core::iter::Extend<a::B>>::extend",
                true,
            ),
            ("<alloc::vec::Vec<a::B>>::push", true),
            ("<[T]>::to_vec", true),
            (
                "<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem",
                true,
            ),
            (
                "<&mut core::str::Chars as core::iter::Iterator>::next",
                true,
            ),
            ("<alloc::vec::Vec<T> as app::Load>::load", false),
            ("<app::Node as core::clone::Clone>::clone", false),
            ("<&app::Node as core::fmt::Debug>::fmt", false),
            ("<app::Node>::new", false),
            ("app::main::{{closure}}", false),
            ("<", true),
        ] {
            assert_eq!(is_library_function(name), is_library, "{name}");
        }
    }

    #[test]
    fn the_nearest_frame_of_the_app_is_named() {
        let mut table = StackTable::default();
        let mut frame = |name: &str, path: &str, kind: Kind| {
            let path = table.text(path);
            let library = table.library(Library {
                path,
                build_id: TextId::default(),
            });
            let name = table.text(name);
            let function = table.function(Function {
                name,
                system_name: TextId::default(),
                library,
                kind,
            });
            table.frame(Frame {
                function,
                file: TextId::default(),
                line: 0,
                inlined: false,
            })
        };
        let app = "/data/app/~~x==/com.x-y==/base.apk!libx.so";
        let vector = frame("void std::__1::vector<int>::grow()", app, Kind::Plain);
        let bare = frame("libx.so+0x30", app, Kind::Plain);
        let caller = frame("libx.so+0x84", app, Kind::Plain);
        let libc = "/apex/com.android.runtime/lib64/bionic/libc.so";
        let start = frame("__pthread_start(void*)", libc, Kind::Plain);
        let system = frame("libhwui.so+0x30", "/system/lib64/libhwui.so", Kind::Plain);
        let append = frame("x::History::Append(int)", app, Kind::Plain);
        let draw = frame(
            "android::Canvas::draw()",
            "/system/lib64/libhwui.so",
            Kind::Plain,
        );
        let java = frame("com.x.Main.onDraw [jit]", "/memfd:jit-cache", Kind::Java);
        let oat = frame(
            "boot.oat+0x10",
            "/data/dalvik-cache/arm64/boot.oat",
            Kind::Java,
        );
        let view = frame(
            "android.view.View.draw",
            "/system/framework/boot.oat",
            Kind::Java,
        );
        let frames = OwnFrames::from_table(&table);
        let own = |stack: &[FrameId]| frames.of_stack(stack.iter().rev().copied());
        assert_eq!(own(&[vector, bare, append, java]), Some(append));
        assert_eq!(own(&[draw, view, java]), Some(java));
        assert_eq!(
            own(&[system, draw, view]),
            Some(draw),
            "without app code, a frame with a name"
        );
        assert_eq!(
            own(&[bare, caller, start]),
            Some(bare),
            "of the app, although only libc has names"
        );
        assert_eq!(own(&[oat, start]), Some(start));
        assert_eq!(own(&[bare, java]), Some(java));
        assert_eq!(own(&[system, start]), Some(start));
        assert_eq!(own(&[system]), Some(system));
        assert_eq!(own(&[]), None);
    }
}
