//! Compression of single streams. Archives of several files are in `archive`.

use super::detect::{HEAD, Kind, detect};
use super::error::ImportError;
use super::parallel_gzip::{self, Members, NO_MEMBER};
use super::spool::{Budget, Spool};
use heaptap_base::bytes::Bytes;
use std::io::{self, BufRead, Read};

/// Maximum nesting of compression and archives. A bundle in gzip in a ZIP is deep enough.
pub(super) const MAX_DEPTH: u32 = 4;

/// Memory limit for an xz dictionary, in KiB; `xz -9` uses 64 MiB.
const XZ_MEMORY_KIB: u32 = 128 << 10;
/// Number of packed bytes that reliably unpack to [`HEAD`] bytes at any nesting depth.
pub(super) const PACKED_HEAD: usize = 1 << 20;

/// A compression format for one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Gzip,
    Zstd,
    Xz,
}

impl Codec {
    /// Returns the codec for a file type.
    pub(super) fn from_kind(kind: Kind) -> Option<Codec> {
        match kind {
            Kind::Gzip => Some(Codec::Gzip),
            Kind::Zstd => Some(Codec::Zstd),
            Kind::Xz => Some(Codec::Xz),
            _ => None,
        }
    }

    /// Returns the name used in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Codec::Gzip => "gzip",
            Codec::Zstd => "zstd",
            Codec::Xz => "xz",
        }
    }

    /// Returns a reader of the unpacked stream.
    ///
    /// # Errors
    /// Returns an error if the codec cannot allocate its memory.
    pub(super) fn reader<'a>(self, packed: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Codec::Gzip => Box::new(Members::new(packed)),
            Codec::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(packed)?),
            Codec::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(
                packed,
                true,
                XZ_MEMORY_KIB,
            )),
        })
    }

    /// Unpacks bytes in memory. If the data is damaged, returns the reason and keeps the bytes
    /// before the damage.
    pub(super) fn unpack(
        self,
        packed: &[u8],
        spool: &mut Spool,
    ) -> Result<Option<String>, ImportError> {
        if self == Codec::Gzip {
            return parallel_gzip::unpack(packed, spool);
        }
        match self.reader(packed) {
            Ok(reader) => spool.append(reader),
            Err(error) => Ok(Some(error.to_string())),
        }
    }

    /// Returns the first unpacked bytes, given the first packed bytes; `None` if nothing can be
    /// unpacked.
    pub(super) fn head(self, packed: &[u8]) -> Option<Vec<u8>> {
        let mut head = Vec::new();
        // The packed bytes end inside the stream, so an error is expected. The bytes before it are
        // enough.
        let _ = self
            .reader(packed)
            .and_then(|reader| reader.take(HEAD as u64).read_to_end(&mut head));
        (!head.is_empty()).then_some(head)
    }

    /// Describes the damage of a stream that broke off after `size` unpacked bytes.
    ///
    /// # Errors
    /// Returns [`ImportError::Damaged`] if the stream broke off before any byte.
    pub(super) fn damage(
        self,
        name: &str,
        size: u64,
        why: Option<String>,
    ) -> Result<Option<String>, ImportError> {
        match why.map(|why| breaks_off(self.name(), size, &why)) {
            Some(what) if size == 0 => Err(ImportError::Damaged {
                name: name.to_owned(),
                what,
            }),
            what => Ok(what),
        }
    }
}

/// End of the description of a whole stream with other bytes behind it.
pub const BYTES_BEHIND: &str = "is whole; the bytes behind it are no part of it";

/// Describes a stream of this compression that broke off after `size` unpacked bytes.
pub(super) fn breaks_off(packing: &str, size: u64, why: &str) -> String {
    // Codecs check each part of a stream, and then expect another part.
    if size > 0 && [NO_MEMBER, "Unknown frame descriptor"].contains(&why) {
        return format!("its {packing} stream {BYTES_BEHIND}");
    }
    format!("its {packing} stream breaks off after {size} bytes: {why}")
}

