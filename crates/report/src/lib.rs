//! HTML pages about heaps. A page is one file that does not use the network. It is readable without
//! scripts and without styles; with scripts, a viewer shows the data in the page. The crate writes
//! the results of `heaptap-analyze` as text.
//!
//! # Structure
//!
//! A page has three parts: a static part for readers without scripts, blocks of compressed data
//! (`viewer/README.md`), and the viewer. A content policy allows only the viewer's script, by
//! its hash, so names from a device cannot run as scripts. All of them are also escaped.
//!
//! | module | owns |
//! |---|---|
//! | [`data`] | the data for the viewer: header, tables, columns, timeline |
//! | [`java`] | the summary of a Java heap |
//! | `native` | the static part about sampled native heaps, and start and end of every page |
//! | `date` | times as pages show them |
//! | `frame` | the page around its parts: content policy, style, viewer |
//! | `html` | escaping, elements |
//!
//! # Example
//!
//! ```
//! use heaptap_report::{Report, data::header::Header};
//!
//! let report = Report {
//!     header: Header { title: "a <page>".to_owned(), ..Header::default() },
//!     native: None,
//!     inputs: Vec::new(),
//!     java: Vec::new(),
//! };
//! let mut page = Vec::new();
//! report.write(&mut page)?;
//! let page = String::from_utf8_lossy(&page);
//! assert!(page.contains("<title>a &lt;page&gt;"));
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod data;
mod date;
mod frame;
mod html;
pub mod java;
mod native;

pub use date::moment;
pub use frame::MARK;

use data::NativeSections;
use data::header::Header;
use html::Html;
use java::JavaPart;
use std::io::{self, Write};

use heaptap_base::parallel;
use heaptap_model::stacks::StackProfile;

/// Contents of a page.
pub struct Report {
    /// Header. Counts, sections, dumps, series and Java heaps are filled in by [`Report::write`], what was
    /// summed by the caller.
    pub header: Header,
    /// Sampled native heaps, with a tree of callsites ([`data::Reduction`]).
    pub native: Option<StackProfile>,
    /// Indexes of the dumps in `native` at which another input begins.
    pub inputs: Vec<usize>,
    pub java: Vec<JavaPart>,
}

impl Report {
    /// Writes the page: the static part, the data, the viewer.
    ///
    /// # Errors
    /// Returns an error if `out` cannot be written.
    pub fn write(self, out: &mut dyn Write) -> io::Result<()> {
        let Report {
            mut header,
            native,
            inputs,
            java,
        } = self;
        let mut body = Html::default();
        let mut native_sections = None;
        if let Some(profile) = &native {
            debug_assert!(profile.table.list().is_none(), "a reduction makes a tree");
            data::outline(profile, &inputs, &mut header);
            let (encoded, ()) = parallel::both(
                || NativeSections::new(profile, &header),
                || native::body(&mut body, &header, profile),
            );
            native_sections = Some(encoded);
        }
        drop(native);
        let mut bodies = Vec::with_capacity(java.len());
        let mut sections = Vec::with_capacity(java.len());
        for (at, mut part) in java.into_iter().enumerate() {
            part.entry.section = data::java_section(at);
            let is_compared = part.entry.compared_with.is_some();
            header.java.push(part.entry);
            bodies.push((!is_compared, part.body));
            sections.push(part.data);
        }
        // Growth comes before the heap that it is compared with.
        bodies.sort_by_key(|(is_later, _)| *is_later);
        let encoded = data::encode(native_sections, header, sections);
        let header = &encoded.header;
        let mut html = Html::default();
        native::head(&mut html, header);
        html.add(format_args!("{}", body.into_body()));
        for (_, body) in bodies {
            html.add(format_args!("{body}"));
        }
        native::foot(&mut html, header);
        let blocks = data::blocks::Blocks::from_data(&encoded.bytes);
        drop(encoded.bytes);
        let has_data = !(header.dumps.is_empty() && header.java.is_empty());
        let blocks = has_data.then_some(&blocks);
        frame::write(out, &header.title, &html.into_body(), blocks)
    }
}
