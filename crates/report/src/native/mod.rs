//! Static part of a page about sampled native heaps, for readers without scripts and for print. The
//! viewer shows the same data in more detail.
//!
//! | file | owns |
//! |---|---|
//! | `summary` | memory by kind, warnings, memory outside the profile, facts, commands |
//! | `grown` | growth from the first dump of a heap to the last |
//! | `callsites` | the largest callsites |
//! | `place` | function, file and callers of a callsite |
//! | `moments` | memory at each label: its parts, the Java heap, the profile |
//! | `figures` | values of the profile, the allocator and the system side by side |
//! | `dumps` | every dump with its sums; libraries without symbols |

mod callsites;
mod dumps;
mod figures;
mod grown;
mod moments;
mod place;
mod summary;

use super::data::header::Header;
use super::html::Html;
use heaptap_model::stacks::StackProfile;

/// Writes the start of every page: title, warnings, memory by kind.
pub(super) fn head(html: &mut Html, header: &Header) {
    summary::head(html, header);
}

/// Writes the sections about native heaps. The header's dumps and series are those of the profile.
pub(super) fn body(html: &mut Html, header: &Header, profile: &StackProfile) {
    grown::write(html, header, profile);
    callsites::write(html, header, profile);
    moments::write(html, header);
    figures::write(html, header);
    dumps::write(html, header);
    dumps::symbols(html, header);
}

/// Writes the end of every page: memory outside the profile, recording, next steps.
pub(super) fn foot(html: &mut Html, header: &Header) {
    summary::foot(html, header);
}
