//! Names for the frames of an open trace: finds out which libraries want some, has them looked
//! up, and applies what comes. Between the first reading of a trace and its dumps; shared by
//! `convert`, `record` and `symbolize`. Nothing that goes wrong here keeps a trace from being
//! converted: frames then stay as the unwinder named them.

use super::device_libs::{self, DeviceLibs, Fetched, Outcome, PullEvent};
use super::names::{LookupMode, NameOptions};
use crate::names::basename;
use crate::profile::{FrameId, Recording};
use crate::results::findings::Finding;
use crate::symbolize::cache::Cache;
use crate::symbolize::find::{Attempt, Finder, Mode, Place, Places};
use crate::symbolize::library::{Library, improvable, wanted};
use crate::symbolize::resolve::{Applied, Progress, Resolver, Symbolized};
use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Files that are complained of, at most: the manifest has all.
const MOST_FINDINGS: usize = 20;

/// Who waits for names: the phone they may ask, how they watch names come, and end it. A clone
/// watches the same.
#[derive(Clone, Default)]
pub struct LookupControl {
    cancelled: Arc<AtomicBool>,
    tell: Option<Tell>,
    tell_pull: Option<TellPull>,
    phone: Option<Arc<DeviceLibs>>,
}

/// Takes what happens; called from any thread, must return at once.
type Tell = Arc<dyn Fn(Progress<'_>) + Send + Sync>;
/// As [`Tell`], for what is fetched from the phone.
type TellPull = Arc<dyn Fn(PullEvent) + Send + Sync>;

impl std::fmt::Debug for LookupControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LookupControl")
            .field("cancelled", &self.cancelled)
            .finish_non_exhaustive()
    }
}

impl LookupControl {
    /// Tells each library that is done.
    pub fn telling(tell: impl Fn(Progress<'_>) + Send + Sync + 'static) -> LookupControl {
        LookupControl {
            tell: Some(Arc::new(tell)),
            ..LookupControl::default()
        }
    }

    /// Has what no place of this host knows fetched from a phone.
    pub fn asking(self, phone: Option<Arc<DeviceLibs>>) -> LookupControl {
        LookupControl { phone, ..self }
    }

    /// Tells also what is fetched from the phone.
    pub fn telling_pulls(self, tell: impl Fn(PullEvent) + Send + Sync + 'static) -> LookupControl {
        LookupControl {
            tell_pull: Some(Arc::new(tell)),
            ..self
        }
    }

    /// From now on no library is begun.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether nobody waits any more.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Which frames are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LookupScope {
    /// Those that nobody symbolized.
    #[default]
    Missing,
    /// Also those that were symbolized without learning their files: more may be known by now.
    Better,
}

/// Names frames as options say.
#[derive(Debug)]
pub struct Namer {
    options: NameOptions,
    finder: OnceLock<Finder>,
    /// `None` within where this host gives no folder at all.
    cache: OnceLock<Option<Cache>>,
    control: LookupControl,
}

/// What was found for the frames of a trace.
#[derive(Debug, Default)]
pub struct Named {
    /// The libraries that were looked for.
    pub symbolized: Symbolized,
    /// The frames that were given lines.
    pub applied: Applied,
}

impl Named {
    /// What the user should know of the files that were asked.
    pub fn findings(&self) -> Vec<Finding> {
        let finding = |kind, message, help: &str| Finding {
            kind,
            class: None,
            message,
            help: Some(help.to_owned()),
            pid: None,
        };
        let mut findings = Vec::new();
        for outcome in &self.symbolized.libraries {
            let name = basename(&outcome.library.path);
            for failure in &outcome.failures {
                findings.push(finding(
                    "symbols-unusable",
                    format!("{name}: {} was not used: {}", failure.path, failure.why),
                    "build or copy the file anew; other files were asked instead",
                ));
            }
            if let Some(what) = &outcome.search_failed {
                findings.push(finding(
                    "symbols-unusable",
                    format!("{name}: the search for its symbols broke off: {what}"),
                    "this is a bug of heaptap: please report it",
                ));
            }
            for file in &outcome.files {
                if !file.notes.is_empty() {
                    let notes = file.notes.join("; ");
                    findings.push(finding(
                        "symbols-incomplete",
                        format!("{name}: of {} a part could not be used: {notes}", file.path),
                        "names of its frames may lack lines or inlined calls",
                    ));
                }
                if !file.verified && file.addresses > 0 {
                    findings.push(finding(
                        "symbols-unverified",
                        format!("{name} was named by {}, which has no build ID", file.path),
                        "its names are wrong if it is not the build on the phone",
                    ));
                }
            }
        }
        findings.truncate(MOST_FINDINGS);
        findings
    }

    /// Whether a frame was given lines now.
    pub fn has(&self, frame: FrameId) -> bool {
        self.applied.has(frame)
    }
}

impl Namer {
    /// Looks at nothing yet.
    pub fn new(options: NameOptions, control: LookupControl) -> Namer {
        Namer {
            options,
            finder: OnceLock::new(),
            cache: OnceLock::new(),
            control,
        }
    }

    /// Looks up what frames of `recording` want, and gives it to them. Blocks.
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
            Some(folder) => Cache::in_folder(folder).ok(),
            None => Cache::of_user().ok(),
        });
        let finder = || Finder::new(places(&self.options, cache.clone()));
        let resolver = Resolver {
            finder: self.finder.get_or_init(finder),
            cache: cache.as_ref(),
            threads: std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN),
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

    /// Asks the libraries that came from the phone, and notes why others did not come.
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
        let is_kept = |f: &Fetched| matches!(f.outcome, Outcome::Kept(_));
        came.retain(|library| of(library).is_some_and(is_kept));
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

/// The places that options name, and those that each host has.
fn places(options: &NameOptions, cache: Option<Cache>) -> Places {
    let variable = |name: &str| match name {
        // How lists are looked through is an option by now.
        "PERFETTO_SYMBOLIZER_MODE" => None,
        "HOME" | "USERPROFILE" => std::env::var_os(name),
        name => options.variable(name).map(OsString::from),
    };
    let found = Places::from_env(variable, &options.folder);
    let here = |path: PathBuf| options.folder.join(path);
    let places = Places {
        symbols: options.symbols.clone(),
        binary_path: found.binary_path.into_iter().map(here).collect(),
        mode: match options.mode {
            Some(LookupMode::Find) => Mode::Find,
            Some(LookupMode::Index) => Mode::Index,
            None => found.mode,
        },
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
    use std::collections::BTreeMap;
    use std::path::Path;

    fn options() -> NameOptions {
        NameOptions {
            symbols: vec!["/given".into()],
            folder: std::env::temp_dir(),
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
            mode: Some(LookupMode::Find),
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
