//! The lines of one class in a mapping file, read when the class is needed. Metadata belongs to the
//! entry directly above it, indented or not.

use super::class::{Class, Field, Method, Signature, qualified};
use super::grammar::{Line, Member};
use super::index::line_at;
use super::metadata::{Metadata, Notes, Version, json_of};

/// Entry that the following metadata belongs to.
enum Above {
    Method,
    Field,
    /// The class, or an unreadable line: its metadata is ignored.
    Other,
}

/// Reads the block at an offset and adds its members to a class. Bad lines were counted when the
/// file was indexed.
pub(super) fn read<'a>(bytes: &'a [u8], start: usize, version: Version, class: &mut Class<'a>) {
    let mut at = start;
    let mut original = None;
    let mut above = Above::Other;
    while at < bytes.len() {
        let line = line_at(bytes, at);
        at += line.len() + 1;
        match Line::parse(line) {
            Ok(Line::Class { .. }) if original.is_some() => return,
            Ok(Line::Class { original: name, .. }) => original = Some(name),
            Ok(Line::Member(_)) if class.is_full() => above = Above::Other,
            Ok(Line::Member(member)) => {
                let Some(holder) = original else { return };
                above = add(class, holder, member);
            }
            Ok(Line::Comment(comment)) => {
                let metadata = json_of(comment).and_then(|json| Metadata::parse(json, version));
                let Some(metadata) = metadata else { continue };
                if matches!(metadata, Metadata::Version { .. }) {
                    return;
                }
                note(class, &above, metadata);
            }
            Ok(Line::Blank) => {}
            Err(_) => above = Above::Other,
        }
    }
}

fn add<'a>(class: &mut Class<'a>, original: &'a str, member: Member<'a>) -> Above {
    let (holder, name) = qualified(original, member.name);
    let obfuscated = member.obfuscated;
    match member.parameters {
        Some(parameters) => {
            class.methods.push(Method {
                obfuscated,
                holder,
                name,
                signature: Some(Signature {
                    returns: member.of_type,
                    parameters,
                }),
                lines: member.lines,
                original: member.original,
                notes: None,
            });
            Above::Method
        }
        None => {
            class.fields.push(Field {
                obfuscated,
                holder,
                name,
                of_type: Some(member.of_type),
                notes: None,
            });
            Above::Field
        }
    }
}

fn note(class: &mut Class, above: &Above, metadata: Metadata) {
    let notes = match above {
        Above::Method => class.methods.last_mut().map(|method| &mut method.notes),
        Above::Field => class.fields.last_mut().map(|field| &mut field.notes),
        Above::Other => return,
    };
    if let Some(notes) = notes {
        notes
            .get_or_insert_with(Box::<Notes>::default)
            .add(metadata);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deobfuscate::index::Index;

    fn read_all<'a>(text: &'a str, class: &mut Class<'a>) {
        let index = Index::build(text.as_bytes());
        let start = index.start(index.find(text.as_bytes(), "a").unwrap());
        read(text.as_bytes(), start, index.version_at(start), class);
        class.finish();
    }

    #[test]
    fn metadata_belongs_to_the_entry_above_it() {
        let text = "# {'id':'com.android.tools.r8.mapping','version':'2.2'}\n\
            x.A -> a:\n\
            # {'id':'sourceFile','fileName':'A.kt'}\n\
            # {'id':'com.android.tools.r8.synthesized'}\n\
            \x20   int k -> f\n\
            \x20     # {'id':'com.android.tools.r8.residualsignature','signature':'I'}\n\
            \x20   1:2:void y.B.m():7 -> f\n\
            # {'id':'com.android.tools.r8.synthesized'}\n\
            \x20   broken\n\
            # {'id':'com.android.tools.r8.outline'}\n\
            \x20   void n() -> f\n\
            x.B -> b:\n    void n() -> f\n";
        let mut class = Class::new("x.A");
        read_all(text, &mut class);
        let residual = class.fields("f")[0]
            .notes
            .as_deref()
            .and_then(|n| n.residual.clone());
        assert_eq!(residual.as_deref(), Some("I"));
        let found: Vec<_> = class
            .methods("f")
            .iter()
            .map(|m| (m.holder, m.name, m.notes.is_some()))
            .collect();
        assert_eq!(found, [("y.B", "m", true), ("x.A", "n", false)]);
    }

    #[test]
    fn without_a_version_metadata_does_not_count() {
        let text = "x.A -> a:\n# {'id':'com.android.tools.r8.synthesized'}\n    void n() -> f\n\
            \x20     # {'id':'com.android.tools.r8.synthesized'}\n";
        let mut class = Class::new("x.A");
        read_all(text, &mut class);
        assert!(class.methods("f")[0].notes.is_none());
    }
}
