//! Complete lookups in files made by compilers.

use super::*;

#[test]
#[cfg(target_os = "linux")]
fn this_very_program_is_identified_and_names_its_functions() {
    let bytes = Bytes::map(&std::env::current_exe().unwrap()).unwrap();
    let facts = identify(&bytes).unwrap();
    assert!(facts.has_unwind);
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

/// Found by fuzzing: the place of an empty name table can be any number.
#[test]
fn an_elf_file_whose_name_table_is_nowhere_has_sections_without_names() {
    let mut file = vec![0; 64 + 2 * 64];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    file[16] = 3; // ET_DYN
    file[18] = 183; // EM_AARCH64
    file[20] = 1; // version
    file[40] = 64; // e_shoff
    file[52] = 64; // e_ehsize
    file[58] = 64; // e_shentsize
    file[60] = 2; // e_shnum
    file[62] = 1; // e_shstrndx
    let table = 128;
    file[table] = 9; // sh_name
    file[table + 4] = 3; // SHT_STRTAB
    file[table + 24..table + 32].fill(0xff); // sh_offset
    let elf = elf::Elf::read(&file).unwrap();
    assert!(
        elf.sections
            .iter()
            .all(|section| section.name(&file).is_empty())
    );
    assert_eq!(elf.sections.len(), 2);
}
