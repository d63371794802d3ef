//! ELF files and DWARF as tests write them.
#![allow(dead_code, reason = "each suite uses a part")]

pub const PROGBITS: u32 = 1;
pub const STRTAB: u32 = 3;

/// An ELF file of these sections (name, type, data), each linked to the next.
pub fn elf(sections: &[(&str, u32, Vec<u8>)]) -> Vec<u8> {
    let mut names = vec![0];
    let mut bytes = vec![0; 64];
    let mut headers = vec![0; 64];
    let mut number = 0u32;
    let mut add = |bytes: &mut Vec<u8>, name: usize, kind: u32, data: &[u8]| {
        number += 1;
        let mut header = [0; 64];
        header[..4].copy_from_slice(&(name as u32).to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[24..32].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        header[32..40].copy_from_slice(&(data.len() as u64).to_le_bytes());
        header[40..44].copy_from_slice(&(number + 1).to_le_bytes());
        header[56..64].copy_from_slice(&24u64.to_le_bytes());
        bytes.extend_from_slice(data);
        headers.extend_from_slice(&header);
    };
    for (name, kind, data) in sections {
        add(&mut bytes, names.len(), *kind, data);
        names.extend_from_slice(name.as_bytes());
        names.push(0);
    }
    add(&mut bytes, 0, STRTAB, &names.clone());
    let offset = bytes.len() as u64;
    bytes.extend_from_slice(&headers);
    bytes[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    bytes[16..20].copy_from_slice(&[3, 0, 62, 0]);
    bytes[20] = 1;
    bytes[40..48].copy_from_slice(&offset.to_le_bytes());
    bytes[52] = 64;
    bytes[58] = 64;
    bytes[60..62].copy_from_slice(&(sections.len() as u16 + 2).to_le_bytes());
    bytes[62..64].copy_from_slice(&(sections.len() as u16 + 1).to_le_bytes());
    bytes
}

/// LEB128.
pub fn leb(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// A unit of DWARF 4 with these entries.
pub fn unit(abbrevs: u32, entries: &[u8]) -> Vec<u8> {
    let mut unit = (entries.len() as u32 + 7).to_le_bytes().to_vec();
    unit.extend_from_slice(&[4, 0]);
    unit.extend_from_slice(&abbrevs.to_le_bytes());
    unit.push(8);
    unit.extend_from_slice(entries);
    unit
}

/// An entry with a code, low_pc, and high_pc as a size.
pub fn entry(code: u8, low: u64, size: u32) -> Vec<u8> {
    [&[code][..], &low.to_le_bytes(), &size.to_le_bytes()].concat()
}
