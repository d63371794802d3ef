//! The presets of `configs/`, embedded so that `--config NAME` works everywhere.

use heaptap_model::near::nearest;

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

pub(super) fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Returns the preset with a name similar to `name`.
pub(super) fn similar(name: &str) -> Option<&'static str> {
    nearest(name, PRESETS.iter().map(|preset| preset.name))
}

pub(super) fn names() -> String {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    names.join(", ")
}
