//! Splitting of a pprof message (`perftools.profiles.Profile`) into its parts, in any order. This
//! module owns the wire format. IDs and string indices are unchecked.

use heaptap_base::units::Allowance;
use perfetto_heap::wire::{Fields, Value, WireError, each};

/// Maximum number of columns; tools write up to a dozen.
const COLUMNS: usize = 64;
/// Maximum number of comments; heaptap writes only a few.
const COMMENTS: usize = 1000;
/// Bytes needed to index an entry by ID or content.
const INDEXED: usize = 40;

/// A profile split into its parts. Borrows the bytes.
#[derive(Debug, Default)]
pub(super) struct Message<'a> {
    /// Type and unit of the columns that are read, as string indices.
    pub(super) sample_types: Vec<ValueType>,
    /// Number of columns beyond the limit.
    pub(super) more_sample_types: u64,
    /// Unparsed `Sample` messages.
    pub(super) samples: Vec<&'a [u8]>,
    pub(super) mappings: Vec<Mapping>,
    pub(super) locations: Vec<Location>,
    /// Lines of all locations.
    pub(super) lines: Vec<Line>,
    pub(super) functions: Vec<Function>,
    pub(super) strings: Vec<&'a [u8]>,
    pub(super) time_nanos: i64,
    pub(super) period_type: Option<ValueType>,
    pub(super) period: i64,
    /// String indices.
    pub(super) comments: Vec<u64>,
    /// String index; 0 means none.
    pub(super) default_sample_type: u64,
    /// Number of messages that could not be fully read.
    pub(super) broken: u64,
    /// Number of samples without content.
    pub(super) empty_samples: u64,
    /// Number of entries dropped because of the memory limit.
    pub(super) left_out: u64,
    /// Remaining memory allowance.
    pub(super) allowance: Allowance,
    /// Error at the end of a truncated profile.
    pub(super) cut: Option<WireError>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ValueType {
    pub(super) name: u64,
    pub(super) unit: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mapping {
    pub(super) id: u64,
    pub(super) start: u64,
    pub(super) offset: u64,
    pub(super) file: u64,
    pub(super) build_id: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Location {
    pub(super) id: u64,
    pub(super) mapping: u64,
    pub(super) address: u64,
    /// Range in the lines of all locations; innermost first.
    pub(super) first_line: usize,
    pub(super) end_line: usize,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    pub(super) function: u64,
    pub(super) line: i64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Function {
    pub(super) id: u64,
    pub(super) name: u64,
    pub(super) system_name: u64,
    pub(super) file: u64,
}

impl<'a> Message<'a> {
    /// Splits a profile into its parts, as far as it can be read.
    pub(super) fn read(bytes: &'a [u8]) -> Message<'a> {
        let mut allowance = Allowance::from_bytes(bytes.len());
        // This reader has few other buffers, and a pprof of many callstacks is small for them.
        allowance.add(bytes.len() / 2);
        let mut message = Message {
            allowance,
            ..Message::default()
        };
        let mut fields = Fields::new(bytes);
        loop {
            match fields.next() {
                Ok(Some((number, value))) => {
                    if message.field(number, value).is_err() {
                        message.broken += 1;
                    }
                }
                Ok(None) => return message,
                Err(error) => {
                    message.cut = Some(error);
                    return message;
                }
            }
        }
    }

    /// Returns whether memory is left for an entry of `bytes` bytes and its index.
    fn has_room(&mut self, bytes: usize) -> bool {
        let has_room = self.allowance.take(bytes + bytes / 2 + INDEXED);
        self.left_out += u64::from(!has_room);
        has_room
    }

    fn field(&mut self, number: u32, value: Value<'a>) -> Result<(), WireError> {
        match number {
            1 if self.sample_types.len() < COLUMNS => {
                self.sample_types.push(value_type(value.bytes())?);
            }
            1 => self.more_sample_types += 1,
            2 if value.bytes().is_empty() => self.empty_samples += 1,
            2 if self.has_room(size_of::<&[u8]>()) => self.samples.push(value.bytes()),
            3 => {
                let mut mapping = Mapping::default();
                let read = each(value.bytes(), |number, value| match number {
                    1 => mapping.id = value.number(),
                    2 => mapping.start = value.number(),
                    4 => mapping.offset = value.number(),
                    5 => mapping.file = value.number(),
                    6 => mapping.build_id = value.number(),
                    _ => {}
                });
                // Without an ID, nothing can refer to the mapping.
                if mapping.id != 0 && self.has_room(size_of::<Mapping>()) {
                    self.mappings.push(mapping);
                }
                read?;
            }
            4 => {
                let mut location = Location {
                    first_line: self.lines.len(),
                    ..Location::default()
                };
                let mut inner = Ok(());
                let (lines, allowance) = (&mut self.lines, &mut self.allowance);
                let mut left_out = 0;
                let read = each(value.bytes(), |number, value| match number {
                    1 => location.id = value.number(),
                    2 => location.mapping = value.number(),
                    3 => location.address = value.number(),
                    4 => {
                        let mut line = Line::default();
                        let read = each(value.bytes(), |number, value| match number {
                            1 => line.function = value.number(),
                            2 => line.line = value.number() as i64,
                            _ => {}
                        });
                        match allowance.take(size_of::<Line>() * 3 / 2) {
                            true => lines.push(line),
                            false => left_out += 1,
                        }
                        inner = inner.and(read);
                    }
                    _ => {}
                });
                location.end_line = self.lines.len();
                self.left_out += left_out;
                if location.id != 0 && self.has_room(size_of::<Location>()) {
                    self.locations.push(location);
                } else {
                    self.lines.truncate(location.first_line);
                }
                read.and(inner)?;
            }
            5 => {
                let mut function = Function::default();
                let read = each(value.bytes(), |number, value| match number {
                    1 => function.id = value.number(),
                    2 => function.name = value.number(),
                    3 => function.system_name = value.number(),
                    4 => function.file = value.number(),
                    _ => {}
                });
                if function.id != 0 && self.has_room(size_of::<Function>()) {
                    self.functions.push(function);
                }
                read?;
            }
            6 if self.has_room(size_of::<&[u8]>()) => self.strings.push(value.bytes()),
            9 => self.time_nanos = value.number() as i64,
            11 => self.period_type = Some(value_type(value.bytes())?),
            12 => self.period = value.number() as i64,
            13 => value.numbers(|comment| match self.comments.len() < COMMENTS {
                true => self.comments.push(comment),
                false => self.left_out += 1,
            })?,
            14 => self.default_sample_type = value.number(),
            _ => {}
        }
        Ok(())
    }

    /// Returns a string; `None` if the index is out of range.
    pub(super) fn string(&self, index: u64) -> Option<&'a [u8]> {
        let at = usize::try_from(index).ok()?;
        self.strings.get(at).copied()
    }
}

fn value_type(bytes: &[u8]) -> Result<ValueType, WireError> {
    let mut read = ValueType::default();
    each(bytes, |number, value| match number {
        1 => read.name = value.number(),
        2 => read.unit = value.number(),
        _ => {}
    })?;
    Ok(read)
}
