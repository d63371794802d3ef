//! `DeobfuscationMapping` (trace_packet.deobfuscation_mapping, field 64): names changed by R8 and
//! ProGuard, appended to a trace by package. Owns reading the packets; `heaptap-symbols` chooses
//! the names of frames.

use super::allowance::pay;
use super::wire::{Fields, WireError, each, each_message};
use heaptap_base::units::Allowance;
use heaptap_model::profile::{NameMaps, PacketLines};

/// Memory of a map, of a class in it and of a member, without their names.
const MAP: usize = 250;
const CLASS: usize = 40;
const MEMBER: usize = 88;

/// Adds a packet's classes to the map of its package.
///
/// # Errors
/// Returns an error if the packet is damaged; nothing of it is kept then, because half a map gives
/// wrong names.
pub(super) fn add(
    maps: &mut NameMaps,
    message: &[u8],
    allowance: &mut Allowance,
) -> Result<(), WireError> {
    let mut package = String::new();
    let mut cost = MAP;
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => package = value.text(),
            3 => read_class(value.bytes(), &mut |item| {
                let (row, obfuscated, original) = match item {
                    Item::Class(obfuscated, original) => (CLASS, obfuscated, original),
                    Item::Field(obfuscated, original) | Item::Method(obfuscated, original, _) => {
                        (MEMBER, obfuscated, original)
                    }
                };
                let text = obfuscated.len() + original.len();
                cost = cost.saturating_add(row + text + text / 2);
            })?,
            _ => {}
        }
    }
    // The packet is read completely before any of it is kept.
    pay(allowance, cost)?;
    let map = maps.entry(&package);
    each_message(message, 3, |class| {
        read_class(class, &mut |item| match item {
            Item::Class(obfuscated, original) => map.add_class(obfuscated, original),
            Item::Field(obfuscated, original) => map.add_field(obfuscated, original),
            Item::Method(obfuscated, original, lines) => {
                map.add_method(obfuscated, original, lines);
            }
        })
    })
}

/// A class or one of its members: the obfuscated and the original name.
enum Item<'a> {
    Class(&'a str, &'a str),
    Field(&'a str, &'a str),
    Method(&'a str, &'a str, PacketLines),
}

fn read_class(message: &[u8], take: &mut impl FnMut(Item<'_>)) -> Result<(), WireError> {
    let (mut obfuscated, mut original) = (&[][..], &[][..]);
    each(message, |number, value| match number {
        1 => obfuscated = value.bytes(),
        2 => original = value.bytes(),
        _ => {}
    })?;
    take(Item::Class(
        &String::from_utf8_lossy(obfuscated),
        &String::from_utf8_lossy(original),
    ));
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        if number == 3 || number == 4 {
            read_member(value.bytes(), number == 4, take)?;
        }
    }
    Ok(())
}

fn read_member(
    message: &[u8],
    is_method: bool,
    take: &mut impl FnMut(Item<'_>),
) -> Result<(), WireError> {
    let (mut obfuscated, mut original) = (&[][..], &[][..]);
    let mut lines = PacketLines::default();
    each(message, |number, value| {
        let line = || Some(u32::try_from(value.number()).unwrap_or(u32::MAX));
        match number {
            1 => obfuscated = value.bytes(),
            2 => original = value.bytes(),
            3 => lines.obfuscated_start = line(),
            4 => lines.obfuscated_end = line(),
            5 => lines.source_start = line(),
            6 => lines.source_end = line(),
            _ => {}
        }
    })?;
    let obfuscated = String::from_utf8_lossy(obfuscated);
    let original = String::from_utf8_lossy(original);
    take(match is_method {
        true => Item::Method(&obfuscated, &original, lines),
        false => Item::Field(&obfuscated, &original),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::bytes as field;

    fn packet(method: &[u8]) -> Vec<u8> {
        let class = [
            field(1, b"a"),
            field(4, method),
            field(2, b"com.x.Main"),
            field(3, &[field(1, b"f"), field(2, b"count")].concat()),
        ];
        [field(1, b"com.x"), field(3, &class.concat())].concat()
    }

    #[test]
    fn packets_of_one_package_add_up() {
        let method = [&field(1, b"b")[..], &field(2, b"run"), &[0x18, 7, 0x28, 50]].concat();
        let mut maps = NameMaps::default();
        add(&mut maps, &packet(&method), &mut Allowance::default()).unwrap();
        add(&mut maps, &packet(&method), &mut Allowance::default()).unwrap();
        let map = maps.get("com.x").unwrap();
        assert_eq!(map.class_count(), 2);
        let class = map.class(1);
        assert_eq!((class.obfuscated, class.original), ("a", "com.x.Main"));
        let members: Vec<_> = class.members().collect();
        assert_eq!((members[0].obfuscated, members[0].original), ("b", "run"));
        assert_eq!(members[0].lines.obfuscated_start, Some(7));
        assert_eq!(members[0].lines.obfuscated_end, None);
        assert_eq!(members[0].lines.source_start, Some(50));
        assert!(!members[1].is_method);
    }

    #[test]
    fn of_a_damaged_packet_nothing_is_kept() {
        let mut maps = NameMaps::default();
        add(&mut maps, &packet(&[0x0b]), &mut Allowance::default()).unwrap_err();
        assert!(maps.is_empty());
    }
}
