//! App type from the binary `AndroidManifest.xml` in an APK: the last resort, for devices
//! that do not answer otherwise.
//!
//! The format (Android's `ResXMLTree`), little-endian, is a tree of chunks, each with a header
//! of type u16, header size u16, size u32:
//! ```text
//! 0x0003 file      0x0001 string pool   counts, flags, offsets, strings
//!                  0x0180 resource map  u32 ids; id n belongs to string n
//!                  0x0102 element start name = string index; attributes of 20 bytes each:
//!                                       namespace, name, raw value, {size u16, 0 u8, type u8, data u32}
//! ```
//! Attributes are identified by their resource ID, not by their name. No allocation depends on
//! a size that the file claims.

use super::packages::AppType;

const XML: u16 = 0x0003;
const STRING_POOL: u16 = 0x0001;
const RESOURCE_MAP: u16 = 0x0180;
const START_ELEMENT: u16 = 0x0102;
const UTF8: u32 = 0x100;

const ENABLED: u32 = 0x0101_000e;
const DEBUGGABLE: u32 = 0x0101_000f;
const SHELL: u32 = 0x0101_0594;

const BOOLEAN: u8 = 0x12;

/// Reads a binary manifest. Returns `None` if it is invalid, or if a relevant attribute is
/// not a plain value.
pub fn read_manifest(bytes: &[u8]) -> Option<AppType> {
    let (kind, header, whole) = chunk(bytes)?;
    if kind != XML {
        return None;
    }
    let mut rest = whole.get(header..)?;
    let (mut strings, mut ids): (&[u8], &[u8]) = (&[], &[]);
    let mut seen_application = false;
    let (mut debuggable, mut profileable) = (false, None);
    while let Some((kind, header, body)) = chunk(rest) {
        match kind {
            STRING_POOL => strings = body,
            RESOURCE_MAP => ids = body.get(header..)?,
            START_ELEMENT => {
                let element = Element {
                    body: body.get(header..)?,
                    ids,
                };
                match string(strings, u32_at(element.body, 4)?).as_deref() {
                    Some("application") => {
                        seen_application = true;
                        debuggable = element.flag(DEBUGGABLE)?.unwrap_or(false);
                    }
                    Some("profileable") => {
                        let enabled = element.flag(ENABLED)?.unwrap_or(true);
                        let shell = element.flag(SHELL)?.unwrap_or(false);
                        profileable = Some((enabled, shell));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        rest = &rest[body.len()..];
    }
    if !seen_application {
        return None;
    }
    Some(match profileable {
        _ if debuggable => AppType::Debuggable,
        Some((true, true)) => AppType::Profileable,
        Some((true, false)) => AppType::PlatformOnly,
        Some((false, _)) | None => AppType::Closed,
    })
}

/// Returns the chunk at the start of `bytes`: type, header size, and all its bytes.
fn chunk(bytes: &[u8]) -> Option<(u16, usize, &[u8])> {
    let header = usize::from(u16_at(bytes, 2)?);
    let size = usize::try_from(u32_at(bytes, 4)?).ok()?;
    if header < 8 || size < header {
        return None;
    }
    Some((u16_at(bytes, 0)?, header, bytes.get(..size)?))
}

struct Element<'a> {
    body: &'a [u8],
    ids: &'a [u8],
}

impl Element<'_> {
    /// Returns the boolean attribute with a resource ID: `Some(None)` if the element does not
    /// have it, `None` if its value is not a plain boolean.
    fn flag(&self, id: u32) -> Option<Option<bool>> {
        let start = usize::from(u16_at(self.body, 8)?);
        let size = usize::from(u16_at(self.body, 10)?);
        let count = usize::from(u16_at(self.body, 12)?);
        for n in 0..count {
            let attribute = self.body.get(start + n * size..)?;
            let name = usize::try_from(u32_at(attribute, 4)?).ok()?;
            let Some(attribute_id) = name.checked_mul(4).and_then(|at| u32_at(self.ids, at)) else {
                continue;
            };
            if attribute_id == id {
                let plain = *attribute.get(15)? == BOOLEAN;
                return plain.then_some(Some(u32_at(attribute, 16)? != 0));
            }
        }
        Some(None)
    }
}

/// Returns string `index` of a pool if it is shorter than 128 bytes, as the relevant names are.
fn string(pool: &[u8], index: u32) -> Option<String> {
    let header = usize::from(u16_at(pool, 2)?);
    if index >= u32_at(pool, 8)? {
        return None;
    }
    let flags = u32_at(pool, 16)?;
    let strings = usize::try_from(u32_at(pool, 20)?).ok()?;
    let entry = usize::try_from(index).ok()?.checked_mul(4)?;
    let offset = usize::try_from(u32_at(pool, header.checked_add(entry)?)?).ok()?;
    let text = pool.get(strings.checked_add(offset)?..)?;
    if flags & UTF8 != 0 {
        // Length in characters, then in bytes; below 128 each is one byte.
        let length = usize::from(*text.get(1)?);
        (length < 128).then_some(())?;
        String::from_utf8(text.get(2..2 + length)?.to_vec()).ok()
    } else {
        let length = usize::from(u16_at(text, 0)?);
        (length < 128).then_some(())?;
        let units = text.get(2..2 + 2 * length)?;
        let units = units
            .chunks_exact(2)
            .map(|u| u16::from_le_bytes([u[0], u[1]]));
        char::decode_utf16(units).collect::<Result<_, _>>().ok()
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let raw = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes([raw[0], raw[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let raw = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(kind: u16, header: u16, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(kind.to_le_bytes());
        out.extend(header.to_le_bytes());
        out.extend((body.len() as u32 + 8).to_le_bytes());
        out.extend(body);
        out
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    /// Strings 0 to 2 are attributes, as the resource map has it.
    const STRINGS: [&str; 5] = [
        "debuggable",
        "enabled",
        "shell",
        "application",
        "profileable",
    ];

    fn pool(utf8: bool) -> Vec<u8> {
        let (mut offsets, mut data) = (Vec::new(), Vec::new());
        for s in STRINGS {
            offsets.push(data.len() as u32);
            if utf8 {
                data.extend([s.len() as u8, s.len() as u8]);
                data.extend(s.as_bytes());
                data.push(0);
            } else {
                data.extend((s.len() as u16).to_le_bytes());
                data.extend(s.encode_utf16().flat_map(u16::to_le_bytes));
                data.extend([0, 0]);
            }
        }
        let start = 28 + 4 * STRINGS.len() as u32;
        let flags = if utf8 { UTF8 } else { 0 };
        let mut body = words(&[STRINGS.len() as u32, 0, flags, start, 0]);
        body.extend(words(&offsets));
        body.extend(data);
        put(STRING_POOL, 28, &body)
    }

    fn element(name: u32, attributes: &[(u32, u8, u32)]) -> Vec<u8> {
        let mut body = words(&[1, u32::MAX, u32::MAX, name]);
        for half in [20u16, 20, attributes.len() as u16, 0, 0, 0] {
            body.extend(half.to_le_bytes());
        }
        for (name, kind, data) in attributes {
            body.extend(words(&[u32::MAX, *name, u32::MAX]));
            body.extend([8, 0, 0, *kind]);
            body.extend(words(&[*data]));
        }
        put(START_ELEMENT, 16, &body)
    }

    fn manifest(utf8: bool, elements: &[Vec<u8>]) -> Vec<u8> {
        let mut body = pool(utf8);
        body.extend(put(RESOURCE_MAP, 8, &words(&[DEBUGGABLE, ENABLED, SHELL])));
        body.extend(elements.concat());
        put(XML, 8, &body)
    }

    const YES: u32 = u32::MAX;

    #[test]
    fn a_manifest_tells_who_may_profile() {
        let application = |debuggable| element(3, &[(0, BOOLEAN, debuggable)]);
        let profileable = |attributes: &[_]| element(4, attributes);
        for (elements, kind) in [
            (vec![application(YES)], Some(AppType::Debuggable)),
            (vec![application(0)], Some(AppType::Closed)),
            (
                vec![element(3, &[]), profileable(&[(2, BOOLEAN, YES)])],
                Some(AppType::Profileable),
            ),
            (
                vec![application(0), profileable(&[(2, BOOLEAN, 0)])],
                Some(AppType::PlatformOnly),
            ),
            (
                vec![
                    application(0),
                    profileable(&[(1, BOOLEAN, 0), (2, BOOLEAN, YES)]),
                ],
                Some(AppType::Closed),
            ),
            // A reference to a resource, and a manifest without an application.
            (vec![element(3, &[(0, 1, 0x7f01_0001)])], None),
            (vec![], None),
        ] {
            for utf8 in [false, true] {
                assert_eq!(read_manifest(&manifest(utf8, &elements)), kind);
            }
        }
    }

    #[test]
    fn no_prefix_and_no_changed_byte_breaks_the_reader() {
        let elements = [
            element(3, &[(0, BOOLEAN, 0)]),
            element(4, &[(2, BOOLEAN, YES)]),
        ];
        let whole = manifest(true, &elements);
        for end in 0..whole.len() {
            let _ = read_manifest(&whole[..end]);
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[end] = value;
                let _ = read_manifest(&changed);
            }
        }
        assert_eq!(read_manifest(b"PK\x03\x04"), None);
    }
}
