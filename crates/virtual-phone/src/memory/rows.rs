//! The rows of `dumpsys meminfo`: sums of the mappings by the platform's rules for their names, and
//! the values of the memtrack HAL. Owns the assignment of mappings to rows.

use super::mappings::{Mapping, Pages};
use crate::named::named;

named! {
    /// A row of the table, in its order, with its label.
    pub(crate) enum Row {
        Native = "Native Heap",
        Dalvik = "Dalvik Heap",
        DalvikOther = "Dalvik Other",
        Stack = "Stack",
        Cursor = "Cursor",
        Ashmem = "Ashmem",
        GfxDev = "Gfx dev",
        OtherDev = "Other dev",
        So = ".so mmap",
        Jar = ".jar mmap",
        Apk = ".apk mmap",
        Ttf = ".ttf mmap",
        Dex = ".dex mmap",
        Oat = ".oat mmap",
        Art = ".art mmap",
        OtherMap = "Other mmap",
        EglMtrack = "EGL mtrack",
        GlMtrack = "GL mtrack",
        Unknown = "Unknown",
    }
}

impl Row {
    /// Returns whether its clean pages can be read again from a file.
    fn swappable(self) -> bool {
        (Row::So..=Row::Art).contains(&self)
    }
}

named! {
    /// A row of `Dalvik Details`, in the order of Android 11 and later, with its label.
    pub(crate) enum Detail {
        Heap = ".Heap",
        Los = ".LOS",
        Zygote = ".Zygote",
        NonMoving = ".NonMoving",
        LinearAlloc = ".LinearAlloc",
        Gc = ".GC",
        ZygoteJit = ".ZygoteJIT",
        AppJit = ".AppJIT",
        CompilerMetadata = ".CompilerMetadata",
        IndirectRef = ".IndirectRef",
        BootVdex = ".Boot vdex",
        AppDex = ".App dex",
        AppVdex = ".App vdex",
        AppArt = ".App art",
        BootArt = ".Boot art",
    }
}

/// Sums of a row in kB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) pages: Pages,
    /// Part of the Pss that could be released at once.
    pub(crate) clean_pss: u64,
}

impl Sums {
    fn add(&mut self, pages: &Pages, swappable: bool) {
        self.pages.add(pages);
        if swappable && pages.pss > 0 {
            let shared = pages.shared_clean + pages.shared_dirty;
            let ours = pages.pss.saturating_sub(pages.uss());
            let of_shared = match shared {
                0 => 0,
                _ => ours * pages.shared_clean / shared,
            };
            self.clean_pss += of_shared + pages.private_clean;
        }
    }

    /// Returns whether the row is omitted.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages == Pages::default()
    }
}

/// Values of the memtrack HAL for a process in kB; they are not in any mapping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Graphics {
    /// Buffers of windows.
    pub(crate) egl: u64,
    /// Textures and similar memory.
    pub(crate) gl: u64,
}

/// The whole table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    rows: Vec<Sums>,
    details: Vec<Sums>,
}

impl Rows {
    /// Sums the mappings of a process, which are in the order of their addresses.
    pub(crate) fn new(mappings: &[Mapping], graphics: Graphics) -> Rows {
        let mut table = Rows {
            rows: vec![Sums::default(); Row::ALL.len()],
            details: vec![Sums::default(); Detail::ALL.len()],
        };
        let mut before: Option<(u64, Row)> = None;
        for mapping in mappings {
            let follows = before.filter(|(end, _)| *end == mapping.start).map(|b| b.1);
            let (row, detail) = kind(&mapping.name, follows);
            table.rows[row as usize].add(&mapping.pages, row.swappable());
            if let Some(detail) = detail {
                table.details[detail as usize].add(&mapping.pages, row.swappable());
            }
            before = Some((mapping.end, row));
        }
        for (row, kb) in [(Row::EglMtrack, graphics.egl), (Row::GlMtrack, graphics.gl)] {
            let pages = Pages {
                pss: kb,
                private_dirty: kb,
                ..Pages::default()
            };
            table.rows[row as usize].add(&pages, false);
        }
        table
    }

