//! Complete lookups in files made by compilers.

use super::*;

#[test]
#[cfg(target_os = "linux")]
fn this_very_program_is_identified_and_names_its_functions() {
    let bytes = Bytes::map(&std::env::current_exe().unwrap()).unwrap();
    let facts = identify(&bytes).unwrap();
    assert!(facts.is_executable && facts.has_unwind);
    assert!(facts.knowledge >= Knowledge::Symtab);
    let file = SymbolFile::open(bytes, Arc::new(Alone)).unwrap();
    assert_eq!(file.notes(), []);
    // Its load address is unknown, but all of its code is somewhere in its first megabytes.
    let addresses: Vec<u64> = (0..4096).map(|at| at << 12).collect();
    let mut found = 0;
    file.lookup(&addresses, NonZero::<usize>::MIN, &mut |_, lines| {
        found += usize::from(!lines[0].function.is_empty());
    });
    assert!(found > 500, "{found}");
}
