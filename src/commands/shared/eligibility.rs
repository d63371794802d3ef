//! Display of eligibility findings.

use crate::console::{Console, Style};
use heaptap_capture::eligibility::{Finding, Scope, Severity};

/// Prints a finding in up to three lines: the problem and its cause, then the remedy.
pub(crate) fn show_finding(console: &Console, f: &Finding, indent: &str) {
    let (style, word) = match f.severity {
        Severity::Note => (Style::Dim, "note"),
        Severity::Warning => (Style::Warn, "warning"),
        Severity::Blocks => match f.scope {
            Scope::Both => (Style::Error, "error"),
            Scope::Native => (Style::Error, "error (native)"),
            Scope::Java => (Style::Warn, "error (Java)"),
        },
    };
    let id = console.styled(Style::Dim, f.id);
    console.data(format_args!(
        "{indent}{}: {}: {} [{id}]",
        console.styled(style, word),
        f.what,
        f.why
    ));
    if let Some(fix) = &f.fix {
        console.data(format_args!(
            "{indent}  {}: {fix}",
            console.styled(Style::Help, "help")
        ));
    }
}
