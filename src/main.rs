//! The thin binary: a runtime around [`heaptap::cli::run`].

use std::process::ExitCode;

fn main() -> ExitCode {
    heaptap::cli::run()
}
