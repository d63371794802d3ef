//! Meaning of the rows of meminfo, in one sentence each, with advice for rows that are large or
//! grow.

/// Explanation of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Meaning {
    /// Meaning of the row.
    pub what: &'static str,
    /// Advice for a large or growing row.
    pub advice: &'static str,
}

const fn meaning(what: &'static str, advice: &'static str) -> Option<Meaning> {
    Some(Meaning { what, advice })
}

/// Explains a row of the table, of Dalvik Details or of App Summary.
pub fn row(label: &str) -> Option<Meaning> {
    match label {
        "Native Heap" | "Native" => meaning(
            "memory that the allocator (malloc, new) got from the kernel; Heap Alloc is the used \
             part",
            "record it with `heaptap record -n NAME`; if Alloc is far below private dirty, the \
             memory is fragmented or in caches",
        ),
        "Dalvik Heap" | "Dalvik" | "Java Heap" => meaning(
            "Java and Kotlin objects; Heap Alloc includes those shared with the zygote and can \
             exceed PSS",
            "dump it with `heaptap dump -n NAME`, then run `heaptap leaks`",
        ),
        "Dalvik Other" => meaning(
            "memory of the runtime other than objects: GC tables, compiled code, class data",
            "show its parts with `--details`; it grows with loaded classes and compiled methods",
        ),
        "Stack" => meaning(
            "the used parts of thread stacks",
            "if it grows, count the threads (`ls /proc/PID/task`); each uses about 10 KiB to 1 MiB",
        ),
        "Cursor" => meaning(
            "database cursor windows of at most 2 MiB each",
            "close cursors; query fewer columns and rows",
        ),
        "Ashmem" => meaning(
            "anonymous memory shared between processes: MemoryFile, large binder data, old bitmaps \
             in parcels",
            "close MemoryFiles and received file descriptors",
        ),
        "Gfx dev" => meaning(
            "graphics driver memory mapped into the process: command buffers, textures",
            "use fewer and smaller textures, surfaces and layers; trimmed when the app goes to the \
             background",
        ),
        "Other dev" => meaning(
            "other device files, such as binder buffers",
            "check for binder calls with much data if it grows; it is small in most apps",
        ),
        ".so mmap" => meaning(
            "native libraries: code is shared and clean, relocated data is private and dirty",
            "use fewer libraries and relocations; watch only private dirty, because PSS depends on \
             other processes",
        ),
        ".jar mmap" => meaning(
            "Java archives of the platform",
            "none; an app cannot change it",
        ),
        ".apk mmap" => meaning(
            "the APK: resources, assets, and code and libraries used without unpacking",
            "none; clean pages, which the kernel drops when it needs memory",
        ),
        ".ttf mmap" => meaning("fonts", "use fewer font families; the pages are clean"),
        ".dex mmap" => meaning(
            "bytecode and its verified form (dex, vdex, odex)",
            "shrink the app with R8; the pages are clean if compiled ahead of time",
        ),
        ".oat mmap" => meaning(
            "platform and app code compiled ahead of time",
            "none; PSS depends on other processes that map it",
        ),
        ".art mmap" => meaning(
            "images of platform and app objects and classes, mapped at start",
            "treat its private pages as Java heap: objects written to after the fork",
        ),
        "Other mmap" => meaning(
            "other mapped files: databases, models, caches",
            "list the files with `heaptap smaps`",
        ),
        "EGL mtrack" => meaning(
            "surface buffers, as counted by the graphics driver",
            "use fewer windows, SurfaceViews and buffers; they are freed when the app is not \
             visible",
        ),
        "GL mtrack" => meaning(
            "GPU textures, shaders and buffers, as counted by the graphics driver",
            "recycle textures; `dumpsys gfxinfo` shows the caches of the renderer",
        ),
        "Other mtrack" => meaning(
            "other memory that a driver counts for the process, such as camera and video",
            "release cameras and codecs",
        ),
        "Unknown" => meaning(
            "unnamed mappings and those with custom names: engine allocators, mmap by the app",
            "list them with `heaptap smaps`; name them with prctl(PR_SET_VMA)",
        ),
        "TOTAL" | "TOTAL PSS" => meaning(
            "memory cost of the process: private pages, its share of shared pages and, since \
             Android 8, swap",
            "keep it low; the low-memory killer checks this and RSS",
        ),
        "TOTAL RSS" => meaning(
            "all resident pages, including all shared ones",
            "check PSS too; RSS can grow through shared pages alone",
        ),
        "TOTAL SWAP PSS" | "TOTAL SWAP (KB)" => meaning(
            "swapped memory, before compression",
            "add it to private dirty when comparing; swapping moves memory but does not free it",
        ),
        "Code" => meaning(
            "private pages of libraries, bytecode, APKs and fonts",
            "use fewer libraries, R8, and extractNativeLibs=false",
        ),
        "Graphics" => meaning(
            "Gfx dev, EGL mtrack and GL mtrack: buffers and textures",
            "compare two snapshots of the same screen with `heaptap diff`, then use `--explain` \
             for the row that grew, such as GL mtrack",
        ),
        "Private Other" => meaning(
            "private pages of all other rows",
            "find the rows in the table; usually Dalvik Other and Unknown",
        ),
        "System" => meaning(
            "share of non-private pages, and swap: TOTAL minus all private pages",
            "none; not caused by the app, and can be negative",
        ),
        ".Heap" => meaning(
            "objects of the app in the main space",
            "part of Dalvik Heap",
        ),
        ".LOS" => meaning(
            "large objects: primitive arrays and strings of 12 KiB and more",
            "part of Dalvik Heap; find the arrays with `heaptap top FILE --by class`",
        ),
        ".Zygote" => meaning(
            "objects from before the fork, shared until written to",
            "part of Dalvik Heap; not caused by the app",
        ),
        ".NonMoving" => meaning(
            "objects that the collector never moves: classes and fields",
            "part of Dalvik Heap; grows with loaded classes",
        ),
        ".LinearAlloc" => meaning(
            "class methods and fields",
            "part of Dalvik Other; grows with loaded classes",
        ),
        ".GC" => meaning("garbage collector tables", "part of Dalvik Other"),
        ".JITCache" | ".AppJIT" => meaning(
            "code compiled while the app was running",
            "part of Dalvik Other; a baseline profile moves it into files",
        ),
        ".ZygoteJIT" => meaning(
            "compiled code of the zygote",
            "part of Dalvik Other; shared",
        ),
        ".CompilerMetadata" => meaning("compiler metadata", "part of Dalvik Other"),
        ".IndirectRef" => meaning(
            "tables of JNI references",
            "part of Dalvik Other; growth indicates global references that are not deleted",
        ),
        ".Boot vdex" | ".App vdex" => meaning("bytecode in its verified form", "part of .dex mmap"),
        ".App dex" => meaning("bytecode of the app", "part of .dex mmap"),
        ".App art" | ".Boot art" => meaning("images of objects", "part of .art mmap"),
        _ => None,
    }
}

