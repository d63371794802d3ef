//! One recording of `heaptap demo` for all tests that only read it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;

/// A directory with the recording `rec`: snapshots `before`, four iterations and `after`, and a final
/// dump.
pub fn home() -> &'static Path {
    static DEMO: OnceLock<TempDir> = OnceLock::new();
    let demo = DEMO.get_or_init(|| {
        let home = tempfile::tempdir().expect("a folder");
        let output = crate::program::heaptap()
            .args(["demo", "-o"])
            .arg(home.path().join("rec"))
            .env("HEAPTAP_STATE_DIR", home.path().join("state"))
            .env("HEAPTAP_CACHE_DIR", home.path().join("cache"))
            .output()
            .expect("the binary runs");
        assert!(output.status.success(), "{output:?}");
        home
    });
    demo.path()
}

pub fn demo() -> PathBuf {
    home().join("rec")
}
