//! Refusals of `am`.

use super::{BadOption, Cmd, Halt};

/// Reports that a command or an option needs an argument.
pub(super) fn missing(after: &str) -> Halt {
    let text = format!("Error: Argument expected after \"{after}\"");
    Halt::refused(255, text)
}

/// Returns a refused call of system_server: its exception.
pub(super) fn exception(cmd: &Cmd, verb: &str, exception: &str) -> Halt {
    let of = match cmd.kernel.spec.android {
        10 => String::new(),
        _ => format!(" '{verb}'"),
    };
    Halt::refused(
        255,
        format!(
            "\nException occurred while executing{of}:\n{exception}\n\
         \tat com.android.server.am.ActivityManagerShellCommand.onCommand(ActivityManagerShellCommand.java:310)\n\
         \tat android.os.ShellCommand.exec(ShellCommand.java:104)\n\
         \tat android.os.Binder.execTransact(Binder.java:1028)"
        ),
    )
}

/// Returns the answer of `am` to a wrong option.
pub(super) fn bad_option(bad: BadOption) -> Halt {
    match bad {
        BadOption::Unknown(option) => {
            Halt::refused(255, format!("Error: Unknown option: {option}"))
        }
        BadOption::NoValue(option) => missing(&option),
    }
}
