//! The references that keep their target alive. `java.lang.ref.Reference.referent` is separated
//! from all other fields when a graph is built; [`Follow`] selects the kinds that are followed.

use super::class::ClassKind;

/// Kinds of `java.lang.ref.Reference`, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// Cleared when memory is short.
    Soft,
    /// Cleared at the next collection.
    Weak,
    /// Kept for a finalizer to run.
    Finalizer,
    /// Enqueued after collection, never returned; `Cleaner` is one.
    Phantom,
}

impl ReferenceKind {
    /// Returns the kind of a class's instances.
    #[inline]
    pub fn of_class(kind: ClassKind) -> Option<ReferenceKind> {
        Some(match kind {
            ClassKind::SoftReference => ReferenceKind::Soft,
            ClassKind::WeakReference => ReferenceKind::Weak,
            ClassKind::FinalizerReference => ReferenceKind::Finalizer,
            ClassKind::PhantomReference => ReferenceKind::Phantom,
            _ => return None,
        })
    }
}

/// Selection of the followed referents. The default is that of ahat and of Perfetto since May 2026:
/// only soft references are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Follow {
    pub soft: bool,
    pub weak: bool,
    pub finalizer: bool,
    pub phantom: bool,
}

impl Default for Follow {
    fn default() -> Follow {
        Follow {
            soft: true,
            weak: false,
            finalizer: false,
            phantom: false,
        }
    }
}

impl Follow {
    /// Follows only references that always keep their referent: none of the four kinds.
    pub const STRONG: Follow = Follow {
        soft: false,
        weak: false,
        finalizer: false,
        phantom: false,
    };

    /// Follows all kinds.
    pub const ALL: Follow = Follow {
        soft: true,
        weak: true,
        finalizer: true,
        phantom: true,
    };

    /// Returns whether referents of that kind are followed.
    pub fn follows(self, kind: ReferenceKind) -> bool {
        match kind {
            ReferenceKind::Soft => self.soft,
            ReferenceKind::Weak => self.weak,
            ReferenceKind::Finalizer => self.finalizer,
            ReferenceKind::Phantom => self.phantom,
        }
    }
}
