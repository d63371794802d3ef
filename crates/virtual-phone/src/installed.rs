//! Paths of the libraries on a phone and their memory mappings. The file system and the stacks in
//! traces come from the same table. Owns the paths, the APK and the method names that R8 gave the
//! app.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::OnceLock;

use super::fs::{FileData, Kind, Node, Tree, normalize};
use super::image::{self, Library, image};
use super::packages::Package;
use super::spec::{Abi, PhoneSpec};

/// Page size. Libraries in an APK are aligned to it.
const PAGE: u64 = 4096;
/// Build time of the system image, in seconds since the epoch.
const BUILT: i64 = 1_230_768_000;
/// Installation time of the apps, in seconds since the epoch.
const INSTALLED: i64 = 1_707_120_000;

impl Abi {
    /// Returns the instruction set of a process on a phone with this one.
    pub(super) fn of_process(self, bits_32: bool) -> Abi {
        match (self, bits_32) {
            (Abi::Arm64, true) => Abi::Arm,
            (Abi::X86_64, true) => Abi::X86,
            (abi, _) => abi,
        }
    }

    /// Returns the name of the instruction set in paths of compiled Java and unpacked libraries.
    pub(super) fn isa(self) -> &'static str {
        match self {
            Abi::Arm64 => "arm64",
            Abi::Arm => "arm",
            Abi::X86_64 => "x86_64",
            Abi::X86 => "x86",
        }
    }

    fn lib(self) -> &'static str {
        if self.is_64_bit() { "lib64" } else { "lib" }
    }
}

/// Returns the path of a system library that has its own file.
fn system_path(library: &str, abi: Abi, android: u32) -> Option<String> {
    let (lib, isa) = (abi.lib(), abi.isa());
    Some(match library {
        "libc.so" => format!("/apex/com.android.runtime/{lib}/bionic/libc.so"),
        "libart.so" if android == 10 => format!("/apex/com.android.runtime/{lib}/libart.so"),
        "libart.so" => format!("/apex/com.android.art/{lib}/libart.so"),
        "boot-framework.oat" => format!("/system/framework/{isa}/boot-framework.oat"),
        "app_process" if abi.is_64_bit() => "/system/bin/app_process64".to_owned(),
        "app_process" => "/system/bin/app_process32".to_owned(),
        "surfaceflinger" => "/system/bin/surfaceflinger".to_owned(),
        other if SYSTEM.split(' ').any(|known| known == other) => format!("/system/{lib}/{other}"),
        _ => return None,
    })
}

/// Libraries and programs of the system.
const SYSTEM: &str = "libc.so libart.so boot-framework.oat app_process surfaceflinger \
    libandroid_runtime.so libandroidfw.so libbinder.so libc++.so libhwui.so libsqlite.so libutils.so";
/// Libraries unpacked by the installer.
const UNPACKED: [&str; 1] = ["libexample.so"];
/// Libraries stored in the APK and mapped from there.
const STORED: [&str; 2] = ["libengine.so", "libjson.so"];

/// Memory mapping of a library of the image.
pub(super) struct Mapped {
    /// Path as heapprofd writes it; for a library in an APK with `!` and its name appended.
    pub(super) path: String,
    /// Offset of the ELF file in the file at `path`.
    pub(super) start_offset: u64,
    pub(super) library: &'static Library,
    /// Whether heapprofd finds names of functions that are not exported.
    pub(super) has_symbols: bool,
}

/// Returns the memory mapping of a library in a process of an app, or of the system if there is no
/// app.
pub(super) fn mapped(
    spec: &PhoneSpec,
    abi: Abi,
    package: Option<&Package>,
    name: &str,
) -> Option<Mapped> {
    let library = image(abi).library(name)?;
    let (path, start_offset) = match (system_path(name, abi, spec.android), package) {
        (Some(path), _) => (path, 0),
        (None, Some(package)) if name == "base.odex" => {
            let path = format!("{}/oat/{}/base.odex", package.code_path(), abi.isa());
            (path, 0)
        }
        (None, Some(package)) if STORED.contains(&name) => {
            let path = format!("{}!{name}", package.apk());
            (path, *apk(spec.stripped, abi).offsets.get(name)?)
        }
        (None, Some(package)) => {
            let path = format!("{}/lib/{}/{name}", package.code_path(), abi.isa());
            (path, 0)
        }
        (None, None) => return None,
    };
    let (_, has_symbols) = shipped(library, spec.stripped);
    Some(Mapped {
        path,
        start_offset,
        library,
        has_symbols,
    })
}

