//! The row of `dumpsys meminfo` in which a mapping counts. The rules are those of the system's own
//! table, so that the sums equal its rows. Only names decide, except for the memory behind a
//! library.

use super::mapping::{Mapping, Smaps};

/// A row of meminfo's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Memory of malloc: `[heap]`, `[anon:libc_malloc]`, `[anon:scudo:…]`, `[anon:GWP-ASan…]`.
    NativeHeap,
    /// Java objects.
    DalvikHeap,
    /// Other memory of the runtime.
    DalvikOther,
    /// Thread stacks.
    Stack,
    /// Database cursor windows.
    Cursor,
    /// Other memory shared through `/dev/ashmem`.
    Ashmem,
    /// Mapped memory of the graphics driver.
    GfxDev,
    /// Mappings of other devices.
    OtherDev,
    /// Native libraries and the memory behind them.
    SoMmap,
    /// Java archives.
    JarMmap,
    /// Packages: resources, and code used without unpacking.
    ApkMmap,
    /// Fonts.
    TtfMmap,
    /// Java code: .dex, .odex, .vdex.
    DexMmap,
    /// Compiled Java code.
    OatMmap,
    /// Images of Java heaps.
    ArtMmap,
    /// Other files and named memory.
    OtherMmap,
    /// Memory without a name, or with a name set by the program.
    Unknown,
}

impl Kind {
    /// Returns the label in meminfo.
    pub fn label(self) -> &'static str {
        match self {
            Kind::NativeHeap => "Native Heap",
            Kind::DalvikHeap => "Dalvik Heap",
            Kind::DalvikOther => "Dalvik Other",
            Kind::Stack => "Stack",
            Kind::Cursor => "Cursor",
            Kind::Ashmem => "Ashmem",
            Kind::GfxDev => "Gfx dev",
            Kind::OtherDev => "Other dev",
            Kind::SoMmap => ".so mmap",
            Kind::JarMmap => ".jar mmap",
            Kind::ApkMmap => ".apk mmap",
            Kind::TtfMmap => ".ttf mmap",
            Kind::DexMmap => ".dex mmap",
            Kind::OatMmap => ".oat mmap",
            Kind::ArtMmap => ".art mmap",
            Kind::OtherMmap => "Other mmap",
            Kind::Unknown => "Unknown",
        }
    }
}

/// A row of meminfo's Dalvik Details: part of a [`Kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SubKind {
    /// Ordinary objects.
    Heap,
    LargeObjects,
    /// Objects from before the fork of the app.
    Zygote,
    /// Objects that the collector does not move.
    NonMoving,
    /// Classes, methods and fields.
    LinearAlloc,
    /// Tables of the garbage collector.
    Gc,
    /// Compiled code of the zygote.
    ZygoteJit,
    /// Compiled code of the app.
    AppJit,
    /// The compiler's metadata.
    CompilerMetadata,
    /// Tables of JNI references.
    IndirectRef,
    /// Java code of the system.
    BootVdex,
    /// Java code of the app.
    AppDex,
    /// Verified Java code of the app.
    AppVdex,
    /// Heap image of the app.
    AppArt,
    /// Heap image of the system.
    BootArt,
}

impl SubKind {
    /// Returns the label in meminfo.
    pub fn label(self) -> &'static str {
        match self {
            SubKind::Heap => ".Heap",
            SubKind::LargeObjects => ".LOS",
            SubKind::Zygote => ".Zygote",
            SubKind::NonMoving => ".NonMoving",
            SubKind::LinearAlloc => ".LinearAlloc",
            SubKind::Gc => ".GC",
            SubKind::ZygoteJit => ".ZygoteJIT",
            SubKind::AppJit => ".AppJIT",
            SubKind::CompilerMetadata => ".CompilerMetadata",
            SubKind::IndirectRef => ".IndirectRef",
            SubKind::BootVdex => ".Boot vdex",
            SubKind::AppDex => ".App dex",
            SubKind::AppVdex => ".App vdex",
            SubKind::AppArt => ".App art",
            SubKind::BootArt => ".Boot art",
        }
    }
}

