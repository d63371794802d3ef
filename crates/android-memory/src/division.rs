//! App Summary's rules: the part in which each row of meminfo counts, and which of its pages count.
//! They apply to rows that the device printed and to mappings summed by this crate.

use heaptap_model::timeline::{Parts, Source};

/// A part of App Summary with its own rows. Private memory outside of these parts is Private Other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Java,
    /// Java Heap, in which clean pages of heap images also count.
    JavaImages,
    Native,
    Code,
    Stack,
    Graphics,
}

impl Part {
    /// Returns the part of a row of the table, by its current or older name.
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

    /// Returns the label of the part in App Summary.
    fn label(self) -> &'static str {
        match self {
            Part::Java | Part::JavaImages => "Java Heap",
            Part::Native => "Native Heap",
            Part::Code => "Code",
            Part::Stack => "Stack",
            Part::Graphics => "Graphics",
        }
    }

    /// Returns the part of a row of Dalvik Details that does not count like its parent row: code
    /// compiled in the app (Android 11).
    pub(super) fn of_detail(label: &str) -> Option<Part> {
        matches!(label, ".ZygoteJIT" | ".AppJIT").then_some(Part::Code)
    }
}

/// Returns the row of App Summary in which a row of the table counts: `Graphics` of `Gfx dev`.
pub fn summary_row(label: &str) -> Option<&'static str> {
    Part::of_row(label).map(Part::label)
}

/// Sums of rows by part.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Division {
    java: i64,
    native: i64,
    code: i64,
    stack: i64,
    graphics: i64,
}

impl Division {
    /// Adds the private pages of a row.
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

    /// Divides `private` pages of all rows and the PSS into parts.
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
