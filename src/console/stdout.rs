//! Standard output as a place for bytes.

use std::io::{self, Write};

use super::Console;

/// Standard output of a console, which reports at the end why it could not be written.
pub struct ConsoleWriter(pub Console);

impl Write for ConsoleWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.0.stdout_is_closed() {
            self.0.raw(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
