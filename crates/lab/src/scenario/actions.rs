//! The actions of `provoke`, as this crate knows them.

/// The actions of `provoke`, which another crate owns.
#[derive(Clone, Copy)]
pub struct Actions<'a> {
    /// Names with descriptions: `rotate`, `rotates the screen N times`.
    pub all: &'a [(&'a str, &'a str)],
    /// Returns an error if an action as text, such as `rotate:2`, is not valid.
    pub check: &'a dyn Fn(&str) -> Result<(), String>,
}

impl std::fmt::Debug for Actions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Actions")
            .field("all", &self.all)
            .finish_non_exhaustive()
    }
}

impl<'a> Actions<'a> {
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
        self.all.iter().map(|(name, _)| *name)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.all.iter().any(|(known, _)| *known == name)
    }
}
