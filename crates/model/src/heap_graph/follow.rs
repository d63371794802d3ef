//! Which references keep what they refer to. `java.lang.ref.Reference.referent` is set apart
//! from all other fields when a graph is built; this says which sorts of it are followed.

use super::class::ClassKind;

/// Sorts of `java.lang.ref.Reference`, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// Cleared when memory is short.
    Soft,
    /// Cleared at the next collection.
    Weak,
    /// Kept for a finalizer to run.
    Finalizer,
    /// Told of, never handed out; `Cleaner` is one.
    Phantom,
}

impl ReferenceKind {
    /// The sort that instances of such a class are.
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

/// Which referents are followed. The default is Perfetto's since May 2026 and ahat's: soft
/// references are, the others are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
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
    /// Only references that always keep their referent: none of the four.
    pub const STRONG: Follow = Follow {
        soft: false,
        weak: false,
        finalizer: false,
        phantom: false,
    };

    /// All of them.
    pub const ALL: Follow = Follow {
        soft: true,
        weak: true,
        finalizer: true,
        phantom: true,
    };

    /// Whether referents of that sort are followed.
    pub fn follows(self, kind: ReferenceKind) -> bool {
        match kind {
            ReferenceKind::Soft => self.soft,
            ReferenceKind::Weak => self.weak,
            ReferenceKind::Finalizer => self.finalizer,
            ReferenceKind::Phantom => self.phantom,
        }
    }
}
