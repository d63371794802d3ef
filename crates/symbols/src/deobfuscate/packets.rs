//! R8 mappings from packets of a trace, looked up by class. They have names and lines, but neither
//! types nor metadata.

use super::class::{Class, Field, LineRange, Method, OriginalLines, qualified};
use heaptap_model::profile::{NameMap, PacketLines};

/// [`NameMap`] with its classes in order of their names in the app.
#[derive(Debug)]
pub(super) struct PacketMap<'a> {
    map: &'a NameMap,
    by_name: Vec<u32>,
}

impl<'a> PacketMap<'a> {
    pub(super) fn new(map: &'a NameMap) -> Self {
        let count = u32::try_from(map.class_count()).unwrap_or(u32::MAX);
        let mut by_name: Vec<u32> = (0..count).collect();
        by_name.sort_by_key(|&at| map.class(at as usize).obfuscated);
        PacketMap { map, by_name }
    }

    /// Returns a class by its name in the app. Several packets can each have a part of it; the
    /// original name comes from the last one.
    pub(super) fn class(&self, obfuscated: &str) -> Option<Class<'a>> {
        let name = |at: u32| self.map.class(at as usize).obfuscated;
        let start = self.by_name.partition_point(|&at| name(at) < obfuscated);
        let rest = &self.by_name[start..];
        let same = &rest[..rest.partition_point(|&at| name(at) == obfuscated)];
        let last = self.map.class(*same.last()? as usize);
        let mut class = Class::new(last.original);
        for &at in same {
            let part = self.map.class(at as usize);
            for member in part.members() {
                if class.is_full() {
                    break;
                }
                let (holder, name) = qualified(part.original, member.original);
                let obfuscated = member.obfuscated;
                if member.is_method {
                    class.methods.push(Method {
                        obfuscated,
                        holder,
                        name,
                        signature: None,
                        lines: range(member.lines),
                        original: OriginalLines::new(
                            member.lines.source_start,
                            member.lines.source_end,
                        ),
                        notes: None,
                    });
                } else {
                    class.fields.push(Field {
                        obfuscated,
                        holder,
                        name,
                        of_type: None,
                        notes: None,
                    });
                }
            }
        }
        class.finish();
        Some(class)
    }
}

/// Converts a range; a missing bound is open.
fn range(lines: PacketLines) -> Option<LineRange> {
    let (first, last) = (lines.obfuscated_start, lines.obfuscated_end);
    (first.is_some() || last.is_some()).then(|| LineRange {
        first: first.unwrap_or(0),
        last: last.unwrap_or(u32::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_in_several_packets_is_one() {
        let mut map = NameMap::default();
        map.add_class("a", "x.A");
        map.add_method("f", "run", PacketLines::default());
        map.add_class("b", "x.B");
        map.add_class("a", "x.A");
        let open = PacketLines {
            obfuscated_start: Some(3),
            source_start: Some(50),
            ..PacketLines::default()
        };
        map.add_method("f", "y.U.inlined", open);
        map.add_field("g", "count");
        let packets = PacketMap::new(&map);
        let class = packets.class("a").unwrap();
        assert_eq!(class.original, "x.A");
        let found: Vec<_> = class
            .methods("f")
            .iter()
            .map(|m| (m.holder, m.name, m.lines.map(|l| (l.first, l.last))))
            .collect();
        let expected = [
            ("x.A", "run", None),
            ("y.U", "inlined", Some((3, u32::MAX))),
        ];
        assert_eq!(found, expected);
        assert_eq!(class.fields("g")[0].name, "count");
        assert_eq!(class.methods("g").len(), 0);
        assert!(packets.class("c").is_none());
    }
}
