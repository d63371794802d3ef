//! Classes of the synthetic heaps, as declared in `framework.txt` and `apps.txt`, and the names
//! that R8 gave those of the app.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::image::renamed;

/// Classes of the runtime and the framework.
const FRAMEWORK: &str = include_str!("framework.txt");
/// Classes of the apps.
const APPS: &str = include_str!("apps.txt");

/// Declaration of a class in a table.
#[derive(Debug)]
pub(super) struct Declaration {
    pub(super) superclass: Option<&'static str>,
    /// Dex file; `app` means the app's own.
    pub(super) location: &'static str,
    /// Type, name, and whether the field is static.
    pub(super) fields: Vec<(&'static str, &'static str, bool)>,
}

/// Returns every class that a heap can have by its name in source.
pub(super) fn declarations() -> &'static HashMap<&'static str, Declaration> {
    static ALL: OnceLock<HashMap<&'static str, Declaration>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = HashMap::new();
        declare(FRAMEWORK, &mut all);
        declare(APPS, &mut all);
        all
    })
}

/// Parses a table: `= dex file`, `class < superclass`, and indented `[static] type name`.
fn declare(text: &'static str, all: &mut HashMap<&'static str, Declaration>) {
    let mut location = "";
    let mut class = "";
    for line in text
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        if let Some(path) = line.strip_prefix("= ") {
            location = path;
        } else if let Some(field) = line.strip_prefix("  ") {
            let plain = field.strip_prefix("static ");
            let (kind, name) = plain
                .unwrap_or(field)
                .split_once(' ')
                .unwrap_or_else(|| panic!("{class}: {field:?} is not a field"));
            let declared = all.get_mut(class).expect("fields follow their class");
            declared.fields.push((kind, name, plain.is_some()));
        } else {
            let (name, superclass) = match line.split_once(" < ") {
                Some((name, superclass)) => (name, Some(superclass)),
                None => (
                    line,
                    (line != "java.lang.Object").then_some("java.lang.Object"),
                ),
            };
            class = name;
            let fields = Vec::new();
            let declaration = Declaration {
                superclass,
                location,
                fields,
            };
            assert!(all.insert(name, declaration).is_none(), "{name} twice");
        }
    }
}

/// Obfuscated names of classes and fields from `image/mapping.txt`.
pub(super) struct Renames {
    pub(super) classes: HashMap<&'static str, &'static str>,
    pub(super) fields: HashMap<(&'static str, &'static str), &'static str>,
}

/// Returns the obfuscated names.
pub(super) fn renames() -> &'static Renames {
    static ALL: OnceLock<Renames> = OnceLock::new();
    ALL.get_or_init(|| {
        let (mut classes, mut fields) = (HashMap::new(), HashMap::new());
        for (class, member) in renamed() {
            match member {
                None => _ = classes.insert(class.0, class.1),
                Some((declaration, residual)) if !declaration.contains('(') => {
                    if let Some((_, name)) = declaration.split_once(' ') {
                        fields.insert((class.0, name), residual);
                    }
                }
                Some(_) => {}
            }
        }
        Renames { classes, fields }
    })
}

/// Returns the size in bytes of a class's embedded tables: 88, and 8 for each virtual method.
pub(super) fn embedded_bytes(name: &str) -> u32 {
    let methods = name
        .bytes()
        .fold(0u32, |h, b| h.wrapping_mul(31) + u32::from(b))
        % 48;
    88 + methods * 8
}
