//! Memory mappings of a process and their resident pages: the heaps, the stacks, the code with its
//! segments, shared memory, devices. All reports of a process's memory sum these up.

use super::java::{JavaHeapState, has_java};
use super::native::NativeHeap;
use super::numbers::{hash, mix};
use crate::clock::{BootNs, SECOND};
use crate::history::History;
use crate::packages::Package;
use crate::process::{Process, Role};
use crate::spec::PhoneSpec;

const PAGE_KB: u64 = 4;
/// Time in nanoseconds until a background process is swapped out as far as it gets.
const SWAPPED_AFTER: u64 = 600 * SECOND;

/// Memory of a mapping in kB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pages {
    pub(crate) pss: u64,
    pub(crate) shared_clean: u64,
    pub(crate) shared_dirty: u64,
    pub(crate) private_clean: u64,
    pub(crate) private_dirty: u64,
    pub(crate) swap: u64,
    pub(crate) swap_pss: u64,
}

impl Pages {
    pub(crate) fn rss(&self) -> u64 {
        self.shared_clean + self.shared_dirty + self.private_clean + self.private_dirty
    }

    pub(crate) fn uss(&self) -> u64 {
        self.private_clean + self.private_dirty
    }

    pub(crate) fn add(&mut self, other: &Pages) {
        self.pss += other.pss;
        self.shared_clean += other.shared_clean;
        self.shared_dirty += other.shared_dirty;
        self.private_clean += other.private_clean;
        self.private_dirty += other.private_dirty;
        self.swap += other.swap;
        self.swap_pss += other.swap_pss;
    }
}

/// Backing of a mapping, as the kernel counts resident pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backing {
    Anonymous,
    File,
    Shared,
}

/// One memory mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) permissions: &'static str,
    pub(crate) offset: u64,
    pub(crate) inode: u64,
    /// Name in /proc/PID/maps; empty if there is none.
    pub(crate) name: String,
    pub(crate) backing: Backing,
    pub(crate) pages: Pages,
}

impl Mapping {
    /// Returns private memory without a place.
    fn anonymous(name: &str, pages: Pages) -> Mapping {
        Mapping {
            start: 0,
            end: 0,
            permissions: "rw-p",
            offset: 0,
            inode: 0,
            name: name.to_owned(),
            backing: Backing::Anonymous,
            pages,
        }
    }

    pub(crate) fn size_kb(&self) -> u64 {
        (self.end - self.start) >> 10
    }

    /// Returns the resident pages in kB that are the process's own copies or not from a file.
    pub(crate) fn anonymous_kb(&self) -> u64 {
        match self.backing {
            Backing::Anonymous => self.pages.rss(),
            Backing::File => self.pages.private_dirty,
            Backing::Shared => 0,
        }
    }

    /// Returns the resident pages of shared memory in kB.
    pub(crate) fn shmem_kb(&self) -> u64 {
        match self.backing {
            Backing::Shared => self.pages.rss(),
            _ => 0,
        }
    }
}

/// Inputs of the mappings of a process.
pub(super) struct Inputs<'a> {
    pub(super) spec: &'a PhoneSpec,
    pub(super) package: Option<&'a Package>,
    pub(super) process: &'a Process,
    pub(super) history: &'a History,
    pub(super) at: BootNs,
    pub(super) native: &'a NativeHeap,
    pub(super) java: Option<&'a JavaHeapState>,
    /// Size in bytes of the app's own arena.
    pub(super) arena: u64,
    /// Number of threads besides the main one.
    pub(super) threads: u64,
    /// Code in stacks of the process: path, start, end, file offset.
    pub(super) code: &'a [(String, u64, u64, u64)],
    /// Whether it is in the background and thus swapped out and killed first.
    pub(super) in_back: bool,
    /// Number of processes that share the pages of the zygote.
    pub(super) sharers: u64,
    pub(super) seed: u64,
}

