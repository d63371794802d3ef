//! Selection of Java heaps and of the references to follow: the flags that `top`, `paths`, `diff`
//! and `leaks` share.

use std::ffi::OsString;
use std::path::Path;

use clap::{Args, ValueEnum, ValueHint};

use crate::console::flags::names::{mapping, proguard_variable};
use crate::console::flags::target::TargetArgs;
use crate::console::flags::typed::of_same_name;
use crate::heaps::java::JavaOptions;
use crate::names::options::{NameOptions, absolute};
use heaptap_model::heap_graph::Follow;

/// Analysis options of Java heaps.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Java heaps")]
pub struct JavaArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// References that do not keep objects alive [default: weak,finalizer,phantom]
    ///
    /// `none` follows all references. Perfetto and ahat follow soft references, which is the default
    /// here; LeakCanary follows none, Eclipse MAT all.
    #[arg(
        long,
        value_name = "KINDS",
        value_enum,
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub ignore_refs: Option<Vec<ReferenceKind>>,
    /// Model of shallow sizes in an HPROF [default: dump; of Java SE: hotspot]
    #[arg(long, value_name = "MODEL", value_enum, hide_short_help = true)]
    pub sizes: Option<Sizes>,
    /// R8 mapping file; may be repeated
    ///
    /// The file may be packed with gzip, zstd or ZIP, or be part of an app bundle. PACKAGE=FILE names
    /// its app; otherwise it applies to the apps that no other file is for. heaptap also uses PERFETTO_PROGUARD_MAP and the
    /// names in the trace.
    #[arg(
        long = "mapping",
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        help_heading = "Selection", hide_short_help = true)]
    pub mappings: Vec<OsString>,
}

/// A kind of `java.lang.ref.Reference`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReferenceKind {
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

/// Model of shallow sizes.
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

impl JavaArgs {
    /// Returns the options for opening an input; `follow` is the default for references.
    pub fn options(&self, follow: Follow) -> JavaOptions {
        JavaOptions {
            processes: self.target.filter(),
            follow: self.follow_or(follow),
            sizes: self.sizes.and_then(of_same_name),
            names: NameOptions {
                mappings: self.mappings.iter().map(|given| mapping(given)).collect(),
                directory: absolute(Path::new(".")),
                variables: proguard_variable(),
                ..NameOptions::default()
            },
        }
    }

    /// Returns the referents to follow, or `default` if no flag is given.
    pub fn follow_or(&self, default: Follow) -> Follow {
        let Some(excluded) = &self.ignore_refs else {
            return default;
        };
        let has = |kind: ReferenceKind| excluded.contains(&kind);
        Follow {
            soft: !has(ReferenceKind::Soft),
            weak: !has(ReferenceKind::Weak),
            finalizer: !has(ReferenceKind::Finalizer),
            phantom: !has(ReferenceKind::Phantom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_excluded_is_not_followed_and_the_rest_is() {
        let of = |kinds: &[ReferenceKind]| {
            JavaArgs {
                ignore_refs: Some(kinds.to_vec()),
                ..JavaArgs::default()
            }
            .follow_or(Follow::default())
        };
        assert_eq!(
            JavaArgs::default().follow_or(Follow::STRONG),
            Follow::STRONG
        );
        assert_eq!(of(&[ReferenceKind::None]), Follow::ALL);
        assert_eq!(
            of(&[
                ReferenceKind::Soft,
                ReferenceKind::Weak,
                ReferenceKind::Finalizer,
                ReferenceKind::Phantom
            ]),
            Follow::STRONG
        );
        assert!(of(&[ReferenceKind::Weak]).soft);
    }
}
