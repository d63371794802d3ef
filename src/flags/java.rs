//! Which Java heap to look at and how its references are followed: the flags that `top`,
//! `paths`, `diff` and `leaks` share.

use std::ffi::OsString;
use std::path::Path;

use clap::{Args, ValueEnum, ValueHint};

use crate::flags::names::{mapping, proguard_variable};
use crate::heap_graph::{Follow, HeapKind, SizeModel};
use crate::heaps::java::JavaOptions;
use crate::naming::names::{NameOptions, absolute};

/// How a Java heap is looked at.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Java heaps")]
pub struct JavaArgs {
    /// Only dumps of this process: a name (with *), or a process id
    #[arg(long, value_name = "NAME|PID", help_heading = "Which heap")]
    pub process: Option<String>,
    /// References that keep nothing alive [default: weak,finalizer,phantom]
    ///
    /// `none` follows all of them. Perfetto and ahat follow soft references, as is the default
    /// here; LeakCanary follows none, Eclipse MAT all.
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',')]
    pub exclude: Option<Vec<Excluded>>,
    /// How shallow sizes of an HPROF come about [default: hotspot or dump, as it was written]
    #[arg(long, value_name = "MODEL", value_enum)]
    pub sizes: Option<Sizes>,
    /// Mapping file of R8 or ProGuard for Java names; may be repeated
    ///
    /// Also in gzip, zstd or ZIP, and out of an app bundle. PERFETTO_PROGUARD_MAP is looked at
    /// after it, then what the trace itself holds.
    #[arg(
        long = "mapping",
        value_name = "[PACKAGE=]FILE",
        value_hint = ValueHint::FilePath,
        help_heading = "Which heap"
    )]
    pub mappings: Vec<OsString>,
}

/// A kind of `java.lang.ref.Reference`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Excluded {
    /// SoftReference
    Soft,
    /// WeakReference
    Weak,
    /// FinalizerReference: objects that wait for their finalizer
    Finalizer,
    /// PhantomReference, Cleaner too
    Phantom,
    /// Exclude none of them
    None,
}

/// How shallow sizes come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sizes {
    /// What the dump says, without headers of arrays: the default for Android's
    Dump,
    /// With headers and alignment, by Eclipse MAT's rules
    Mat,
    /// With headers and alignment of ART
    Art,
    /// As jmap counts them: the default for Java SE
    Hotspot,
}

impl From<Sizes> for SizeModel {
    fn from(sizes: Sizes) -> SizeModel {
        match sizes {
            Sizes::Dump => SizeModel::Dump,
            Sizes::Mat => SizeModel::Mat,
            Sizes::Art => SizeModel::Art,
            Sizes::Hotspot => SizeModel::Hotspot,
        }
    }
}

impl JavaArgs {
    /// How to open an input; references are followed as `follow` says where nothing was said.
    pub fn options(&self, follow: Follow) -> JavaOptions {
        JavaOptions {
            process: self.process.clone(),
            follow: self.follow_or(follow),
            sizes: self.sizes.map(SizeModel::from),
            names: NameOptions {
                mappings: self.mappings.iter().map(|given| mapping(given)).collect(),
                folder: absolute(Path::new(".")),
                variables: proguard_variable(),
                ..NameOptions::default()
            },
        }
    }

    /// Which referents are followed; `default` where nothing was said.
    pub fn follow_or(&self, default: Follow) -> Follow {
        let Some(excluded) = &self.exclude else {
            return default;
        };
        let has = |kind: Excluded| excluded.contains(&kind);
        Follow {
            soft: !has(Excluded::Soft),
            weak: !has(Excluded::Weak),
            finalizer: !has(Excluded::Finalizer),
            phantom: !has(Excluded::Phantom),
        }
    }
}

/// A heap of the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HeapArg {
    /// What the app allocated
    App,
    /// What all apps share
    Zygote,
    /// What the system brought
    Image,
}

impl From<HeapArg> for HeapKind {
    fn from(heap: HeapArg) -> HeapKind {
        match heap {
            HeapArg::App => HeapKind::App,
            HeapArg::Zygote => HeapKind::Zygote,
            HeapArg::Image => HeapKind::BootImage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_excluded_is_not_followed_and_the_rest_is() {
        let of = |kinds: &[Excluded]| {
            JavaArgs {
                exclude: Some(kinds.to_vec()),
                ..JavaArgs::default()
            }
            .follow_or(Follow::default())
        };
        assert_eq!(
            JavaArgs::default().follow_or(Follow::STRONG),
            Follow::STRONG
        );
        assert_eq!(of(&[Excluded::None]), Follow::ALL);
        assert_eq!(
            of(&[
                Excluded::Soft,
                Excluded::Weak,
                Excluded::Finalizer,
                Excluded::Phantom
            ]),
            Follow::STRONG
        );
        assert!(of(&[Excluded::Weak]).soft);
    }
}