/// Unpacks bytes that are `depth` levels deep from all their compression. Returns them with their depth,
/// and the damage to the outermost layer that has some.
pub(super) fn unpack_all(
    mut bytes: Bytes,
    name: &str,
    mut depth: u32,
    budget: &Budget,
) -> Result<(Bytes, u32, Option<String>), ImportError> {
    let mut damage = None;
    while let Some(codec) = codec_at(detect(&bytes[..bytes.len().min(HEAD)]), depth, name)? {
        let mut spool = Spool::new(name, budget);
        let unpacked = codec.unpack(&bytes, &mut spool)?;
        damage = damage.or(codec.damage(name, spool.size(), unpacked)?);
        bytes = spool.into_bytes()?;
        depth += 1;
    }
    Ok((bytes, depth, damage))
}

/// Returns the codec of a file found `depth` levels deep, if it is compressed.
///
/// # Errors
/// Returns [`ImportError::Damaged`] if the file is compressed or an archive at depth [`MAX_DEPTH`] or
/// deeper.
pub(super) fn codec_at(kind: Kind, depth: u32, name: &str) -> Result<Option<Codec>, ImportError> {
    let codec = Codec::from_kind(kind);
    let is_packed = codec.is_some() || matches!(kind, Kind::Zip | Kind::Tar);
    if is_packed && depth >= MAX_DEPTH {
        return Err(ImportError::Damaged {
            name: name.to_owned(),
            what: format!("it is packed more than {MAX_DEPTH} times"),
        });
    }
    Ok(codec)
}

/// Returns the file type inside all compression, as far as the first bytes show it.
pub(super) fn innermost(bytes: &[u8]) -> Kind {
    let mut head = bytes[..bytes.len().min(PACKED_HEAD)].to_vec();
    for _ in 0..MAX_DEPTH {
        let kind = detect(&head[..head.len().min(HEAD)]);
        match Codec::from_kind(kind).and_then(|codec| codec.head(&head)) {
            Some(inner) => head = inner,
            None => return kind,
        }
    }
    Kind::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a trace of four packets of 104 bytes.
    fn trace() -> Vec<u8> {
        [&[0x0a, 0x66, 0x50, 1, 0x7a, 98][..], &[0; 98]]
            .concat()
            .repeat(4)
    }

    /// The trace, compressed by `xz --check=crc32`.
    const XZ: &[u8] = b"\
        \xfd\x37\x7a\x58\x5a\x00\x00\x01\x69\x22\xde\x36\x02\x00\x21\x01\x16\x00\x00\x00\
        \x74\x2f\xe5\xa3\xe0\x01\x9f\x00\x12\x5d\x00\x05\x1a\x87\x9d\x94\x29\x27\x41\x32\
        \xe5\x97\x5c\x1c\x83\x0a\xa6\x80\x00\x00\x00\x00\x2a\x76\x84\x89\x00\x01\x2a\xa0\
        \x03\x00\x00\x00\xf5\xc2\xf0\x07\x3e\x30\x0d\x8b\x02\x00\x00\x00\x00\x01\x59\x5a";

    #[test]
    fn a_trace_in_xz_is_a_trace() {
        assert_eq!(innermost(XZ), Kind::Trace);
        let mut traces = crate::open_stream(XZ, "trace.xz").unwrap();
        let mut bytes = Vec::new();
        traces[0].source.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, trace());
        assert_eq!(traces[0].damage, None);
    }

    #[test]
    fn a_cut_is_told_with_its_codec_and_nothing_at_all_is_an_error() {
        let damage = |size| Codec::Xz.damage("x", size, Some("it ends".to_owned()));
        let told = damage(7).unwrap().unwrap();
        assert_eq!(told, "its xz stream breaks off after 7 bytes: it ends");
        assert!(matches!(damage(0), Err(ImportError::Damaged { .. })));
        assert!(crate::open_stream(&XZ[..24], "trace.xz").is_err());
    }
}
