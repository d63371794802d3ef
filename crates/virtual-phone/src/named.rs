//! Enumerations whose values have names in a specification or a report.

/// Declares an enumeration: each value with its docs and, behind `=`, its name.
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis enum $type:ident {
        $($(#[doc = $doc:literal])* $value:ident = $name:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $type { $($(#[doc = $doc])* $value,)+ }

        impl $type {
            /// All values.
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$value,)+];

            /// Returns the name.
            pub fn name(self) -> &'static str {
                match self { $($type::$value => $name,)+ }
            }
        }

        impl std::str::FromStr for $type {
            type Err = ();

            /// Parses a name.
            fn from_str(text: &str) -> Result<$type, ()> {
                Self::ALL.into_iter().find(|value| value.name() == text).ok_or(())
            }
        }
    };
}

pub(crate) use named;
