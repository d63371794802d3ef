//! The presets of `configs/`, embedded so that `--config NAME` works everywhere.

/// A predefined config.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Name for `--config`.
    pub name: &'static str,
    /// YAML text of the file in `configs/`.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        /// Every preset, in the order of `docs/reference/formats.md`.
        pub const PRESETS: &[Preset] = &[$(Preset {
            name: $name,
            text: include_str!(concat!("../../../../configs/", $name, ".yaml")),
        }),*];
    };
}

presets![
    "leak-hunt",
    "startup",
    "low-overhead",
    "precise",
    "peak",
    "continuous",
    "java-allocations",
    "all-heaps",
    "long-run",
];
