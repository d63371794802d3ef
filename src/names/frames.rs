//! Symbolization of the frames of an open trace: finds libraries with unnamed frames, looks them
//! up, and applies the results. Runs between the first reading of a trace and its dumps; shared by
//! `convert`, `record` and `symbolize`. Failures never prevent a conversion: frames then keep the
//! names of the unwinder.

use super::device_libs::{self, DeviceLibs, Fetched, Outcome, PullEvent};
use super::options::NameOptions;
use heaptap_model::names::basename;
use heaptap_model::profile::{FrameId, Recording};
use heaptap_results::findings::Finding;
use heaptap_symbols::symbolize::cache::Cache;
use heaptap_symbols::symbolize::find::{Attempt, Finder, Place, Places};
use heaptap_symbols::symbolize::library::{Library, improvable, wanted};
use heaptap_symbols::symbolize::resolve::{Applied, Progress, Resolver, Symbolized};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Files that are complained of, at most: the manifest has all.
const MAX_FINDINGS: usize = 20;

/// Control of symbolization: the device to use, progress callbacks, and cancellation. Clones share
/// their state.
#[derive(Clone, Default)]
pub struct LookupControl {
    cancelled: Arc<AtomicBool>,
    tell: Option<Tell>,
    tell_pull: Option<TellPull>,
    phone: Option<Arc<DeviceLibs>>,
}

/// Progress callback; called from any thread, must return immediately.
type Tell = Arc<dyn Fn(Progress) + Send + Sync>;
/// As [`Tell`], for fetching from the device.
type TellPull = Arc<dyn Fn(PullEvent) + Send + Sync>;

impl std::fmt::Debug for LookupControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LookupControl")
            .field("cancelled", &self.cancelled)
            .finish_non_exhaustive()
    }
}

impl LookupControl {
    /// Creates a control that reports each finished library.
    pub fn telling(tell: impl Fn(Progress) + Send + Sync + 'static) -> LookupControl {
        LookupControl {
            tell: Some(Arc::new(tell)),
            ..LookupControl::default()
        }
    }

    /// Fetches libraries that are not found on this host from a device.
    pub fn asking(self, phone: Option<Arc<DeviceLibs>>) -> LookupControl {
        LookupControl { phone, ..self }
    }

    /// Also reports fetching from the device.
    pub fn telling_pulls(self, tell: impl Fn(PullEvent) + Send + Sync + 'static) -> LookupControl {
        LookupControl {
            tell_pull: Some(Arc::new(tell)),
            ..self
        }
    }

    /// Prevents the lookup of further libraries.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns whether symbolization was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Selection of frames to look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LookupScope {
    /// Frames that were not symbolized.
    #[default]
    Missing,
    /// Also frames that were symbolized without source files, because better symbols might be
    /// available now.
    Better,
}

/// Symbolizes frames according to options.
#[derive(Debug)]
pub struct Namer {
    options: NameOptions,
    finder: OnceLock<Finder>,
    /// Contains `None` if this host has no cache directory.
    cache: OnceLock<Option<Cache>>,
    control: LookupControl,
}

/// Results for the frames of a trace.
#[derive(Debug, Default)]
pub struct Named {
    /// Libraries that were looked up.
    pub symbolized: Symbolized,
    /// Frames that were symbolized.
    pub applied: Applied,
}

impl Named {
    /// Returns findings about the symbol files.
    pub fn findings(&self) -> Vec<Finding> {
        let finding = |kind, message, help: &str| Finding::new(kind, None, message).with_help(help);
        let mut findings = Vec::new();
        for outcome in &self.symbolized.libraries {
            let name = basename(&outcome.library.path);
            for failure in &outcome.failures {
                findings.push(finding(
                    "symbols-unusable",
                    format!("{name}: {} was not used: {}", failure.path, failure.why),
                    "build or copy the file again; heaptap used other files instead",
                ));
            }
            if let Some(what) = &outcome.search_failed {
                findings.push(finding(
                    "symbols-unusable",
                    format!("{name}: the search for its symbols failed: {what}"),
                    "this is a bug in heaptap; please report it",
                ));
            }
            for file in &outcome.files {
                if !file.notes.is_empty() {
                    let notes = file.notes.join("; ");
                    findings.push(finding(
                        "symbols-incomplete",
                        format!("{name}: a part of {} could not be used: {notes}", file.path),
                        "its frames might lack lines or inlined calls",
                    ));
                }
                if !file.verified && file.addresses > 0 {
                    findings.push(finding(
                        "symbols-unverified",
                        format!(
                            "{name}: symbols from {} are unverified (no build ID)",
                            file.path
                        ),
                        "its names are wrong unless the file is from the build on the device",
                    ));
                }
            }
        }
        findings.truncate(MAX_FINDINGS);
        findings
    }

    /// Returns whether a frame was symbolized in this run.
    pub fn has(&self, frame: FrameId) -> bool {
        self.applied.has(frame)
    }
}

impl Namer {
    /// Creates a namer without reading anything yet.
    pub fn new(options: NameOptions, control: LookupControl) -> Namer {
        Namer {
            options,
            finder: OnceLock::new(),
            cache: OnceLock::new(),
            control,
        }
    }

    /// Looks up the frames of `recording`, and applies the results. Blocks.
    pub fn name(&self, recording: &mut Recording, scope: LookupScope) -> Named {
        if !self.options.symbolize {
            return Named::default();
        }
        let libraries = match scope {
            LookupScope::Missing => wanted(recording),
            LookupScope::Better => improvable(recording),
        };
        self.look_up(libraries, recording)
    }