/// Labels of all known rows.
pub const ROWS: [&str; 48] = [
    "Native Heap",
    "Dalvik Heap",
    "Dalvik Other",
    "Stack",
    "Cursor",
    "Ashmem",
    "Gfx dev",
    "Other dev",
    ".so mmap",
    ".jar mmap",
    ".apk mmap",
    ".ttf mmap",
    ".dex mmap",
    ".oat mmap",
    ".art mmap",
    "Other mmap",
    "EGL mtrack",
    "GL mtrack",
    "Other mtrack",
    "Unknown",
    "TOTAL",
    "Native",
    "Dalvik",
    ".Heap",
    ".LOS",
    ".GC",
    ".JITCache",
    ".Zygote",
    ".NonMoving",
    ".IndirectRef",
    ".LinearAlloc",
    ".CompilerMetadata",
    ".ZygoteJIT",
    ".AppJIT",
    ".Boot vdex",
    ".App dex",
    ".App vdex",
    ".App art",
    ".Boot art",
    "Java Heap",
    "Code",
    "Graphics",
    "Private Other",
    "System",
    "TOTAL PSS",
    "TOTAL RSS",
    "TOTAL SWAP PSS",
    "TOTAL SWAP (KB)",
];

/// Returns the mappings that a row counts, by their names in smaps. For a row that is not in smaps,
/// returns the source of its figure.
pub fn made_of(label: &str) -> Option<&'static str> {
    Some(match label {
        "Native Heap" | "Native" => {
            "[heap], [anon:libc_malloc], [anon:scudo:…], [anon:GWP-ASan …]; mappings by an engine \
             are in Unknown"
        }
        "Dalvik Heap" | "Dalvik" => {
            "[anon:dalvik-…] of the object spaces: main, region, large object, zygote and non \
             moving space"
        }
        "Dalvik Other" => {
            "all other [anon:dalvik-…]: LinearAlloc, GC tables, JNI reference tables; memfd:jit-…"
        }
        "Stack" => "[stack], [anon:stack_and_tls:…]: the touched pages, not the reserved range",
        "Cursor" => "/dev/ashmem/CursorWindow…",
        "Ashmem" => "/dev/ashmem/… except for cursors and the runtime",
        "Gfx dev" => "/dev/kgsl-3d0 of Adreno; other GPUs count only as GL mtrack",
        "Other dev" => "/dev/… not in another row, such as /dev/binder",
        ".so mmap" => "files whose names end in .so, and the .bss behind them",
        ".jar mmap" => "files whose names end in .jar",
        ".apk mmap" => "files whose names end in .apk",
        ".ttf mmap" => "files whose names end in .ttf",
        ".dex mmap" => "files whose names end in .dex, .odex and .vdex",
        ".oat mmap" => "files whose names end in .oat",
        ".art mmap" => "files whose names end in .art and their [anon:dalvik-…] mappings",
        "Other mmap" => "files with any other name",
        "EGL mtrack" | "GL mtrack" | "Other mtrack" => {
            "no mappings in smaps: the graphics driver reports it through the memtrack HAL, so PSS \
             and TOTAL RSS include it, but VmRSS of /proc/PID/status does not"
        }
        "Unknown" => "unnamed mappings, and [anon:…] with custom names",
        "TOTAL" | "TOTAL PSS" => "all rows and, since Android 8, swap",
        "TOTAL RSS" => {
            "RSS of all rows, including driver memory: VmRSS of /proc/PID/status plus the mtrack \
             rows"
        }
        "Java Heap" => "private dirty of Dalvik Heap, private pages of .art mmap",
        "Code" => {
            "private pages of .so, .jar, .apk, .ttf, .dex, .oat, and with `--details` of compiled code"
        }
        "Graphics" => "private pages of Gfx dev, EGL mtrack, GL mtrack",
        "Private Other" => "private pages of all rows not in another part",
        _ => return None,
    })
}

