//! Values of the profile, the allocator and the system for a process side by side, with their
//! differences: the last table, and earlier ones collapsed.

use super::super::data::header::Header;
use super::super::data::reconcile::Reconciled;
use super::super::html::{Foreign, Html, Sentence};

/// Writes the section; nothing if there is nothing to compare.
pub(super) fn write(html: &mut Html, header: &Header) {
    let Some((last, before)) = header.reconcile.split_first() else {
        return;
    };
    html.add(format_args!(
        "<h2 id=\"figures\">Why the figures differ</h2>\n"
    ));
    moment(html, last);
    for earlier in before {
        html.add(format_args!(
            "<details><summary>At {}</summary>\n",
            title(earlier)
        ));
        moment(html, earlier);
        html.add(format_args!("</details>\n"));
    }
}

/// Formats `after-login, com.example.app (2050)`.
fn title(of: &Reconciled) -> String {
    let at = Foreign(&of.at);
    match (of.process.as_str(), of.pid) {
        ("", 0) => at.to_string(),
        ("", pid) => format!("{at}, process {pid}"),
        (process, pid) => format!("{at}, {} ({pid})", Foreign(process)),
    }
}

fn moment(html: &mut Html, of: &Reconciled) {
    let is_apart = of.rows.iter().any(|row| row.apart.is_some());
    let rows = of.rows.iter().map(|row| {
        let mut cells = vec![
            Foreign(&row.name).to_string(),
            Foreign(&row.amount).to_string(),
        ];
        if is_apart {
            cells.push(row.apart.as_deref().unwrap_or_default().to_owned());
        }
        cells.push(Sentence(&row.remark).to_string());
        cells
    });
    let headings: &[&str] = match is_apart {
        true => &["figure", "#bytes", "read", "source and meaning"],
        false => &["figure", "#bytes", "source and meaning"],
    };
    html.table(&format!("At {}.", title(of)), headings, rows);
    for between in &of.differences {
        html.add(format_args!(
            "<p>{} → {}: <b>{}</b>, {}</p>\n<ul>",
            Foreign(&between.from),
            Foreign(&between.to),
            Foreign(&between.amount),
            Sentence(&between.about)
        ));
        for cause in &between.causes {
            html.add(format_args!("<li>{}", Sentence(&cause.about)));
            remedy(html, cause.remedy.as_deref());
            html.add(format_args!("</li>\n"));
        }
        html.add(format_args!("</ul>\n"));
    }
    for missing in &of.missing {
        html.add(format_args!(
            "<p><b>{} is missing:</b> {}",
            Foreign(&missing.figure),
            Sentence(&missing.why)
        ));
        remedy(html, missing.help.as_deref());
        html.add(format_args!("</p>\n"));
    }
}

fn remedy(html: &mut Html, remedy: Option<&str>) {
    if let Some(remedy) = remedy {
        html.add(format_args!(
            "<br><span class=\"note\">→ {}</span>",
            Sentence(remedy)
        ));
    }
}