    fn look_up(&self, libraries: Vec<Library>, recording: &mut Recording) -> Named {
        if libraries.is_empty() {
            return Named::default();
        }
        let cache = self.cache.get_or_init(|| match &self.options.cache {
            Some(directory) => Cache::in_directory(directory).ok(),
            None => Cache::of_user().ok(),
        });
        let finder = || Finder::new(places(&self.options, cache.clone()));
        let resolver = Resolver {
            finder: self.finder.get_or_init(finder),
            cache: cache.as_ref(),
            threads: heaptap_base::parallel::threads(),
            cancel: &self.control.cancelled,
        };
        let symbolized = self.resolve(&resolver, libraries);
        let mut named = Named {
            applied: symbolized.apply(recording),
            symbolized,
        };
        if let (Some(phone), Some(cache)) = (&self.control.phone, cache)
            && !self.control.is_cancelled()
        {
            let requests = device_libs::requests(recording);
            let fetched = phone.fetch(cache, requests, &|event| {
                if let Some(tell) = &self.control.tell_pull {
                    tell(event);
                }
            });
            self.take(&fetched, &resolver, recording, &mut named);
        }
        named
    }

    fn resolve(&self, resolver: &Resolver<'_>, libraries: Vec<Library>) -> Symbolized {
        resolver.resolve(libraries, &|progress| {
            if let Some(tell) = &self.control.tell {
                tell(progress);
            }
        })
    }

    /// Looks up libraries fetched from the device, and records why others are missing.
    fn take(
        &self,
        fetched: &[Fetched],
        resolver: &Resolver<'_>,
        recording: &mut Recording,
        named: &mut Named,
    ) {
        let of = |library: &Library| {
            let same = |f: &&Fetched| f.path == library.path && f.build_id == library.build_id;
            fetched.iter().find(same)
        };
        let mut came = wanted(recording);
        // Processes can have the same library at other paths; it is fetched for only one of them.
        let is_kept = |library: &Library| {
            let same = |f: &&Fetched| f.build_id == library.build_id;
            let mut same = fetched.iter().filter(same);
            same.any(|f| matches!(f.outcome, Outcome::Kept(_)))
        };
        came.retain(is_kept);
        if !came.is_empty() {
            let more = self.resolve(resolver, came);
            named.applied.extend(&more.apply(recording));
            named.symbolized.libraries.extend(more.libraries);
            named.symbolized.cancelled |= more.cancelled;
        }
        for outcome in &mut named.symbolized.libraries {
            let Some(fetched) = of(&outcome.library) else {
                continue;
            };
            if let Outcome::Not(why_not) = &fetched.outcome {
                outcome.attempts.push(Attempt {
                    place: Place::Device,
                    path: fetched.shown(),
                    why_not: why_not.clone(),
                });
            }
        }
    }
}

/// Returns the places in the options, and the default ones.
fn places(options: &NameOptions, cache: Option<Cache>) -> Places {
    let variable = |name: &str| match name {
        // The lookup mode is already an option.
        "PERFETTO_SYMBOLIZER_MODE" => None,
        "HOME" | "USERPROFILE" => std::env::var_os(name),
        name => options.variable(name).map(OsString::from),
    };
    let found = Places::from_env(variable, &options.directory);
    let here = |path: PathBuf| options.directory.join(path);
    let places = Places {
        symbols: options.symbols.clone(),
        binary_path: found.binary_path.into_iter().map(here).collect(),
        mode: options.mode.unwrap_or(found.mode),
        breakpad: found.breakpad.map(here),
        cache,
        allow_no_build_id: options.allow_no_build_id,
        ..found
    };
    let named_project = options.project.clone();
    if options.discover {
        return Places {
            project: named_project.or(places.project),
            product_out: places.product_out.map(here),
            ..places
        };
    }
    Places {
        project: named_project,
        product_out: None,
        host_paths: false,
        build_id_trees: Vec::new(),
        debuginfod: None,
        ..places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_symbols::symbolize::find::Mode;
    use std::collections::BTreeMap;
    use std::path::Path;

    fn options() -> NameOptions {
        NameOptions {
            symbols: vec!["/given".into()],
            directory: std::env::temp_dir(),
            variables: BTreeMap::from([
                ("PERFETTO_BINARY_PATH".to_owned(), "below".to_owned()),
                ("ANDROID_PRODUCT_OUT".to_owned(), "out".to_owned()),
            ]),
            ..NameOptions::default()
        }
    }

    #[test]
    fn relative_places_begin_where_the_command_was_typed() {
        let places = places(&options(), None);
        assert_eq!(places.symbols, [Path::new("/given")]);
        assert_eq!(places.binary_path, [std::env::temp_dir().join("below")]);
        assert_eq!(places.product_out, Some(std::env::temp_dir().join("out")));
        assert!(places.host_paths);
    }

    #[test]
    fn without_discovery_only_what_was_named_is_looked_at() {
        let options = NameOptions {
            discover: false,
            project: Some("/project".into()),
            mode: Some(Mode::Find),
            ..options()
        };
        let places = places(&options, None);
        assert_eq!(places.binary_path.len(), 1);
        assert_eq!(places.project.as_deref(), Some(Path::new("/project")));
        assert_eq!(places.mode, Mode::Find);
        assert_eq!(places.product_out, None);
        assert!(!places.host_paths && places.build_id_trees.is_empty());
    }
}
