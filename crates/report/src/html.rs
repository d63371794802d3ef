//! HTML output: text from a dump enters the page only escaped.

use heaptap_base::untrusted;
use std::fmt::{self, Write as _};

/// Maximum length of a dump's text in a page, in characters.
const MAX_LENGTH: usize = 400;
/// The same of a command, which is of no use without its end; paths can have this length.
const MAX_CODE_LENGTH: usize = 8192;

/// Page or part of a page under construction.
#[derive(Debug, Default)]
pub(super) struct Html(String);

/// Text of the dump for a page: sanitized, cut, escaped, and isolated in writing direction.
pub(super) struct Foreign<'a>(pub(super) &'a str);

impl fmt::Display for Foreign<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<bdi>")?;
        write!(f, "{}", Attribute(self.0))?;
        f.write_str("</bdi>")
    }
}

/// Text of the dump for an attribute in double quotes, or for places that do not allow elements.
pub(super) struct Attribute<'a>(pub(super) &'a str);

impl fmt::Display for Attribute<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_text(f, self.0, MAX_LENGTH)
    }
}

/// Writes the first `most` characters of a text, escaped.
fn write_text(f: &mut fmt::Formatter<'_>, text: &str, most: usize) -> fmt::Result {
    let text = untrusted::sanitize(text);
    let mut chars = text.chars();
    for c in chars.by_ref().take(most) {
        match c {
            '<' => f.write_str("&lt;")?,
            '>' => f.write_str("&gt;")?,
            '&' => f.write_str("&amp;")?,
            '"' => f.write_str("&quot;")?,
            '\'' => f.write_str("&#39;")?,
            c => f.write_char(c)?,
        }
    }
    match chars.next() {
        Some(_) => f.write_str("…"),
        None => Ok(()),
    }
}

/// Sentence by heaptap that can contain foreign names, with `code` in backquotes.
pub(super) struct Sentence<'a>(pub(super) &'a str);

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((before, code, after)) = rest.split_once('`').and_then(|(before, rest)| {
            rest.split_once('`')
                .map(|(code, after)| (before, code, after))
        }) {
            write!(f, "{}<code>", Attribute(before))?;
            write_text(f, code, MAX_CODE_LENGTH)?;
            f.write_str("</code>")?;
            rest = after;
        }
        write!(f, "{}", Attribute(rest))
    }
}

impl Html {
    /// Adds heaptap's own markup unchanged, with foreign text in [`Foreign`].
    pub(super) fn add(&mut self, markup: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.0.write_fmt(markup);
    }

    /// Adds a table: a caption, headings (a leading `#` marks numbers), rows of markup. A table
    /// wider than the page scrolls. It is focusable and named so that it can be read without a
    /// mouse. It is a group rather than a landmark because a page has hundreds of tables.
    pub(super) fn table(
        &mut self,
        caption: &str,
        headings: &[&str],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) {
        self.add(format_args!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\"><table>\
             <caption>{caption}</caption><thead><tr>",
            without_tags(caption)
        ));
        for heading in headings {
            match heading.strip_prefix('#') {
                Some(heading) => {
                    self.add(format_args!("<th scope=\"col\" class=\"n\">{heading}</th>"))
                }
                None => self.add(format_args!("<th scope=\"col\">{heading}</th>")),
            }
        }
        self.add(format_args!("</tr></thead><tbody>\n"));
        for row in rows {
            self.add(format_args!("<tr>"));
            for (cell, heading) in row.iter().zip(headings) {
                match heading.starts_with('#') {
                    true => self.add(format_args!("<td class=\"n\">{cell}</td>")),
                    false => self.add(format_args!("<td>{cell}</td>")),
                }
            }
            self.add(format_args!("</tr>\n"));
        }
        self.add(format_args!("</tbody></table></div>\n"));
    }

    /// Returns the markup.
    pub(super) fn into_body(self) -> String {
        self.0
    }
}

/// Converts heaptap's own markup, in which foreign text is escaped, to an attribute value in double
/// quotes: every `<` in it begins a tag.
fn without_tags(markup: &str) -> String {
    let mut text = String::with_capacity(markup.len());
    let mut is_tag = false;
    for c in markup.chars() {
        match c {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            _ if is_tag => {}
            '"' => text.push_str("&quot;"),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_stays_text() {
        let name = "a<script>alert(\"1\")</script>&'\u{202e}\x1b[31m";
        let shown = Foreign(name).to_string();
        assert_eq!(
            shown,
            "<bdi>a&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;\u{fffd}\u{fffd}[31m</bdi>"
        );
        assert_eq!(
            Sentence("run `a <b>` or `c`, not `d").to_string(),
            "run <code>a &lt;b&gt;</code> or <code>c</code>, not `d"
        );
        let long = "x".repeat(5000);
        assert_eq!(Attribute(&long).to_string().chars().count(), MAX_LENGTH + 1);
        let command = format!("<code>{long}</code>");
        assert_eq!(Sentence(&format!("`{long}`")).to_string(), command);
        let mut html = Html::default();
        html.table(
            "Classes",
            &["Class", "#Bytes"],
            [vec![shown, "7".to_owned()]],
        );
        let body = html.into_body();
        assert!(body.contains("<td class=\"n\">7</td>"));
        assert!(!body.contains("<script"), "{body}");
    }

    #[test]
    fn a_table_that_scrolls_takes_the_focus_and_says_what_it_is() {
        let mut html = Html::default();
        let name = Foreign("a\"<b>").to_string();
        html.table(&format!("At {name}, 3 > 2 \"x\"."), &["Class"], []);
        let body = html.into_body();
        assert!(
            body.starts_with(
                "<div class=\"scroll\" tabindex=\"0\" role=\"group\" \
                 aria-label=\"At a&quot;&lt;b&gt;, 3 > 2 &quot;x&quot;.\"><table>"
            ),
            "{body}"
        );
    }
}