/// Returns the kind for a name; `None` for an empty name.
pub(super) fn of_name(name: &str) -> Option<(Kind, Option<SubKind>)> {
    let begins = |what: &str| name.starts_with(what);
    let ends = |what: &str| name.ends_with(what);
    let of_system = || ["@boot", "/boot", "/apex"].iter().any(|w| name.contains(w));
    const NATIVE: [&str; 4] = [
        "[heap]",
        "[anon:libc_malloc]",
        "[anon:scudo:",
        "[anon:GWP-ASan",
    ];
    let plain = |kind| Some((kind, None));
    let with = |kind, sub| Some((kind, Some(sub)));
    if name.is_empty() {
        return None;
    }
    // Name of libc's memory if the kernel could not name it (Android 4).
    if NATIVE.iter().any(|what| begins(what)) || begins("/dev/ashmem/libc malloc") {
        return plain(Kind::NativeHeap);
    }
    if begins("[stack") || begins("[anon:stack_and_tls:") {
        return plain(Kind::Stack);
    }
    if ends(".so") {
        return plain(Kind::SoMmap);
    }
    if ends(".jar") {
        return plain(Kind::JarMmap);
    }
    if ends(".apk") {
        return plain(Kind::ApkMmap);
    }
    if ends(".ttf") {
        return plain(Kind::TtfMmap);
    }
    if ends(".odex") || (name.len() > 4 && name.contains(".dex")) {
        return with(Kind::DexMmap, SubKind::AppDex);
    }
    if ends(".vdex") {
        let sub = match of_system() {
            true => SubKind::BootVdex,
            false => SubKind::AppVdex,
        };
        return with(Kind::DexMmap, sub);
    }
    if ends(".oat") {
        return plain(Kind::OatMmap);
    }
    if ends(".art") || ends(".art]") {
        let sub = match of_system() {
            true => SubKind::BootArt,
            false => SubKind::AppArt,
        };
        return with(Kind::ArtMmap, sub);
    }
    if begins("/dev/") {
        return of_device(name);
    }
    if begins("/memfd:jit-cache") {
        return with(Kind::DalvikOther, SubKind::AppJit);
    }
    if begins("/memfd:jit-zygote-cache") {
        return with(Kind::DalvikOther, SubKind::ZygoteJit);
    }
    if let Some(space) = name.strip_prefix("[anon:dalvik-") {
        return Some(of_runtime(space));
    }
    plain(match begins("[anon:") {
        true => Kind::Unknown,
        false => Kind::OtherMmap,
    })
}

fn of_device(name: &str) -> Option<(Kind, Option<SubKind>)> {
    let begins = |what: &str| name.starts_with(what);
    Some(if begins("/dev/kgsl-3d0") {
        (Kind::GfxDev, None)
    } else if begins("/dev/ashmem/CursorWindow") {
        (Kind::Cursor, None)
    } else if begins("/dev/ashmem/jit-zygote-cache") {
        (Kind::DalvikOther, Some(SubKind::ZygoteJit))
    } else if let Some(space) = name.strip_prefix("/dev/ashmem/dalvik-") {
        // Before Android 10, the memory of the runtime was ashmem with its name.
        of_runtime(space)
    } else if begins("/dev/ashmem") {
        (Kind::Ashmem, None)
    } else {
        (Kind::OtherDev, None)
    })
}

/// Returns the kind for memory of the Java runtime, by its name.
fn of_runtime(space: &str) -> (Kind, Option<SubKind>) {
    // Name used by Dalvik for the memory of its objects.
    if space == "heap" {
        return (Kind::DalvikHeap, Some(SubKind::Heap));
    }
    const SPACES: [(&str, Kind, SubKind); 11] = [
        ("LinearAlloc", Kind::DalvikOther, SubKind::LinearAlloc),
        ("alloc space", Kind::DalvikHeap, SubKind::Heap),
        ("main space", Kind::DalvikHeap, SubKind::Heap),
        (
            "large object space",
            Kind::DalvikHeap,
            SubKind::LargeObjects,
        ),
        (
            "free list large object space",
            Kind::DalvikHeap,
            SubKind::LargeObjects,
        ),
        ("non moving space", Kind::DalvikHeap, SubKind::NonMoving),
        ("zygote space", Kind::DalvikHeap, SubKind::Zygote),
        ("indirect ref", Kind::DalvikOther, SubKind::IndirectRef),
        ("jit-code-cache", Kind::DalvikOther, SubKind::AppJit),
        ("data-code-cache", Kind::DalvikOther, SubKind::AppJit),
        (
            "CompilerMetadata",
            Kind::DalvikOther,
            SubKind::CompilerMetadata,
        ),
    ];
    let known = SPACES.iter().find(|(begin, _, _)| space.starts_with(begin));
    known.map_or((Kind::DalvikOther, Some(SubKind::Gc)), |&(_, kind, sub)| {
        (kind, Some(sub))
    })
}

impl Smaps {
    /// Returns each mapping with its kind, in order.
    pub fn classified(&self) -> impl Iterator<Item = (&Mapping, Kind, Option<SubKind>)> {
        let mut before: Option<(u64, Kind)> = None;
        self.mappings.iter().map(move |mapping| {
            let (kind, sub) = of_name(&mapping.name).unwrap_or_else(|| {
                let behind_library =
                    mapping.end > 0 && before == Some((mapping.start, Kind::SoMmap));
                match behind_library {
                    true => (Kind::SoMmap, None),
                    false => (Kind::Unknown, None),
                }
            });
            before = Some((mapping.end, kind));
            (mapping, kind, sub)
        })
    }
}