/// Returns the percentage of private dirty pages that are swapped out.
fn swapped(inputs: &Inputs<'_>) -> u64 {
    let adj = inputs.process.oom_score_adj;
    let rest = match adj {
        i32::MIN..=0 => 2,
        1..=200 => 8,
        _ => 14,
    };
    if !inputs.in_back {
        return rest;
    }
    let since = inputs.history.hidden_since(inputs.at);
    let gone = inputs.at.saturating_sub(since).min(SWAPPED_AFTER);
    rest + 36 * gone / SWAPPED_AFTER
}

struct List<'a> {
    inputs: &'a Inputs<'a>,
    all: Vec<Mapping>,
    /// Next free address for anonymous memory, and for memory below 4 GiB.
    high: u64,
    low: u64,
    swapped: u64,
    pages_kb: u64,
}

fn kb(bytes: u64) -> u64 {
    bytes.div_ceil(4096) * PAGE_KB
}

/// Returns the whole pages of a size in kB.
fn round(kb: u64) -> u64 {
    kb / PAGE_KB * PAGE_KB
}

impl List<'_> {
    /// Returns the start of the next free addresses for this size.
    fn place(&mut self, low: bool, size_kb: u64) -> u64 {
        let next = if low { &mut self.low } else { &mut self.high };
        let start = *next;
        *next += (size_kb << 10) + (64 << 10);
        start
    }

    /// Adds a mapping of `size_kb` from `start` on.
    fn push(&mut self, start: u64, size_kb: u64, mapping: Mapping) {
        let end = start + (size_kb << 10);
        self.all.push(Mapping {
            start,
            end,
            ..mapping
        });
    }

    /// Adds private memory: `dirty` kB are written, `shared` kB are still the zygote's.
    fn anonymous(&mut self, name: &str, low: bool, size_kb: u64, dirty: u64, shared: u64) {
        let size_kb = size_kb.max(dirty + shared).next_multiple_of(PAGE_KB);
        let swap = round(dirty * self.swapped / 100);
        let shared_swap = round(shared * self.swapped / 100);
        let (dirty, shared) = (dirty - swap, shared - shared_swap);
        let sharers = self.inputs.sharers.max(1);
        let pages = Pages {
            pss: dirty + shared / sharers,
            shared_dirty: shared,
            private_dirty: dirty,
            swap: swap + shared_swap,
            swap_pss: swap + shared_swap / sharers,
            ..Pages::default()
        };
        let start = self.place(low, size_kb);
        self.push(start, size_kb, Mapping::anonymous(name, pages));
    }

    /// Adds private memory with a name of [`List::anonymous`] in the usual form.
    fn anon(&mut self, name: &str, size_kb: u64, dirty: u64, shared: u64) {
        self.anonymous(&format!("[anon:{name}]"), false, size_kb, dirty, shared);
    }

    /// Adds memory that other processes can map, too.
    fn shared(&mut self, name: &str, permissions: &'static str, size_kb: u64, own: u64, with: u64) {
        let size_kb = size_kb.max(own + with).next_multiple_of(PAGE_KB);
        let pages = Pages {
            pss: own + with / 2,
            shared_dirty: with,
            private_dirty: own,
            ..Pages::default()
        };
        let mapping = Mapping {
            permissions,
            inode: hash(name) % 60_000 + 200,
            backing: Backing::Shared,
            ..Mapping::anonymous(name, pages)
        };
        let start = self.place(false, size_kb);
        self.push(start, size_kb, mapping);
    }

    /// Adds a part of a file from `offset` on: `touched` percent are resident, and `own` percent of
    /// those are only in this process. `dirty` kB are written.
    fn file(&mut self, part: Part<'_>) {
        let size_kb = part.size_kb.max(PAGE_KB).next_multiple_of(PAGE_KB);
        let start = part.start.unwrap_or_else(|| self.place(false, size_kb));
        let dirty = round(part.dirty.min(size_kb));
        let swap = round(dirty * self.swapped / 100);
        let resident = round((size_kb - dirty) * part.touched / 100);
        let clean = round(resident * part.own / 100);
        let shared = resident - clean;
        let private_dirty = dirty - swap;
        let shared_dirty = round(part.shared_dirty.min(size_kb - dirty - resident));
        let pages = Pages {
            pss: private_dirty + clean + (shared + shared_dirty) / part.sharers.max(1),
            shared_clean: shared,
            shared_dirty,
            private_clean: clean,
            private_dirty,
            swap,
            swap_pss: swap,
        };
        let mapping = Mapping {
            permissions: part.permissions,
            offset: part.offset,
            inode: hash(part.name) % 90_000 + 1_000,
            backing: Backing::File,
            ..Mapping::anonymous(part.name, pages)
        };
        self.push(start, size_kb, mapping);
    }

    /// Adds a library as the dynamic linker maps it: headers, code, constants, data, and
    /// zero-initialized data.
    fn library(&mut self, name: &str, code: Option<(u64, u64, u64)>, size_kb: u64, shared: bool) {
        let random = mix(&[hash(name), 0x6c69_6272]);
        let (start, code_kb, offset) = match code {
            Some((start, end, offset)) => (Some(start), (end - start) >> 10, offset),
            None => (None, size_kb, (size_kb << 10) / 2),
        };
        let touched = 35 + random % 50;
        let pages = |kb: u64| kb.next_multiple_of(PAGE_KB).max(PAGE_KB);
        let below = (code_kb / 2).next_multiple_of(PAGE_KB);
        let (constants, data) = (pages(code_kb / 16), pages(code_kb / 48));
        let whole = match shared {
            true => Part {
                own: 2 + random % 6,
                ..Part::shared(name, self.inputs.sharers)
            },
            false => Part::own(name),
        };
        self.file(Part {
            size_kb: below,
            touched: touched * 2 / 3,
            start: start.and_then(|s| s.checked_sub(below << 10)),
            ..whole
        });
        // The parts after the code are all written: constants by the linker, before the zygote forks.
        let (own, inherited) = if shared {
            (0, constants)
        } else {
            (constants, 0)
        };
        let mut at = 0;
        for (permissions, size_kb, touched, dirty, shared_dirty) in [
            ("r-xp", code_kb, touched, 0, 0),
            ("r--p", constants, 0, own, inherited),
            ("rw-p", data, 0, data, 0),
        ] {
            self.file(Part {
                permissions,
                size_kb,
                offset: offset + at,
                touched,
                dirty,
                shared_dirty,
                start: start.map(|start| start + at),
                ..whole
            });
            at += size_kb << 10;
        }
        // Zero-initialized data follows without a name.
        if random.is_multiple_of(3) {
            let last = self.all.last().map_or(0, |m| m.end);
            let pages = Pages {
                pss: data,
                private_dirty: data,
                ..Pages::default()
            };
            self.push(last, data, Mapping::anonymous("", pages));
            let end = last + (data << 10);
            if self.high <= end && start.is_none() {
                self.high = end + (64 << 10);
            }
        }
    }

    fn threads(&mut self) {
        // The main thread's stack, then one for each other thread.
        self.anonymous("[stack]", false, 8_192, 48 + self.pages_kb % 5 * PAGE_KB, 0);
        let pid = u64::from(self.inputs.process.pid);
        for n in 1..=self.inputs.threads {
            let touched = 8 + mix(&[self.inputs.seed, n, 0x7374]) % 9 * PAGE_KB;
            self.anon(&format!("stack_and_tls:{}", pid + n), 1_012, touched, 0);
        }
    }

    fn native(&mut self) {
        let heap = self.inputs.native;
        // Some pages of the zygote have not been written since the fork.
        let shared = match has_java(self.inputs.process) {
            true => round(kb(heap.inherited.rounded()) * 2 / 5),
            false => 0,
        };
        let small = kb(heap.resident - heap.in_own_pages).saturating_sub(shared);
        let (mapped, large) = (kb(heap.mapped), kb(heap.in_own_pages));
        if self.inputs.spec.android < 11 {
            return self.anon("libc_malloc", mapped, small + large, shared);
        }
        self.anon("scudo:primary", mapped.saturating_sub(large), small, shared);
        if large > 0 {
            self.anon("scudo:secondary", large, large, 0);
        }
    }

    fn java(&mut self, java: &JavaHeapState) {
        let spec = self.inputs.spec;
        let growth = java.limits.growth >> 10;
        // Reserve less if addresses are scarce.
        let roomy = spec.abi.of_process(self.inputs.process.bits_32).is_64_bit();
        let reserved = if roomy { growth * 2 } else { growth };
        let main = match spec.android {
            ..=13 => "main space (region space)",
            _ => "main space",
        };
        // Regions are a quarter of a MiB; the last ones of each kind are partly empty.
        let small = kb(java.small() + java.small() / 40) + 256;
        let zygote = kb(java.live.zygote());
        let copied = round(zygote / 5);
        let large = kb(java.large());
        let los = if roomy { reserved } else { large };
        for (name, size, dirty, shared) in [
            (main, reserved, small, 0),
            ("zygote space", zygote + 128, copied, zygote - copied),
            ("non moving space", 65_536, 1_204, 96),
            ("free list large object space", los, large, 0),
        ] {
            self.anonymous(&dalvik(name), true, size, dirty, shared);
        }
        let image = kb(java.live.image()).max(64);
        for name in ["boot.art", "boot-framework.art", "boot-core-libart.art"] {
            let random = mix(&[self.inputs.seed, hash(name)]);
            let size = image * 2 + random % 400 * PAGE_KB + 800;
            let dirty = 40 + random % 60 * PAGE_KB;
            let name = dalvik(&format!("/system/framework/{name}"));
            self.anonymous(&name, true, size, dirty, round((size - dirty) * 3 / 4));
        }
        let objects = java.live.small_objects() + java.passing.small_objects;
        let linear = 320 + objects / 400 * 4;
        self.anonymous(&dalvik("LinearAlloc"), true, 4_096, linear, 188);
        let cards = (java.allocated() >> 18) * 4 + 32;
        let marks = (java.allocated() >> 20).max(1) * 4;
        for (name, size, dirty) in [
            ("card table", growth * 2 / 1_024 + 64, cards),
            ("mark stack", 2_048, marks),
            ("live stack", 512, 12),
            ("indirect ref table", 512, 16),
            ("CompilerMetadata", 256, 24),
        ] {
            self.anonymous(&dalvik(name), false, size, dirty, 0);
        }
        let jit = self.inputs.history.awake(self.inputs.at) / SECOND;
        let compiled = 96 + jit.min(400) / 8 * PAGE_KB;
        self.shared("/memfd:jit-cache (deleted)", "rw-s", 32_768, compiled, 0);
        self.shared("/memfd:jit-zygote-cache (deleted)", "r-xs", 32_768, 0, 240);
    }

    fn code(&mut self) {
        let inputs = self.inputs;
        for (path, start, end, offset) in inputs.code {
            let apk = path.split_once('!').map(|(apk, _)| apk);
            let own = path.starts_with("/data/");
            let name = apk.unwrap_or(path);
            if name.ends_with(".so") {
                self.library(name, Some((*start, *end, *offset)), 0, !own);
            } else if !name.is_empty() && !name.starts_with("/memfd:") {
                let whole = match own {
                    true => Part::own(name),
                    false => Part {
                        own: 3,
                        ..Part::shared(name, inputs.sharers)
                    },
                };
                self.file(Part {
                    permissions: "r-xp",
                    size_kb: (end - start) >> 10,
                    offset: *offset,
                    touched: 60,
                    start: Some(*start),
                    ..whole
                });
            }
        }
        let java = has_java(inputs.process) || inputs.process.role == Role::Zygote;
        let lib = if inputs.process.bits_32 {
            "lib"
        } else {
            "lib64"
        };
        let known = |path: &str| inputs.code.iter().any(|(p, ..)| p == path);
        for (name, size_kb, apps) in LIBRARIES {
            let path = name.replace("LIB", lib);
            if (java || !apps) && !known(&path) {
                self.library(&path, None, *size_kb, true);
            }
        }
        if !java {
            return;
        }
        for (name, size_kb, touched) in FRAMEWORK {
            self.file(Part {
                size_kb: *size_kb,
                touched: *touched,
                ..Part::shared(name, inputs.sharers)
            });
        }
        if let Some(package) = inputs.package {
            let random = mix(&[inputs.seed, hash(package.name)]);
            let isa = inputs.spec.abi.of_process(inputs.process.bits_32).isa();
            let oat = format!("{}/oat/{isa}/base", package.code_path());
            let odex = format!("{oat}.odex");
            for (name, size_kb, touched) in [
                (package.apk(), 9_000 + random % 4_000, 22),
                (odex.clone(), 640, 55),
                (format!("{oat}.vdex"), 3_400 + random % 900, 40),
            ] {
                if name != odex || !known(&odex) {
                    self.file(Part {
                        size_kb,
                        touched,
                        ..Part::own(&name)
                    });
                }
            }
            self.anonymous(&dalvik(&format!("{oat}.art")), true, 480, 212, 0);
        }
    }

    fn devices(&mut self) {
        let inputs = self.inputs;
        self.shared("/dev/__properties__/properties_serial", "r--s", 128, 0, 8);
        self.shared("/dev/binderfs/binder", "r--s", 1_016, 8, 0);
        if !has_java(inputs.process) {
            return;
        }
        // Phones up to Android 12 have a GPU of one maker, later ones of another.
        let gpu = match inputs.spec.android {
            ..=12 => "/dev/kgsl-3d0",
            _ => "/dev/mali0",
        };
        let windows = inputs
            .java
            .map_or(0, |j| j.live.instances("android.view.ViewRootImpl"));
        if windows > 0 {
            let kept = if inputs.in_back { 96 } else { 640 };
            self.shared(gpu, "rw-s", 4_096, kept + windows * 288, 0);
        }
        if let Some(package) = inputs.package.filter(|p| !p.system) {
            let database = format!("/data/user/0/{}/databases/feed.db", package.name);
            let name = format!("/dev/ashmem/CursorWindow: {database}");
            self.shared(&name, "rw-s", 2_048, 44, 0);
        }
        self.shared("/dev/ashmem/GFXStats", "rw-s", 8, 0, 4);
    }

    fn rest(&mut self) {
        if self.inputs.arena > 0 {
            let arena = kb(self.inputs.arena);
            self.anon("example-arena", arena, arena, 0);
        }
        let shared = if has_java(self.inputs.process) { 80 } else { 0 };
        self.anon("linker_alloc", 240, 96, shared);
        self.anon("bionic TLS", 16, 12, 0);
        self.anonymous("", false, 64, 20, 0);
    }
}

