//! What stands against a profile, and what is to be known of one.

use crate::console::{Console, Style};
use crate::eligibility::{Finding, Scope, Severity};

/// A finding in up to three lines: what and why, then the fix.
pub(crate) fn show_finding(console: &Console, f: &Finding, indent: &str) {
    let (style, word) = match f.severity {
        Severity::Note => (Style::Dim, "note"),
        Severity::Warning => (Style::Warn, "warning"),
        Severity::Blocks => match f.scope {
            Scope::Both => (Style::Error, "no"),
            Scope::Native => (Style::Error, "no native profile"),
            Scope::Java => (Style::Warn, "no Java dump"),
        },
    };
    let id = console.styled(Style::Dim, f.id.as_str());
    console.data(format_args!(
        "{indent}{}: {}: {} [{id}]",
        console.styled(style, word),
        f.what,
        f.why
    ));
    if let Some(fix) = &f.fix {
        console.data(format_args!(
            "{indent}  {}: {fix}",
            console.styled(Style::Help, "fix")
        ));
    }
}