    pub(crate) fn row(&self, row: Row) -> Sums {
        self.rows[row as usize]
    }

    pub(crate) fn detail(&self, detail: Detail) -> Sums {
        self.details[detail as usize]
    }

    /// Returns the sum of all rows, without swapped-out memory.
    pub(crate) fn sum(&self) -> Sums {
        let mut sum = Sums::default();
        for row in &self.rows {
            sum.pages.add(&row.pages);
            sum.clean_pss += row.clean_pss;
        }
        sum
    }

    /// Returns TOTAL's Pss: the rows' Pss and the process's own swapped-out memory.
    pub(crate) fn total_pss(&self) -> u64 {
        let sum = self.sum();
        sum.pages.pss + sum.pages.swap_pss
    }

    fn private(&self, rows: &[Row]) -> u64 {
        rows.iter().map(|r| self.row(*r).pages.uss()).sum()
    }

    fn rss(&self, rows: &[Row]) -> u64 {
        rows.iter().map(|r| self.row(*r).pages.rss()).sum()
    }

    /// Returns the App Summary of an Android release.
    pub(crate) fn summary(&self, android: u32) -> Summary {
        let sum = self.sum();
        let jit = [Detail::ZygoteJit, Detail::AppJit].map(|d| self.detail(d).pages);
        // Since Android 11, JIT-compiled code counts as code.
        let jit = jit.iter().filter(|_| android >= 11);
        let code = [Row::So, Row::Jar, Row::Apk, Row::Ttf, Row::Dex, Row::Oat];
        let graphics = [Row::GfxDev, Row::EglMtrack, Row::GlMtrack];
        let dirty = |row| self.row(row).pages.private_dirty;
        let parts = [
            (
                dirty(Row::Dalvik) + self.private(&[Row::Art]),
                self.rss(&[Row::Dalvik, Row::Art]),
            ),
            (dirty(Row::Native), self.rss(&[Row::Native])),
            (
                self.private(&code) + jit.clone().map(Pages::uss).sum::<u64>(),
                self.rss(&code) + jit.map(Pages::rss).sum::<u64>(),
            ),
            (dirty(Row::Stack), self.rss(&[Row::Stack])),
            (self.private(&graphics), self.rss(&graphics)),
        ];
        let known: u64 = parts.iter().map(|(pss, _)| pss).sum();
        let known_rss: u64 = parts.iter().map(|(_, rss)| rss).sum();
        Summary {
            parts,
            private_other: sum.pages.uss() as i64 - known as i64,
            system: self.total_pss() as i64 - sum.pages.uss() as i64,
            unknown_rss: sum.pages.rss() as i64 - known_rss as i64,
        }
    }
}

/// The App Summary in kB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Pss (of private pages) and Rss of the Java heap, the native heap, code, stack and graphics.
    pub(crate) parts: [(u64, u64); 5],
    pub(crate) private_other: i64,
    pub(crate) system: i64,
    pub(crate) unknown_rss: i64,
}

/// Row by the name of a mapping; the first rule that fits decides. `^` compares the start of the
/// name, `$` its end.
const ROWS: [(&str, Row); 21] = [
    ("^[anon:libc_malloc]", Row::Native),
    ("^[anon:scudo:", Row::Native),
    ("^[stack", Row::Stack),
    ("^[anon:stack_and_tls:", Row::Stack),
    ("$.so", Row::So),
    ("$.jar", Row::Jar),
    ("$.apk", Row::Apk),
    ("$.ttf", Row::Ttf),
    ("$.odex", Row::Dex),
    ("$.vdex", Row::Dex),
    ("$.oat", Row::Oat),
    ("$.art]", Row::Art),
    ("^/dev/kgsl-3d0", Row::GfxDev),
    ("^/dev/ashmem/CursorWindow", Row::Cursor),
    ("^/dev/ashmem", Row::Ashmem),
    ("^/dev/", Row::OtherDev),
    ("^/memfd:jit-", Row::DalvikOther),
    ("$space]", Row::Dalvik),
    ("$(region space)]", Row::Dalvik),
    ("^[anon:dalvik-", Row::DalvikOther),
    ("^[anon:", Row::Unknown),
];

