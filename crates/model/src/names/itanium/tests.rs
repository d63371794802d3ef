use super::demangle;

const MAX_BYTES: usize = 1 << 16;

/// Names of open libraries and of each part of the grammar, each with its line from llvm-cxxfilt 19.
const NAMES: &str = include_str!("names.txt");

#[test]
fn names_are_those_of_llvm_cxxfilt() {
    let lines: Vec<&str> = NAMES.lines().collect();
    assert!(lines.len() > 200);
    for pair in lines.chunks_exact(2) {
        let shown = demangle(pair[0], MAX_BYTES);
        assert_eq!(shown.as_deref(), Some(pair[1]), "{}", pair[0]);
    }
}

#[test]
fn incomplete_names_and_names_of_nothing_are_refused() {
    let whole = "_ZN4demo4LazyINS_3HubEE4callIZNS1_4initERNS_2VMEE3$_7EEvRKS1_";
    for end in 2..whole.len() {
        // The name without result and parameters is one.
        let is_whole = whole[end..].starts_with("vRKS1_");
        let shown = demangle(&whole[..end], MAX_BYTES);
        assert_eq!(shown.is_some(), is_whole, "{}", &whole[..end]);
    }
    for name in [
        "_Z1fS_", "_Z1fT_", "_Z9f", "_ZN1AE1", "_Z1fTt", "_Z1é", "_ZNSsEé",
    ] {
        assert_eq!(demangle(name, MAX_BYTES), None, "{name}");
    }
}

/// Number of a substitution: `_`, `0_` … `Z_`, `10_`.
fn substitution(number: usize) -> String {
    let digit = |n: usize| b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n % 36] as char;
    match number {
        0 => "S_".to_owned(),
        1..=36 => format!("S{}_", digit(number - 1)),
        _ => format!("S{}{}_", digit((number - 1) / 36), digit(number - 1)),
    }
}

#[test]
fn hostile_names_end_early() {
    let repeated = |start: &str, part: &str| format!("{start}{}", part.repeat(5_000));
    let chain = |start: &str, part: &dyn Fn(String) -> String| {
        let parts = (0..1_000).map(|number| part(substitution(number)));
        format!("{start}{}", parts.collect::<String>())
    };
    for name in [
        repeated("_Z1f", "P"),
        repeated("_Z", "Z"),
        repeated("_Z1f", "N1a"),
        repeated("_Z1fIX", "nt"),
        repeated("_Z1fX", "L_Z"),
        repeated("_Z1fI", "J"),
        repeated("_ZZ1fvENKUl", "Tt"),
        // Each type refers to the one before.
        chain("_Z1fPi", &|earlier| format!("P{earlier}")),
        chain("_Z1fKi", &|earlier| format!("K{earlier}")),
        // Each is twice the one before, with and without text.
        chain("_Z1fSt4pairIiiE", &|earlier| {
            format!("S_I{earlier}{earlier}E")
        }),
        chain("_Z1fIJiiEEvDpT_", &|earlier| format!("Dp{earlier}")),
    ] {
        assert_eq!(demangle(&name, MAX_BYTES), None, "{}", &name[..60]);
    }
}
