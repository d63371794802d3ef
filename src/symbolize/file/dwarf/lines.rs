//! File and line of each address of a unit: one pass over the unit's line program, which keeps
//! no rows but those asked for.

use super::entries::Cursor;
use super::{DwarfError, Slice, Unit};
use gimli::{Error, LineProgramHeader, constants as dw};

/// Where the instruction at an address came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// Number of the file in the unit's table.
    pub file: u64,
    pub line: u32,
    pub column: u32,
}

/// The rows of one unit's addresses. Kept from unit to unit for its memory.
#[derive(Debug, Default)]
pub(super) struct Lines {
    rows: Vec<Option<Found>>,
    /// Of the sequence at hand: index of the address, and its row.
    sequence: Vec<(usize, Row)>,
}

#[derive(Debug, Clone, Copy)]
struct Found {
    row: Row,
    /// End of its sequence.
    end: u64,
}

impl Lines {
    /// Searches the unit's line program for these addresses, which are sorted.
    ///
    /// # Errors
    /// Where the program is damaged; what it says before that counts.
    pub fn find(&mut self, unit: &Unit<'_>, addresses: &[u64]) -> Result<(), DwarfError> {
        self.rows.clear();
        self.rows.resize(addresses.len(), None);
        self.sequence.clear();
        match &unit.line_program {
            Some(program) => self.run(program.header(), addresses),
            None => Ok(()),
        }
    }

    /// The row of the address of this index.
    pub fn row(&self, address: usize) -> Option<Row> {
        self.rows[address].map(|found| found.row)
    }

    fn run(
        &mut self,
        header: &LineProgramHeader<Slice<'_>>,
        addresses: &[u64],
    ) -> Result<(), DwarfError> {
        let program = header.raw_program_buf();
        let mut cursor = Cursor {
            bytes: program.slice(),
            at: 0,
        };
        let (base, range) = (i64::from(header.line_base()), header.line_range());
        let opcode_base = header.opcode_base();
        let scale = u64::from(header.minimum_instruction_length());
        // Android's machines have one operation an instruction.
        if header.maximum_operations_per_instruction() > 1 || range == 0 {
            return Err(DwarfError::Instructions);
        }
        let constant = u64::from((255 - opcode_base) / range) * scale;
        let mut state = State::new(addresses);
        while cursor.at < cursor.bytes.len() {
            let opcode = cursor.byte()?;
            if opcode >= opcode_base {
                let adjusted = opcode - opcode_base;
                state.address = state
                    .address
                    .wrapping_add(u64::from(adjusted / range) * scale);
                let line = i64::from(state.row.line) + base + i64::from(adjusted % range);
                state.row.line = line as u32;
                self.row_begins(&mut state);
                continue;
            }
            match gimli::DwLns(opcode) {
                gimli::DwLns(0) => self.extended(&mut cursor, &mut state)?,
                dw::DW_LNS_copy => self.row_begins(&mut state),
                dw::DW_LNS_advance_pc => {
                    let by = cursor.leb()?.wrapping_mul(scale);
                    state.address = state.address.wrapping_add(by);
                }
                dw::DW_LNS_advance_line => {
                    let line = i64::from(state.row.line).wrapping_add(cursor.signed_leb()?);
                    state.row.line = line as u32;
                }
                dw::DW_LNS_set_file => state.row.file = cursor.leb()?,
                dw::DW_LNS_set_column => state.row.column = cursor.leb()? as u32,
                dw::DW_LNS_negate_stmt
                | dw::DW_LNS_set_basic_block
                | dw::DW_LNS_set_prologue_end
                | dw::DW_LNS_set_epilogue_begin => {}
                dw::DW_LNS_const_add_pc => state.address = state.address.wrapping_add(constant),
                dw::DW_LNS_fixed_advance_pc => {
                    state.address = state.address.wrapping_add(cursor.half()?.into());
                }
                dw::DW_LNS_set_isa => {
                    cursor.leb()?;
                }
                _ => {
                    let lengths = header.standard_opcode_lengths().slice();
                    for _ in 0..lengths.get(opcode as usize - 1).copied().unwrap_or(0) {
                        cursor.leb()?;
                    }
                }
            }
        }
        Ok(())
    }

    fn extended(
        &mut self,
        cursor: &mut Cursor<'_>,
        state: &mut State<'_>,
    ) -> Result<(), DwarfError> {
        let size = cursor.leb()?;
        let mut inner = *cursor;
        cursor.forward(size);
        if size == 0 {
            return Ok(());
        }
        match gimli::DwLne(inner.byte()?) {
            dw::DW_LNE_end_sequence => {
                self.row_begins(state);
                self.end_sequence(state);
            }
            dw::DW_LNE_set_address => {
                state.address = match size - 1 {
                    size @ (1 | 2 | 4 | 8) => inner.number(size as u8)?,
                    size => return Err(Error::UnsupportedAddressSize(size as u8).into()),
                };
            }
            // Discriminators, and files that no producer defines here.
            _ => {}
        }
        Ok(())
    }

    /// A row begins at the state's address, where the row before ends.
    #[inline]
    fn row_begins(&mut self, state: &mut State<'_>) {
        let Some((start, row)) = state.last else {
            state.next = state.addresses.partition_point(|a| *a < state.address);
            state.last = Some((state.address, state.row));
            return;
        };
        if state.address > start {
            while let Some(address) = state.addresses.get(state.next) {
                if *address >= state.address {
                    break;
                }
                self.sequence.push((state.next, row));
                state.next += 1;
            }
        }
        state.last = Some((state.address, state.row));
    }

    /// Among overlapping sequences the one that ends first counts, as with llvm-symbolizer.
    fn end_sequence(&mut self, state: &mut State<'_>) {
        let end = state.address;
        for (at, row) in self.sequence.drain(..) {
            let found = &mut self.rows[at];
            if found.is_none_or(|found| end < found.end) {
                *found = Some(Found { row, end });
            }
        }
        *state = State::new(state.addresses);
    }
}

/// The registers of the line program.
struct State<'a> {
    addresses: &'a [u64],
    address: u64,
    row: Row,
    /// The row before, and where it begins.
    last: Option<(u64, Row)>,
    /// The first address that has no row yet.
    next: usize,
}

impl<'a> State<'a> {
    fn new(addresses: &'a [u64]) -> Self {
        State {
            addresses,
            address: 0,
            row: Row {
                file: 1,
                line: 1,
                column: 0,
            },
            last: None,
            next: 0,
        }
    }
}
