//! Source file of a frame if the R8 mapping does not have it: inferred from the class, as in R8's
//! retrace.

/// File name that the runtime reports for native methods; it is kept.
const NATIVE_METHOD: &str = "Native Method";

/// Returns the likely source file of a class of the source. The file name in the frame decides
/// between Kotlin and Java.
pub(super) fn infer(class: &str, recorded: Option<&str>) -> String {
    let recorded = recorded.unwrap_or_default();
    if recorded == NATIVE_METHOD {
        return recorded.to_owned();
    }
    let simple = class.rsplit('.').next().unwrap_or(class);
    let simple = match simple.find('$') {
        // A class name can begin with `$`.
        Some(at) if at > 0 => &simple[..at],
        _ => simple,
    };
    let extension = recorded.rsplit_once('.').map(|(_, extension)| extension);
    match (simple.strip_suffix("Kt"), extension) {
        (Some(stem), None | Some("kt")) if !stem.is_empty() => format!("{stem}.kt"),
        (_, Some("kt")) => format!("{simple}.kt"),
        _ => format!("{simple}.java"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_after_the_outer_class() {
        for (class, recorded, file) in [
            ("x.Main", Some("SourceFile"), "Main.java"),
            ("x.Main$Inner$1", None, "Main.java"),
            ("x.MainKt", Some("SourceFile"), "Main.kt"),
            ("x.MainKt", Some("a.java"), "MainKt.java"),
            ("x.Main", Some("a.kt"), "Main.kt"),
            ("x.Main", Some("Native Method"), "Native Method"),
            ("Main", Some(""), "Main.java"),
            ("x.$r8$backport", None, "$r8$backport.java"),
            ("Kt", None, "Kt.java"),
        ] {
            assert_eq!(infer(class, recorded), file, "{class} {recorded:?}");
        }
    }
}