/// Returns a library as its package ships it: the app's own libraries stripped or not.
///
/// Their code has the same offset in the file. The second value is whether heapprofd finds names.
fn shipped(library: &'static Library, stripped: bool) -> (&'static [u8], bool) {
    match &library.unstripped {
        Some(whole) if !stripped => (whole, true),
        _ => (&library.bytes, library.has_symbols),
    }
}

/// Bytes of an APK without its manifest, and the offsets of its libraries.
struct Apk {
    bytes: Vec<u8>,
    offsets: BTreeMap<&'static str, u64>,
}

/// Returns the APK of all apps; libraries are stored at page boundaries.
fn apk(stripped: bool, abi: Abi) -> &'static Apk {
    static APKS: [OnceLock<Apk>; 8] = [const { OnceLock::new() }; 8];
    let at = abi as usize * 2 + usize::from(stripped);
    APKS[at].get_or_init(|| {
        const MEMORY: &str = "writing to memory does not fail";
        let mut bytes = Vec::new();
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(&mut bytes));
        let stored = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored);
        for (name, contents) in [
            ("AndroidManifest.xml", &b"\x03\0\x08\0"[..]),
            ("classes.dex", b"dex\n035\0"),
        ] {
            zip.start_file(name, stored).expect(MEMORY);
            zip.write_all(contents).expect(MEMORY);
        }
        for name in STORED {
            let path = format!("lib/{}/{name}", abi.name());
            let aligned = stored.with_alignment(PAGE as u16);
            zip.start_file(path, aligned).expect(MEMORY);
            let library = image(abi).library(name).expect("the image has it");
            zip.write_all(shipped(library, stripped).0).expect(MEMORY);
        }
        zip.finish().expect(MEMORY);
        let mut archive = zip::ZipArchive::new(std::io::Cursor::new(&bytes)).expect(MEMORY);
        let offsets = STORED.into_iter().filter_map(|name| {
            let path = format!("lib/{}/{name}", abi.name());
            Some((name, archive.by_name(&path).ok()?.data_start()?))
        });
        let offsets = offsets.collect();
        Apk { bytes, offsets }
    })
}

/// Installs the system's libraries into the file system.
pub(super) fn install_system(tree: &mut Tree, spec: &PhoneSpec) {
    for abi in abis(spec.abi) {
        for name in SYSTEM.split(' ') {
            if name == "surfaceflinger" && abi != spec.abi {
                continue;
            }
            if let (Some(path), Some(library)) = (
                system_path(name, abi, spec.android),
                image(abi).library(name),
            ) {
                let mode = if path.contains("/bin/") { 0o755 } else { 0o644 };
                let bytes = &library.bytes[..];
                put(tree, &path, mode, (0, 0), "system_file", bytes, BUILT);
            }
        }
        let link = format!("/system/{}/libc.so", abi.lib());
        let to = format!("/apex/com.android.runtime/{}/bionic/libc.so", abi.lib());
        tree.install(&link, Node::new(Kind::Link(to), 0o777, 0, 0));
    }
}

/// Installs a package's files where its installer does.
pub(super) fn install_package(tree: &mut Tree, spec: &PhoneSpec, package: &Package) {
    let abi = spec.abi.of_process(package.bits_32);
    let code = package.code_path();
    let label = if package.system {
        "system_file"
    } else {
        "apk_data_file"
    };
    let owner = if package.system { 0 } else { 1000 };
    tree.directory(&code).label = label;
    let (owner, path) = ((owner, owner), package.apk());
    let bytes = &apk(spec.stripped, abi).bytes[..];
    put(tree, &path, 0o644, owner, label, bytes, INSTALLED);
    if package.processes.is_empty() {
        return;
    }
    let isa = abi.isa();
    for name in UNPACKED {
        let library = image(abi).library(name).expect("the image has it");
        let bytes = shipped(library, spec.stripped).0;
        let path = format!("{code}/lib/{isa}/{name}");
        put(tree, &path, 0o755, owner, label, bytes, INSTALLED);
    }
    let odex = image(abi).library("base.odex").expect("the image has it");
    let oat = format!("{code}/oat/{isa}");
    let group = 50_000 + package.appid;
    for (name, bytes) in [("base.odex", &odex.bytes[..]), ("base.vdex", b"vdex027\0")] {
        let path = format!("{oat}/{name}");
        put(tree, &path, 0o644, (1000, group), label, bytes, INSTALLED);
    }
}