/// Returns the part of App Summary that counts a row's private pages.
pub fn part(label: &str) -> Option<&'static str> {
    Some(match label {
        "Dalvik Heap" | "Dalvik" | ".art mmap" => "Java Heap",
        ".so mmap" | ".jar mmap" | ".apk mmap" | ".ttf mmap" | ".dex mmap" | ".oat mmap" => "Code",
        "Gfx dev" | "EGL mtrack" | "GL mtrack" => "Graphics",
        "Dalvik Other" | "Cursor" | "Ashmem" | "Other dev" | "Other mmap" | "Other mtrack"
        | "Unknown" => "Private Other",
        _ => return None,
    })
}

/// Names of all known object counts.
pub const OBJECTS: [&str; 13] = [
    "Views",
    "ViewRootImpl",
    "AppContexts",
    "Activities",
    "Assets",
    "AssetManagers",
    "Local Binders",
    "Proxy Binders",
    "Parcel memory",
    "Parcel count",
    "Death Recipients",
    "OpenSSL Sockets",
    "WebViews",
];

/// Explains a count of objects.
pub fn object(name: &str) -> Option<Meaning> {
    match name {
        "Views" => meaning(
            "existing Views",
            "compare two runs on the same screen; growth in each iteration is a leak",
        ),
        "ViewRootImpl" => meaning(
            "windows: one for each visible Activity, dialog and popup",
            "if there are more than are visible, remove the rest",
        ),
        "AppContexts" => meaning(
            "contexts of the application, Activities and Services",
            "growth indicates leaked Activities or Services",
        ),
        "Activities" => meaning(
            "existing Activities, including destroyed ones that are still reachable",
            "more than in the back stack is a leak: run `heaptap dump`, then `heaptap leaks`; up \
             to Android 5 includes unreachable ones",
        ),
        "Assets" => meaning("open assets", "close asset streams"),
        "AssetManagers" => meaning("resource managers", "one for each set of APKs"),
        "Local Binders" => meaning(
            "binder objects that the app provides to other processes",
            "unregister listeners; growth indicates listeners that are never removed",
        ),
        "Proxy Binders" => meaning(
            "references to binder objects of other processes",
            "close connections and remove callbacks; growth indicates that some are kept",
        ),
        "Parcel memory" => meaning("KiB of parcels in use", "recycle parcels"),
        "Parcel count" => meaning("parcels in use", "recycle parcels"),
        "Death Recipients" => meaning(
            "death notifications for other processes",
            "call unlinkToDeath() for each linkToDeath()",
        ),
        "OpenSSL Sockets" => meaning("TLS connections", "close connections and their pools"),
        "WebViews" => meaning(
            "existing WebViews",
            "call destroy(); each one uses tens of MiB here and in its renderer",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_platform_is_explained() {
        for label in ROWS {
            assert!(row(label).is_some(), "{label}");
        }
        for label in ROWS.iter().take(21) {
            assert!(made_of(label).is_some(), "{label}");
        }
        for name in OBJECTS {
            assert!(object(name).is_some() && row(name).is_none(), "{name}");
        }
        assert_eq!(row("A vendor's"), None);
    }
}
