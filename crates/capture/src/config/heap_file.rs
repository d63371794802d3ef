//! Spec of heap files from `am dumpheap`, adapted to each Android release.

use super::rules::{self, Notice};
use super::{ConfigError, Targets};

/// Format for the contents of bitmaps in a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BitmapFormat {
    /// Lossless.
    Png,
    /// At quality 90.
    Jpeg,
    /// At quality 90.
    Webp,
}

impl BitmapFormat {
    /// Returns the format as `am` spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            BitmapFormat::Png => "png",
            BitmapFormat::Jpeg => "jpg",
            BitmapFormat::Webp => "webp",
        }
    }
}

/// Heap files to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapFileSpec {
    pub targets: Targets,
    /// Dump the Java heap as HPROF.
    pub hprof: bool,
    /// Dump the output of `malloc_info`.
    pub malloc_info: bool,
    /// Collect garbage first.
    pub gc: bool,
    /// Format for the contents of bitmaps, if they are dumped.
    pub bitmaps: Option<BitmapFormat>,
    /// The Android user for `am`.
    pub user: Option<u32>,
}

/// First API levels with `-g`, `-m`, `-b`, and with an `am` that waits for the file.
const GC_SDK: u32 = 27;
const MALLOC_SDK: u32 = 28;
const BITMAPS_SDK: u32 = 35;
const WAITS_SDK: u32 = 29;

impl HeapFileSpec {
    /// Returns the spec of an HPROF.
    pub fn hprof(targets: Targets) -> HeapFileSpec {
        HeapFileSpec {
            targets,
            hprof: true,
            malloc_info: false,
            gc: true,
            bitmaps: None,
            user: None,
        }
    }

    /// Rejects specs without a process.
    ///
    /// # Errors
    /// Returns an error for the first broken rule, with its reason.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.targets.is_empty() {
            return Err(ConfigError::NoTarget);
        }
        rules::check_target_names(&self.targets)
    }

    /// Adapts this spec to a device of API level `sdk`.
    ///
    /// # Errors
    /// Returns an error if the device does not support the request.
    pub fn for_sdk(&self, sdk: u32) -> Result<(HeapFileSpec, Vec<Notice>), ConfigError> {
        let too_old = |option, needs, why| {
            Err(ConfigError::TooOld {
                option,
                needs,
                sdk,
                why,
            })
        };
        if self.bitmaps.is_some() && sdk < BITMAPS_SDK {
            return too_old(
                "--bitmaps",
                15,
                "its bitmaps store their pixels outside the Java heap, so a dump lacks them",
            );
        }
        if self.malloc_info && sdk < MALLOC_SDK {
            return too_old("--malloc-info", 9, "am dumpheap does not have this option");
        }
        let mut spec = self.clone();
        let mut notices = Vec::new();
        if self.hprof && self.gc && sdk < GC_SDK {
            spec.gc = false;
            notices.push(Notice::new(
                "no-gc-first",
                "before Android 8.1 garbage is not collected first, so the file contains it",
            ));
        }
        Ok((spec, notices))
    }

    /// Returns whether `am` of API level `sdk` returns only after the file is written.
    pub fn am_waits(sdk: u32) -> bool {
        sdk >= WAITS_SDK
    }

    /// Returns the flags of `am dumpheap` for the HPROF. A format always follows `-b`; otherwise
    /// `am` would parse the process as the format.
    pub fn hprof_flags(&self) -> String {
        let mut flags = self.user_flag();
        if self.gc {
            flags.push("-g".to_owned());
        }
        if let Some(format) = self.bitmaps {
            flags.push(format!("-b {}", format.as_str()));
        }
        flags.join(" ")
    }

    /// Returns the flags of `am dumpheap` for `malloc_info`.
    pub fn malloc_flags(&self) -> String {
        let mut flags = self.user_flag();
        flags.push("-m".to_owned());
        flags.join(" ")
    }

    fn user_flag(&self) -> Vec<String> {
        self.user
            .map(|user| format!("--user {user}"))
            .into_iter()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> HeapFileSpec {
        HeapFileSpec::hprof(Targets {
            names: vec!["com.example.app".to_owned()],
            ..Targets::default()
        })
    }

    #[test]
    fn each_release_gets_the_flags_it_knows() {
        let flags = |spec: &HeapFileSpec, sdk| spec.for_sdk(sdk).unwrap().0.hprof_flags();
        assert_eq!(flags(&spec(), 26), "");
        assert_eq!(spec().for_sdk(26).unwrap().1[0].kind, "no-gc-first");
        assert_eq!(flags(&spec(), 27), "-g");
        let all = HeapFileSpec {
            bitmaps: Some(BitmapFormat::Png),
            malloc_info: true,
            user: Some(10),
            ..spec()
        };
        assert_eq!(flags(&all, 35), "--user 10 -g -b png");
        assert_eq!(all.malloc_flags(), "--user 10 -m");
        let error = all.for_sdk(34).unwrap_err().to_string();
        assert!(error.contains("--bitmaps needs Android 15"), "{error}");
        let malloc = HeapFileSpec {
            malloc_info: true,
            ..spec()
        };
        assert!(malloc.for_sdk(28).is_ok());
        let error = malloc.for_sdk(27).unwrap_err().to_string();
        assert!(error.contains("--malloc-info needs Android 9"), "{error}");
    }
}