/// Replaces or adds a file at `path`; its time is later than that of the replaced file.
pub(super) fn put_file(tree: &mut Tree, path: &str, bytes: &[u8], mode: u32) {
    let before = tree.node(&normalize("/", path));
    let (owner, label, mtime) = before.map_or(((0, 0), "system_file", INSTALLED), |node| {
        ((node.uid, node.gid), node.label, node.mtime + 1)
    });
    put(tree, path, mode, owner, label, bytes.to_vec(), mtime);
}

/// Returns the instruction sets whose libraries a phone has.
fn abis(abi: Abi) -> Vec<Abi> {
    let second = abi.of_process(true);
    if second == abi {
        vec![abi]
    } else {
        vec![abi, second]
    }
}

fn put(
    tree: &mut Tree,
    path: &str,
    mode: u32,
    (uid, gid): (u32, u32),
    label: &'static str,
    bytes: impl Into<Cow<'static, [u8]>>,
    mtime: i64,
) {
    let mut node = Node::new(Kind::File(FileData::new(bytes, mtime)), mode, uid, gid);
    (node.label, node.mtime) = (label, mtime);
    tree.install(path, node);
}

/// Returns the name that R8 gave a method, by `image::MAPPING`; the method's own name if R8 kept
/// it.
pub(super) fn obfuscated(method: &str) -> String {
    static NAMES: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let methods = image::renamed().filter_map(|(class, member)| {
            let (declaration, residual) = member?;
            // Inlined calls come first; their caller has the same residual name.
            let (before, _) = declaration.split_once('(')?;
            let method = before.rsplit(' ').next().unwrap_or(before);
            let original = format!("{}.{method}", class.0);
            Some((original, format!("{}.{residual}", class.1)))
        });
        methods.collect()
    });
    names.get(method).map_or(method, String::as_str).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_called_as_r8_left_them() {
        assert_eq!(
            obfuscated("com.example.app.feed.FeedPresenter.refresh"),
            "a.b.a"
        );
        assert_eq!(obfuscated("com.example.app.net.Http.read"), "b.a.a");
        let kept = "com.example.app.ui.FeedActivity.onResume";
        assert_eq!(obfuscated(kept), kept);
        assert_eq!(
            obfuscated("android.os.Looper.loop"),
            "android.os.Looper.loop"
        );
    }

    #[test]
    fn libraries_in_an_apk_start_at_a_page_and_are_whole() {
        for (stripped, abi) in [(true, Abi::Arm64), (false, Abi::Arm64), (true, Abi::X86)] {
            let apk = apk(stripped, abi);
            for (name, offset) in &apk.offsets {
                assert_eq!(offset % PAGE, 0, "{name}");
                let bytes = shipped(image(abi).library(name).unwrap(), stripped).0;
                let at = *offset as usize;
                assert_eq!(&apk.bytes[at..at + bytes.len()], bytes, "{name}");
            }
            assert_eq!(apk.offsets.len(), STORED.len());
        }
    }

    #[test]
    fn a_library_has_its_code_where_the_file_on_the_phone_has_it() {
        let spec = PhoneSpec {
            stripped: false,
            ..PhoneSpec::default()
        };
        let mut tree = Tree::new();
        install_system(&mut tree, &spec);
        let package = super::super::packages::installed().swap_remove(0);
        install_package(&mut tree, &spec, &package);
        for name in SYSTEM.split(' ').chain(UNPACKED).chain(["base.odex"]) {
            let mapped = mapped(&spec, Abi::Arm64, Some(&package), name).unwrap();
            let Some(Node {
                kind: Kind::File(data),
                ..
            }) = tree.node(&normalize("/", &mapped.path))
            else {
                panic!("no file {}", mapped.path);
            };
            let code = &mapped.library.bytes[mapped.library.code.offset as usize..][..32];
            assert_eq!(data.read_at(mapped.library.code.offset, 32), code, "{name}");
        }
    }
}
