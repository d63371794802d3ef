//! What rows mean, in a sentence, and what to do where they are large or grow.

/// What a row means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Meaning {
    /// What it counts.
    pub what: &'static str,
    /// What to do about it.
    pub advice: &'static str,
}

const fn meaning(what: &'static str, advice: &'static str) -> Option<Meaning> {
    Some(Meaning { what, advice })
}

/// What a row of the table, of Dalvik Details or of App Summary means.
pub fn row(label: &str) -> Option<Meaning> {
    match label {
        "Native Heap" | "Native" => meaning(
            "memory that the allocator (malloc, new) got from the kernel; Heap Alloc is what is in use of it",
            "record it: heaptap record -n NAME; where Alloc is far below the private dirty memory, it is fragmented or kept in caches",
        ),
        "Dalvik Heap" | "Dalvik" | "Java Heap" => meaning(
            "objects of Java and Kotlin; Heap Alloc counts those shared with the zygote, too, and may exceed PSS",
            "dump it: heaptap dump -n NAME, then heaptap leaks",
        ),
        "Dalvik Other" => meaning(
            "what the runtime needs beside the objects: tables of the collector, compiled code, class data",
            "grows with the classes that are loaded and the methods that are compiled; -d shows its parts",
        ),
        "Stack" => meaning(
            "stacks of threads, as far as they were used",
            "some 10 KiB to 1 MiB a thread: count the threads if it grows (ls /proc/PID/task)",
        ),
        "Cursor" => meaning(
            "windows of database cursors, 2 MiB at most each",
            "close cursors; query fewer columns and rows",
        ),
        "Ashmem" => meaning(
            "anonymous memory shared between processes: MemoryFile, binder's large data, old bitmaps in parcels",
            "close MemoryFiles and file descriptors that were passed in",
        ),
        "Gfx dev" => meaning(
            "memory of the graphics driver that is mapped into the process: command buffers, textures",
            "fewer and smaller textures, surfaces and layers; trims when the app goes to the background",
        ),
        "Other dev" => meaning(
            "other device files, such as binder's buffers",
            "small in most apps; grows with binder calls that carry much",
        ),
        ".so mmap" => meaning(
            "native libraries: code is shared and clean, relocated data is private and dirty",
            "drifts with what other processes map: watch its private dirty memory alone; fewer libraries, fewer relocations",
        ),
        ".jar mmap" => meaning(
            "Java archives of the platform",
            "nothing an app could change",
        ),
        ".apk mmap" => meaning(
            "the APK: resources, assets, and libraries and code that are used without being unpacked",
            "clean: the kernel drops it when it needs the memory",
        ),
        ".ttf mmap" => meaning("fonts", "clean; fewer font families"),
        ".dex mmap" => meaning(
            "bytecode and its verified form (dex, vdex, odex)",
            "clean where it was compiled ahead; shrink the app with R8",
        ),
        ".oat mmap" => meaning(
            "code of the platform and the app, compiled ahead of time",
            "drifts with what other processes map",
        ),
        ".art mmap" => meaning(
            "images of objects and classes of the platform and the app, mapped at the start",
            "its private pages count as Java heap: objects that were written to after the fork",
        ),
        "Other mmap" => meaning(
            "other files that are mapped: databases, models, memory-mapped caches",
            "heaptap smaps names the files",
        ),
        "EGL mtrack" => meaning(
            "buffers of surfaces, as the graphics driver counts them",
            "fewer windows, SurfaceViews and buffers; they are gone when the app is not visible",
        ),
        "GL mtrack" => meaning(
            "textures, shaders and buffers of the GPU, as the graphics driver counts them",
            "recycle textures; dumpsys gfxinfo tells about the caches of the renderer",
        ),
        "Other mtrack" => meaning(
            "other memory that a driver counts for the process: camera, video",
            "release cameras and codecs",
        ),
        "Unknown" => meaning(
            "mappings without a name, or with one of their own: allocators of engines, mmap of the app",
            "name them with prctl(PR_SET_VMA); heaptap smaps lists them",
        ),
        "TOTAL" | "TOTAL PSS" => meaning(
            "what the process adds to the phone's memory: private pages and its share of the others, with what is swapped out since Android 8",
            "the low-memory killer looks at this and at RSS",
        ),
        "TOTAL RSS" => meaning(
            "all pages in memory, shared ones in full",
            "may grow without the app's doing, by what it shares",
        ),
        "TOTAL SWAP PSS" | "TOTAL SWAP (KB)" => meaning(
            "what is swapped out, before compression",
            "add it to private dirty memory when comparing: swapping moves memory, it frees none",
        ),
        "Code" => meaning(
            "private pages of libraries, bytecode, APKs and fonts",
            "fewer libraries; R8; extractNativeLibs=false",
        ),
        "Graphics" => meaning(
            "Gfx dev, EGL mtrack and GL mtrack: buffers and textures",
            "compare while the same screen is shown",
        ),
        "Private Other" => meaning(
            "private pages of all other rows",
            "the table tells of which; Dalvik Other and Unknown as a rule",
        ),
        "System" => meaning(
            "the share of what is not private, and swap: TOTAL less all private pages",
            "not the app's doing; may be negative",
        ),
        ".Heap" => meaning(
            "objects of the app, in the main space",
            "part of Dalvik Heap",
        ),
        ".LOS" => meaning(
            "large objects: primitive arrays and strings of 12 KiB and more",
            "part of Dalvik Heap; heaptap top FILE --by class finds the arrays",
        ),
        ".Zygote" => meaning(
            "objects from before the fork, shared until they are written to",
            "part of Dalvik Heap; not the app's doing",
        ),
        ".NonMoving" => meaning(
            "objects that the collector never moves: classes and fields",
            "part of Dalvik Heap; grows with the classes that are loaded",
        ),
        ".LinearAlloc" => meaning(
            "methods and fields of classes",
            "part of Dalvik Other; grows with the classes that are loaded",
        ),
        ".GC" => meaning("tables of the garbage collector", "part of Dalvik Other"),
        ".JITCache" | ".AppJIT" => meaning(
            "code that was compiled while the app ran",
            "part of Dalvik Other; a baseline profile moves it into files",
        ),
        ".ZygoteJIT" => meaning(
            "compiled code of the zygote",
            "part of Dalvik Other; shared",
        ),
        ".CompilerMetadata" => meaning("notes of the compiler", "part of Dalvik Other"),
        ".IndirectRef" => meaning(
            "tables of JNI references",
            "part of Dalvik Other; growth means global references that are not deleted",
        ),
        ".Boot vdex" | ".App vdex" => meaning("bytecode in its verified form", "part of .dex mmap"),
        ".App dex" => meaning("bytecode of the app", "part of .dex mmap"),
        ".App art" | ".Boot art" => meaning("images of objects", "part of .art mmap"),
        _ => None,
    }
}

