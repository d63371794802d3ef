//! Spec of heap files from `am dumpheap`, adapted to each Android release.

use super::error::{no_target, too_old};
use super::targets::{Targets, check_target_names};
use heaptap_base::error::Failure;

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

/// First API levels with an `am` that waits for the file, and with its `-b`.
const WAITS_SDK: u32 = 29;
const BITMAPS_SDK: u32 = 35;

impl HeapFileSpec {
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
    pub fn validate(&self) -> Result<(), Failure> {
        if self.targets.is_empty() {
            return Err(no_target());
        }
        check_target_names(&self.targets)
    }

    /// Rejects specs that a device of API level `sdk` does not support.
    ///
    /// # Errors
    /// Returns an error if the device does not support the request.
    pub fn check_sdk(&self, sdk: u32) -> Result<(), Failure> {
        if sdk < WAITS_SDK {
            let why = "its `am dumpheap` ends before the file is complete";
            return Err(too_old("a heap file", 10, sdk, why));
        }
        if self.bitmaps.is_some() && sdk < BITMAPS_SDK {
            return Err(too_old(
                "--bitmaps",
                15,
                sdk,
                "its bitmaps store their pixels outside the Java heap, so a dump lacks them",
            ));
        }
        Ok(())
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
        assert!(spec().check_sdk(28).is_err() && spec().check_sdk(29).is_ok());
        assert_eq!(spec().hprof_flags(), "-g");
        let all = HeapFileSpec {
            bitmaps: Some(BitmapFormat::Png),
            malloc_info: true,
            user: Some(10),
            ..spec()
        };
        assert!(all.check_sdk(35).is_ok());
        assert_eq!(all.hprof_flags(), "--user 10 -g -b png");
        assert_eq!(all.malloc_flags(), "--user 10 -m");
        let error = all.check_sdk(34).unwrap_err().to_string();
        assert!(error.contains("--bitmaps needs Android 15"), "{error}");
    }
}
