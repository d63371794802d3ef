//! Options that select heaps, in every command.

use clap::{Args, ValueEnum};

use crate::console::flags::conflicts::conflict;
use crate::heaps::selector::nearest_heap;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_model::heap_graph::HeapKind;

/// Selected heaps.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Selection")]
pub struct HeapArgs {
    /// Heaps: native, java or by name; several with commas
    ///
    /// Native heaps are libc.malloc, com.android.art and custom ones. Java heaps are app, zygote
    /// and image.
    #[arg(long = "heap", value_name = "HEAP", value_delimiter = ',', value_parser = heap_name)]
    pub heaps: Vec<String>,
}

/// Parses a heap. Native heaps are named exactly; case does not matter for the other words.
fn heap_name(typed: &str) -> Result<String, std::convert::Infallible> {
    let lower = typed.to_ascii_lowercase();
    let is_word = lower == NATIVE || lower == JAVA || java_heap(&lower).is_some();
    Ok(if is_word { lower } else { typed.to_owned() })
}

/// The kinds of heaps.
const NATIVE: &str = "native";
const JAVA: &str = "java";

/// A heap of the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HeapArg {
    App,
    Zygote,
    Image,
}

fn java_heap(name: &str) -> Option<HeapKind> {
    Some(match HeapArg::from_str(name, true).ok()? {
        HeapArg::App => HeapKind::App,
        HeapArg::Zygote => HeapKind::Zygote,
        HeapArg::Image => HeapKind::BootImage,
    })
}

impl HeapArgs {
    /// Returns the first selected heap that only Java has, as an option.
    pub fn of_java(&self) -> Option<String> {
        let is_java = |name: &&String| *name == JAVA || java_heap(name).is_some();
        self.heaps
            .iter()
            .find(is_java)
            .map(|n| format!("--heap {n}"))
    }

    /// Returns the first selected heap that Java does not have, as an option.
    pub fn of_native(&self) -> Option<String> {
        let is_java = |name: &str| name == JAVA || java_heap(name).is_some();
        let native = self.heaps.iter().find(|name| !is_java(name));
        native.map(|name| format!("--heap {name}"))
    }

    /// Returns a notice for each native heap whose name might be misspelled.
    pub fn doubts(&self) -> Vec<String> {
        let names = self.native_names();
        let doubts = names.iter().filter_map(|name| {
            let near = nearest_heap(name)?;
            Some(format!("`--heap {name}`: did you mean {near}?"))
        });
        doubts.collect()
    }

    /// Returns true if every native heap is named.
    pub fn has_native(&self) -> bool {
        self.heaps.iter().any(|name| name == NATIVE)
    }

    /// Returns true if only Java heaps are named.
    pub fn is_java_only(&self) -> bool {
        self.of_java().is_some() && self.of_native().is_none()
    }

    /// Returns true if only native heaps are named.
    pub fn is_native_only(&self) -> bool {
        self.of_native().is_some() && self.of_java().is_none()
    }

    /// Refuses a part of the Java heap, for a command that reads Java heaps as a whole.
    ///
    /// # Errors
    /// Returns an error if app, zygote or image is named.
    pub fn refuse_java_parts(&self, command: &str) -> Result<(), Failure> {
        let Some(part) = self.heaps.iter().find(|name| java_heap(name).is_some()) else {
            return Ok(());
        };
        let message = format!("`{command}` reads Java heaps whole: `--heap {part}` selects a part");
        Err(conflict(
            message,
            format!("leave it out, or use `heaptap top --heap {part}`"),
        ))
    }

    /// Refuses the words native and java, for a command whose tables contain both.
    ///
    /// # Errors
    /// Returns an error if one of them is named.
    pub fn refuse_kinds(&self, command: &str) -> Result<(), Failure> {
        let Some(kind) = self
            .heaps
            .iter()
            .find(|&name| name == NATIVE || name == JAVA)
        else {
            return Ok(());
        };
        let message = format!("`{command}` has tables of both kinds: `--heap {kind}` selects one");
        Err(conflict(
            message,
            "leave it out, or name a native heap such as libc.malloc",
        ))
    }

    /// Returns the names of native heaps; empty for every native heap.
    pub fn native_names(&self) -> Vec<String> {
        let is_name =
            |name: &&String| *name != NATIVE && *name != JAVA && java_heap(name).is_none();
        self.heaps.iter().filter(is_name).cloned().collect()
    }

    /// Returns the selected Java heaps; empty for all.
    ///
    /// # Errors
    /// Returns an error if a heap is named that Java does not have.
    pub fn java_kinds(&self) -> Result<Vec<HeapKind>, Failure> {
        if let Some(native) = self.native_names().first() {
            let message = format!("Java does not have the heap {native:?}");
            return Err(
                Failure::new(ErrorClass::Usage, "no-such-heap", message).with_help(
                    match nearest_heap(native) {
                        Some(near) => format!("did you mean {near}?"),
                        None => "name app, zygote or image".to_owned(),
                    },
                ),
            );
        }
        if self.heaps.iter().any(|name| name == JAVA) {
            return Ok(Vec::new());
        }
        Ok(self.heaps.iter().filter_map(|n| java_heap(n)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heaps(names: &[&str]) -> HeapArgs {
        HeapArgs {
            heaps: names.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn heaps_are_of_java_or_native() {
        let java = heaps(&["java"]);
        assert_eq!(java.of_java().as_deref(), Some("--heap java"));
        assert!(java.is_java_only());
        assert_eq!(java.java_kinds().unwrap(), []);
        let zygote = heaps(&["zygote", "App"]);
        assert_eq!(
            zygote.java_kinds().unwrap(),
            [HeapKind::Zygote, HeapKind::App]
        );
        let named = heaps(&["libc.malloc", "native"]);
        assert_eq!(named.of_native().as_deref(), Some("--heap libc.malloc"));
        assert_eq!(named.native_names(), ["libc.malloc"]);
        assert!(named.java_kinds().is_err());
        let both = heaps(&["native", "java"]);
        assert!(!both.is_java_only() && both.java_kinds().unwrap().is_empty());
        assert!(!both.is_native_only() && named.is_native_only());
        // The whole heap includes its parts.
        assert_eq!(heaps(&["java", "app"]).java_kinds().unwrap(), []);
        assert_eq!(heap_name("Java").unwrap(), "java");
        assert_eq!(heap_name("Custom").unwrap(), "Custom");
        assert_eq!(
            heaps(&["nativ", "native", "my_heap", "malloc", "libc.malloc"]).doubts(),
            [
                "`--heap nativ`: did you mean native?",
                "`--heap malloc`: did you mean libc.malloc?"
            ]
        );
        assert!(zygote.refuse_java_parts("report").is_err());
        assert!(both.refuse_java_parts("report").is_ok());
        assert!(heaps(&[]).java_kinds().unwrap().is_empty());
    }
}
