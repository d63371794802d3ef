//! Twin of `linux` for systems without the preload library. Nothing of it can be reached, because
//! `supported` refuses these systems first.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::Path;

use heaptap_base::error::Failure;

use super::check::Checked;
use super::end::{Origin, ProgramEnd, SessionEnd};
use super::error::unsupported;

/// Signals to heaptap.
#[derive(Debug)]
pub struct Signals(Infallible);

impl Signals {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn watch() -> Result<Signals, Failure> {
        Err(unsupported(std::env::consts::OS))
    }

    /// Returns the next signal.
    pub async fn next(&mut self) -> (i32, Origin) {
        match self.0 {}
    }

    /// Returns when a signal has come at `time` or later.
    pub async fn after(&mut self, _time: tokio::time::Instant) {
        match self.0 {}
    }

    /// Forgets signals.
    pub fn drain(&mut self) {
        match self.0 {}
    }
}

/// A tracing service and its session.
#[derive(Debug)]
pub struct Tracing(Infallible);

impl Tracing {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub async fn start(_: &Checked) -> Result<Tracing, Failure> {
        Err(unsupported(std::env::consts::OS))
    }

    /// Starts a session.
    ///
    /// # Errors
    /// Always.
    pub async fn record(&mut self, _: &[u8], _: &Path) -> Result<(), Failure> {
        match self.0 {}
    }

    /// Starts the program.
    ///
    /// # Errors
    /// Always.
    pub fn run(&self, _: &Checked, _: &[OsString]) -> Result<Program, Failure> {
        match self.0 {}
    }

    /// Returns the variable that marks the processes of this recording.
    pub fn marker(&self) -> Vec<u8> {
        match self.0 {}
    }

    /// Waits until perfetto ends by itself.
    pub async fn ended(&mut self) {
        match self.0 {}
    }

    pub async fn stop(&mut self, _: impl Future<Output = ()>) -> SessionEnd {
        match self.0 {}
    }

    /// Keeps a session that records nothing active.
    pub async fn stay_released(&mut self, _: &[u8]) {
        match self.0 {}
    }

    /// Starts a session that records nothing.
    pub async fn release(&mut self, _: &[u8]) -> bool {
        match self.0 {}
    }

    /// Ends the service.
    pub async fn end(self) {
        match self.0 {}
    }
}

/// A running program.
#[derive(Debug)]
pub struct Program(Infallible);

impl Program {
    /// Returns the process ID.
    pub fn pid(&self) -> u32 {
        match self.0 {}
    }

    pub async fn wait(&mut self) -> ProgramEnd {
        match self.0 {}
    }

    /// Forwards a signal.
    pub fn signal(&self, _: i32) {
        match self.0 {}
    }
}