/// Detail by the name of a mapping, as [`ROWS`].
const DETAILS: [(&str, Detail); 15] = [
    ("$.odex", Detail::AppDex),
    ("$/framework/boot.vdex", Detail::BootVdex),
    ("$/framework/boot-framework.vdex", Detail::BootVdex),
    ("$.vdex", Detail::AppVdex),
    ("^[anon:dalvik-/system/framework/boot", Detail::BootArt),
    ("$.art]", Detail::AppArt),
    ("^/memfd:jit-cache", Detail::AppJit),
    ("^/memfd:jit-zygote-cache", Detail::ZygoteJit),
    ("^[anon:dalvik-LinearAlloc", Detail::LinearAlloc),
    ("^[anon:dalvik-main space", Detail::Heap),
    ("^[anon:dalvik-free list large", Detail::Los),
    ("^[anon:dalvik-non moving space", Detail::NonMoving),
    ("^[anon:dalvik-zygote space", Detail::Zygote),
    ("^[anon:dalvik-indirect ref", Detail::IndirectRef),
    ("^[anon:dalvik-CompilerMeta", Detail::CompilerMetadata),
];

/// Returns row and detail of a mapping by its name; `follows` is the row of the mapping that ends
/// at its start.
fn kind(name: &str, follows: Option<Row>) -> (Row, Option<Detail>) {
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    if name.is_empty() {
        let row = follows.filter(|row| *row == Row::So);
        return (row.unwrap_or(Row::Unknown), None);
    }
    let row = first(&ROWS, name).unwrap_or(Row::OtherMap);
    let collector = name.starts_with("[anon:dalvik-").then_some(Detail::Gc);
    (row, first(&DETAILS, name).or(collector))
}

/// Returns the value of the first rule that fits a name.
fn first<T: Copy>(rules: &[(&str, T)], name: &str) -> Option<T> {
    let fits = |rule: &str| match rule.split_at(1) {
        ("^", start) => name.starts_with(start),
        (_, end) => name.ends_with(end),
    };
    let found = rules.iter().find(|(rule, _)| fits(rule));
    found.map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_rows_as_the_platform_has_it() {
        for (name, row, detail) in [
            ("[anon:scudo:primary]", Row::Native, None),
            ("[anon:libc_malloc]", Row::Native, None),
            ("[stack]", Row::Stack, None),
            ("[anon:stack_and_tls:77]", Row::Stack, None),
            ("/system/lib64/libc.so", Row::So, None),
            ("/data/app/a==/base.odex", Row::Dex, Some(Detail::AppDex)),
            ("/data/app/a==/base.vdex", Row::Dex, Some(Detail::AppVdex)),
            (
                "/system/framework/boot.vdex",
                Row::Dex,
                Some(Detail::BootVdex),
            ),
            (
                "[anon:dalvik-/system/framework/boot.art]",
                Row::Art,
                Some(Detail::BootArt),
            ),
            ("/dev/kgsl-3d0", Row::GfxDev, None),
            ("/dev/mali0", Row::OtherDev, None),
            ("/dev/ashmem/CursorWindow: /data/x.db", Row::Cursor, None),
            ("/dev/ashmem/x", Row::Ashmem, None),
            (
                "/memfd:jit-cache (deleted)",
                Row::DalvikOther,
                Some(Detail::AppJit),
            ),
            (
                "[anon:dalvik-main space (region space)]",
                Row::Dalvik,
                Some(Detail::Heap),
            ),
            (
                "[anon:dalvik-card table]",
                Row::DalvikOther,
                Some(Detail::Gc),
            ),
            ("[anon:linker_alloc]", Row::Unknown, None),
            ("", Row::Unknown, None),
            ("/system/usr/hyphen-data/a.hyb", Row::OtherMap, None),
        ] {
            assert_eq!(kind(name, None), (row, detail), "{name}");
        }
        assert_eq!(kind("", Some(Row::So)).0, Row::So);
    }
}
