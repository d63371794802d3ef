//! App Summary's rules: as which part of a process's memory a row of meminfo counts, and what of
//! it. One place for rows that the phone printed and for mappings that were added up here.

use heaptap_model::timeline::{Parts, Source};

/// A part that rows are named for; what is private and in none of them is Private Other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Java Heap.
    Java,
    /// Java Heap, but of images of the heap clean pages count, too.
    JavaImages,
    /// Native Heap.
    Native,
    /// Code.
    Code,
    /// Stack.
    Stack,
    /// Graphics.
    Graphics,
}

impl Part {
    /// Of a row of the table; by its older name, too.
    pub(super) fn of_row(label: &str) -> Option<Part> {
        Some(match label {
            "Dalvik Heap" | "Dalvik" => Part::Java,
            ".art mmap" => Part::JavaImages,
            "Native Heap" | "Native" => Part::Native,
            ".so mmap" | ".jar mmap" | ".apk mmap" | ".ttf mmap" | ".dex mmap" | ".oat mmap" => {
                Part::Code
            }
            "Stack" => Part::Stack,
            "Gfx dev" | "EGL mtrack" | "GL mtrack" => Part::Graphics,
            _ => return None,
        })
    }

    /// Of a row of Dalvik Details that counts otherwise than the row it is part of: code that was
    /// compiled in the app (Android 11).
    pub(super) fn of_detail(label: &str) -> Option<Part> {
        matches!(label, ".ZygoteJIT" | ".AppJIT").then_some(Part::Code)
    }
}

/// Rows as they are added up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Division {
    java: i64,
    native: i64,
    code: i64,
    stack: i64,
    graphics: i64,
}

impl Division {
    /// Counts private pages of a row.
    pub(super) fn add(&mut self, part: Option<Part>, dirty: i64, clean: i64) {
        let both = dirty.saturating_add(clean);
        let (sum, counted) = match part {
            Some(Part::Java) => (&mut self.java, dirty),
            Some(Part::JavaImages) => (&mut self.java, both),
            Some(Part::Native) => (&mut self.native, dirty),
            Some(Part::Code) => (&mut self.code, both),
            Some(Part::Stack) => (&mut self.stack, dirty),
            Some(Part::Graphics) => (&mut self.graphics, both),
            None => return,
        };
        *sum = sum.saturating_add(counted);
    }

    /// How `private` pages of all rows and the PSS divide.
    pub(super) fn parts(self, source: Source, private: i64, total_pss: i64) -> Parts {
        let named = [self.java, self.native, self.code, self.stack, self.graphics];
        let named = named.into_iter().fold(0, i64::saturating_add);
        Parts {
            source,
            java: self.java,
            native: self.native,
            code: self.code,
            stack: self.stack,
            graphics: self.graphics,
            private_other: private.saturating_sub(named),
            system: total_pss.saturating_sub(private),
            total_pss,
            total_rss: None,
            swap: None,
            native_heap: None,
            java_heap: None,
        }
    }
}