/// Every row that is known.
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

/// Which mappings a row of the table counts, by the names they have in smaps; who counts it,
/// where it is not in smaps.
pub fn made_of(label: &str) -> Option<&'static str> {
    Some(match label {
        "Native Heap" | "Native" => {
            "[heap], [anon:libc_malloc], [anon:scudo:…], [anon:GWP-ASan …]; not what an engine maps \
             for itself: that is Unknown"
        }
        "Dalvik Heap" | "Dalvik" => {
            "[anon:dalvik-…] of the spaces for objects: main, region, large object, zygote and non \
             moving space"
        }
        "Dalvik Other" => {
            "all other [anon:dalvik-…]: LinearAlloc, tables of the collector and of JNI references; \
             memfd:jit-…"
        }
        "Stack" => {
            "[stack], [anon:stack_and_tls:…]: what threads have touched, not what is reserved"
        }
        "Cursor" => "/dev/ashmem/CursorWindow…",
        "Ashmem" => "/dev/ashmem/… but for cursors and the runtime",
        "Gfx dev" => "/dev/kgsl-3d0 of Adreno; other GPUs are counted as GL mtrack alone",
        "Other dev" => "/dev/… that no other row has, such as /dev/binder",
        ".so mmap" => "files whose names end in .so, and the .bss behind them",
        ".jar mmap" => "files whose names end in .jar",
        ".apk mmap" => "files whose names end in .apk",
        ".ttf mmap" => "files whose names end in .ttf",
        ".dex mmap" => "files whose names end in .dex, .odex and .vdex",
        ".oat mmap" => "files whose names end in .oat",
        ".art mmap" => "files whose names end in .art, and [anon:dalvik-…] made of them",
        "Other mmap" => "files of any other name",
        "EGL mtrack" | "GL mtrack" | "Other mtrack" => {
            "nothing in smaps: the graphics driver tells it to the system (memtrack HAL); so it is \
             in PSS and TOTAL RSS, but not in VmRSS of /proc/PID/status"
        }
        "Unknown" => "mappings without a name, and [anon:…] with names of their own",
        "TOTAL" | "TOTAL PSS" => "all rows, and since Android 8 what is swapped out",
        "TOTAL RSS" => {
            "all rows' RSS, memory of drivers included: more than VmRSS of /proc/PID/status by the \
             mtrack rows"
        }
        "Java Heap" => "private dirty of Dalvik Heap, private pages of .art mmap",
        "Code" => {
            "private pages of .so, .jar, .apk, .ttf, .dex, .oat, and with -d of compiled code"
        }
        "Graphics" => "private pages of Gfx dev, EGL mtrack, GL mtrack",
        "Private Other" => "private pages of all rows that no other part has",
        _ => return None,
    })
}

/// Which part of App Summary counts a row's private pages.
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

/// Every count of objects that is known.
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

/// What a count of objects means.
pub fn object(name: &str) -> Option<Meaning> {
    match name {
        "Views" => meaning(
            "Views that exist",
            "compare after going back to the same screen: growth each round is a leak",
        ),
        "ViewRootImpl" => meaning(
            "windows: one for each Activity, dialog and popup that is shown",
            "more than is shown means windows that were not removed",
        ),
        "AppContexts" => meaning(
            "contexts: of the application, Activities and Services",
            "growth means Activities or Services that are held",
        ),
        "Activities" => meaning(
            "Activities that exist, destroyed ones that are still held included",
            "more than the back stack holds is a leak: heaptap dump, then heaptap leaks; up to Android 5 unreachable ones count, too",
        ),
        "Assets" => meaning("open assets", "close streams of assets"),
        "AssetManagers" => meaning("managers of resources", "one for each set of APKs"),
        "Local Binders" => meaning(
            "binder objects that the app offers to others",
            "growth means listeners that are registered and never removed",
        ),
        "Proxy Binders" => meaning(
            "binder objects of others that the app holds",
            "growth means connections and callbacks that are kept",
        ),
        "Parcel memory" => meaning("KiB of parcels in use", "recycle parcels"),
        "Parcel count" => meaning("parcels in use", "recycle parcels"),
        "Death Recipients" => meaning(
            "watchers of other processes' deaths",
            "unlinkToDeath what was linked",
        ),
        "OpenSSL Sockets" => meaning("TLS connections", "close connections and their pools"),
        "WebViews" => meaning(
            "WebViews that exist",
            "destroy() them: each holds tens of MiB here and in its renderer",
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