/// Returns the name of memory of the Java runtime.
fn dalvik(name: &str) -> String {
    format!("[anon:dalvik-{name}]")
}

/// A part of a file.
#[derive(Clone, Copy)]
struct Part<'a> {
    name: &'a str,
    permissions: &'static str,
    size_kb: u64,
    offset: u64,
    /// Percentage of it that is resident, and percentage of those pages that are only in this
    /// process.
    touched: u64,
    own: u64,
    dirty: u64,
    shared_dirty: u64,
    sharers: u64,
    /// Start address, if it is fixed.
    start: Option<u64>,
}

impl<'a> Part<'a> {
    /// Returns an empty part of a file that only this process maps.
    fn own(name: &'a str) -> Part<'a> {
        Part {
            own: 100,
            ..Part::shared(name, 1)
        }
    }

    /// Returns an empty part of a file that so many processes map.
    fn shared(name: &'a str, sharers: u64) -> Part<'a> {
        Part {
            name,
            permissions: "r--p",
            size_kb: 0,
            offset: 0,
            touched: 0,
            own: 1,
            dirty: 0,
            shared_dirty: 0,
            sharers,
            start: None,
        }
    }
}

/// System libraries besides those in stacks: kB of code, and whether only processes forked from the
/// zygote have it.
const LIBRARIES: &[(&str, u64, bool)] = &[
    ("/apex/com.android.runtime/LIB/bionic/libc.so", 560, false),
    ("/apex/com.android.runtime/LIB/bionic/libm.so", 140, false),
    ("/apex/com.android.runtime/LIB/bionic/libdl.so", 8, false),
    ("/system/LIB/libc++.so", 420, false),
    ("/system/LIB/liblog.so", 40, false),
    ("/system/LIB/libutils.so", 64, false),
    ("/system/LIB/libbinder.so", 380, false),
    ("/system/LIB/libcutils.so", 48, false),
    ("/system/LIB/libbase.so", 180, false),
    ("/apex/com.android.art/LIB/libart.so", 6_800, true),
    ("/apex/com.android.art/LIB/libartbase.so", 420, true),
    ("/apex/com.android.art/LIB/libdexfile.so", 400, true),
    ("/apex/com.android.art/LIB/libopenjdk.so", 160, true),
    ("/apex/com.android.i18n/LIB/libicuuc.so", 1_300, true),
    ("/apex/com.android.i18n/LIB/libicui18n.so", 1_700, true),
    ("/system/LIB/libandroid_runtime.so", 1_400, true),
    ("/system/LIB/libhwui.so", 7_600, true),
    ("/system/LIB/libgui.so", 1_100, true),
    ("/system/LIB/libui.so", 220, true),
    ("/system/LIB/libcrypto.so", 900, true),
    ("/system/LIB/libsqlite.so", 900, true),
    ("/system/LIB/libandroidfw.so", 420, true),
    ("/system/LIB/libminikin.so", 340, true),
    ("/system/LIB/libharfbuzz_ng.so", 700, true),
    ("/vendor/LIB/egl/libGLES_mali.so", 14_000, true),
];

/// Framework files mapped in processes with a Java heap: kB, and resident percentage.
const FRAMEWORK: &[(&str, u64, u64)] = &[
    ("/system/framework/framework-res.apk", 32_000, 5),
    ("/system/framework/framework.jar", 38_000, 4),
    ("/apex/com.android.art/javalib/core-oj.jar", 5_200, 6),
    ("/system/framework/arm64/boot.oat", 2_600, 30),
    ("/system/framework/arm64/boot-framework.oat", 21_000, 32),
    ("/system/framework/boot.vdex", 180, 40),
    ("/system/framework/boot-framework.vdex", 900, 40),
    ("/system/fonts/Roboto-Regular.ttf", 2_300, 18),
    ("/system/fonts/NotoColorEmoji.ttf", 10_200, 3),
    ("/apex/com.android.tzdata/etc/tz/tzdata", 460, 12),
    ("/apex/com.android.i18n/etc/icu/icudt72l.dat", 29_000, 5),
    ("/system/usr/hyphen-data/hyph-en-us.hyb", 40, 30),
];

/// Returns all mappings of the process by address.
pub(super) fn of(inputs: &Inputs<'_>) -> Vec<Mapping> {
    let abi = inputs.spec.abi.of_process(inputs.process.bits_32);
    let bits_64 = abi.is_64_bit();
    let mut list = List {
        inputs,
        all: Vec::new(),
        high: if bits_64 { 0x79_0000_0000 } else { 0x4800_0000 },
        low: if bits_64 { 0x12c0_0000 } else { 0x0400_0000 },
        swapped: swapped(inputs),
        pages_kb: mix(&[inputs.seed, 0x7061]),
    };
    if let Some(java) = inputs.java {
        list.java(java);
    }
    list.native();
    list.threads();
    list.devices();
    list.code();
    list.rest();
    list.all.sort_by_key(|m| (m.start, m.end));
    list.all
}
