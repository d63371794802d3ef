//! The page as a file: it has the answers to the requests that its script may make, for the largest
//! objects, all classes and all leaks. It says what it leaves out.

use super::api;
use super::state::{ExploreOptions, ExploredHeap};
use crate::error::{Classified, ErrorFacts};
use crate::heaps::java::facts::HeapFacts;
use crate::heaps::java::{JavaError, ProgressReporter};
use crate::net::{ApiProblem, ApiRequest};
use crate::pages::{PagePlace, ReportError, ReportFile};
use crate::report;
use crate::units::{ByteSize, counted};
use crate::untrusted::shell::{quoted_dump, quoted_path};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

/// Maximum size of the page without contents, in bytes.
const MAX_BYTES: usize = 1_000_000;
/// Numbers of objects to try, the first that fits is taken.
const OBJECTS: [usize; 5] = [2000, 1000, 500, 200, 50];
/// Maximum number of rows of each list.
const MAX_ROWS: usize = 500;
/// The same of the lists of one object.
const MAX_FIELDS: usize = 40;
const MAX_REFERRERS: usize = 20;
/// Maximum number of dominators of an object, and of steps at either end of its path.
const MAX_STEPS: &str = "15";
/// Maximum number of classes whose objects are listed, and of their objects.
const MAX_LISTED_CLASSES: usize = 200;
const MAX_LISTED: usize = 20;
/// Maximum number of pictures, and their maximum width and height in pixels.
const MAX_PICTURES: usize = 100;
const PICTURE_SIDE: &str = "128";
/// Number of rows of the facts for browsers without scripts.
const FACT_ROWS: usize = 20;

/// A page that was written.
pub struct WrittenFile {
    pub bytes: u64,
    pub facts: HeapFacts,
}

/// Reason why no page was written.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    #[error(transparent)]
    Java(#[from] JavaError),
    #[error(transparent)]
    Page(#[from] ReportError),
}

impl Classified for OfflineError {
    fn facts(&self) -> ErrorFacts {
        match self {
            OfflineError::Java(error) => error.facts(),
            OfflineError::Page(error) => error.facts(),
        }
    }
}

/// Reads the heap and writes its page.
///
/// # Errors
/// Returns an error if an input cannot be read or the page cannot be written.
pub fn write(
    options: &ExploreOptions,
    output: &Path,
    force: bool,
    progress: &ProgressReporter,
) -> Result<WrittenFile, OfflineError> {
    let inputs: Vec<&Path> = std::iter::once(&options.input)
        .chain(&options.earlier)
        .map(|input| input.path.as_path())
        .collect();
    let file = ReportFile::create(&PagePlace::Typed(output.to_owned()), &inputs, force)?;
    let explored = ExploredHeap::default();
    let facts = explored.read(options, progress)?;
    progress.begin("writing the page");
    let which = options.input.which.as_ref();
    let command = match which {
        Some(which) => quoted_dump(&options.input.path, which),
        None => quoted_path(&options.input.path),
    };
    let page = page(&explored, &format!("heaptap explore {command}"));
    let page = page.map_err(|source| ReportError::Write {
        path: output.to_owned(),
        source,
    })?;
    let bytes = file.write(page.as_bytes())?;
    Ok(WrittenFile { bytes, facts })
}

fn page(explored: &ExploredHeap, command: &str) -> io::Result<String> {
    let mut last = String::new();
    let mut of_heap = Answers::new(explored);
    of_heap.collect_heap()?;
    for objects in OBJECTS {
        let mut answers = of_heap.clone();
        answers.collect_objects(objects)?;
        answers.kept["command"] = json!(command);
        let facts = static_facts(&answers);
        let store = json!({ "kept": answers.kept, "answers": answers.answers });
        let data = packed(&store)?;
        let mark = format!("{} {}\">", report::MARK, env!("CARGO_PKG_VERSION"));
        last = crate::explore::file_page(&mark, &facts, &data);
        let has_contents = explored
            .heap()
            .is_some_and(|(explorer, _)| explorer.shows_contents());
        if last.len() <= MAX_BYTES || has_contents {
            break;
        }
    }
    Ok(last)
}

fn packed(store: &Value) -> io::Result<String> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    // At once: the packer takes the same time for few bytes as for many.
    packer.write_all(&serde_json::to_vec(store)?)?;
    Ok(BASE64_STANDARD.encode(packer.finish()?))
}

/// Answers of the page, by request.
#[derive(Clone)]
struct Answers<'e> {
    explored: &'e ExploredHeap,
    answers: Map<String, Value>,
    /// What the file has.
    kept: Value,
}

impl<'e> Answers<'e> {
    fn new(explored: &'e ExploredHeap) -> Answers<'e> {
        Answers {
            explored,
            answers: Map::new(),
            kept: json!({}),
        }
    }

    fn collect_heap(&mut self) -> io::Result<()> {
        self.keep("meta", &[])?;
        for by in ["class", "package", "superclass", "heap", "loader"] {
            self.keep_rows("classes", &[("by", by)], usize::MAX)?;
        }
        for operation in ["leaks", "waste"] {
            self.keep(operation, &[])?;
        }
        self.keep("treemap", &[])?;
        for tree in ["paths", "dominators"] {
            self.keep("flame", &[("tree", tree), ("most", "3000")])?;
        }
        if self.explored.comparison().is_some() {
            self.keep_rows("changes", &[], usize::MAX)?;
            self.keep("changed-leaks", &[])?;
        }
        self.keep_rows("bitmaps", &[], MAX_ROWS)?;
        self.keep_contents()
    }

    fn collect_objects(&mut self, objects: usize) -> io::Result<()> {
        let mut ids = self.keep_rows("objects", &[], objects)?;
        ids.extend(self.keep_rows("objects", &[("top", "")], MAX_ROWS)?);
        let classes = self.answers["classes?by=class"]["rows"].as_array();
        let names = classes.into_iter().flatten().take(MAX_LISTED_CLASSES);
        let names: Vec<String> = names.filter_map(|row| text(&row["name"])).collect();
        for name in &names {
            ids.extend(self.keep_rows("objects", &[("class", name)], MAX_LISTED)?);
        }
        let leaks = &self.answers["leaks?"]["groups"];
        let of_leak = |group: &Value| {
            let leaks = group["leaks"].as_array().into_iter().flatten();
            let path = group["path"].as_array().into_iter().flatten();
            let ids = leaks.chain(path).filter_map(|each| text(&each["id"]));
            ids.collect::<Vec<String>>()
        };
        let leaks = leaks.as_array().into_iter().flatten();
        ids.extend(leaks.flat_map(of_leak));
        let ids: BTreeSet<String> = ids.into_iter().collect();
        for id in &ids {
            let of = [("id", id.as_str())];
            let cut = [of[0], ("most", MAX_STEPS)];
            self.keep("object", &cut)?;
            self.keep("path", &cut)?;
            self.keep_rows("fields", &of, MAX_FIELDS)?;
            self.keep_rows("referrers", &of, MAX_REFERRERS)?;
            let below = self.keep_rows("objects", &[("dominated", id)], MAX_LISTED)?;
            if below.is_empty() {
                self.answers.remove(&format!("objects?dominated={id}"));
            }
        }
        self.kept["objects"] = json!(ids.len());
        Ok(())
    }

    fn keep_contents(&mut self) -> io::Result<()> {
        let Some((explorer, _)) = self.explored.heap() else {
            return Ok(());
        };
        if !explorer.shows_contents() {
            return Ok(());
        }
        for list in ["strings", "arrays"] {
            let limit = MAX_ROWS.to_string();
            self.keep("search", &[("in", list), ("limit", &limit)])?;
        }
        let bitmaps = self.answers["bitmaps?"]["rows"].as_array();
        let with_pixels = bitmaps
            .into_iter()
            .flatten()
            .filter(|row| !row["bitmap"]["format"].is_null());
        let ids: Vec<String> = with_pixels.filter_map(|row| text(&row["id"])).collect();
        for id in ids.iter().take(MAX_PICTURES) {
            // A picture that cannot be shown has no answer.
            if let Ok(picture) = self.ask("picture", &[("id", id), ("most", PICTURE_SIDE)]) {
                self.put("picture", &[("id", id)], picture);
            }
        }
        Ok(())
    }

    /// Asks for an answer and keeps it.
    fn keep(&mut self, operation: &str, query: &[(&str, &str)]) -> io::Result<()> {
        let answer = self.must_ask(operation, query)?;
        self.put(operation, query, answer);
        Ok(())
    }

    /// Asks for the first rows of a list and keeps them. Returns their IDs.
    fn keep_rows(
        &mut self,
        operation: &str,
        query: &[(&str, &str)],
        most: usize,
    ) -> io::Result<Vec<String>> {
        let mut rows: Vec<Value> = Vec::new();
        loop {
            let (offset, limit) = (rows.len().to_string(), (most - rows.len()).to_string());
            let mut part = query.to_vec();
            part.extend([("offset", offset.as_str()), ("limit", limit.as_str())]);
            let mut answer = self.must_ask(operation, &part)?;
            let total = answer["total"].as_u64().unwrap_or(0);
            let Value::Array(new) = answer["rows"].take() else {
                break;
            };
            let is_last = new.is_empty();
            rows.extend(new);
            if is_last || rows.len() >= most || rows.len() as u64 >= total {
                let ids = rows.iter().filter_map(|row| text(&row["id"])).collect();
                self.put(operation, query, json!({ "total": total, "rows": rows }));
                return Ok(ids);
            }
        }
        Ok(Vec::new())
    }

    fn must_ask(&self, operation: &str, query: &[(&str, &str)]) -> io::Result<Value> {
        self.ask(operation, query).map_err(|problem| {
            io::Error::other(match problem {
                ApiProblem::NotFound(why) | ApiProblem::Invalid(why) => why,
                ApiProblem::NotReady => "the heap is not read".to_owned(),
            })
        })
    }

    fn ask(&self, operation: &str, query: &[(&str, &str)]) -> Result<Value, ApiProblem> {
        let pairs = query.iter();
        let request = ApiRequest {
            operation: operation.to_owned(),
            query: pairs
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        };
        let bytes = api::answer_of(self.explored, &request)?;
        serde_json::from_slice(&bytes).map_err(|error| ApiProblem::Invalid(error.to_string()))
    }

    /// Keeps an answer under the key that the script looks for: the operation and what it asks for,
    /// without the part and the size of lists.
    fn put(&mut self, operation: &str, query: &[(&str, &str)], answer: Value) {
        let named = query
            .iter()
            .filter(|(name, _)| !matches!(*name, "limit" | "most"));
        let mut named: Vec<String> = named
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        named.sort();
        self.answers
            .insert(format!("{operation}?{}", named.join("&")), answer);
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Returns the main facts as HTML, for browsers without scripts.
fn static_facts(answers: &Answers<'_>) -> String {
    let mut html = String::from("<h1>Java heap</h1>");
    let escaped = |value: &Value| report::escaped(value.as_str().unwrap_or(""));
    let bytes = |value: &Value| ByteSize(value.as_u64().unwrap_or(0));
    let meta = &answers.answers["meta?"];
    let reachable = &meta["reachable"];
    let objects = counted(
        reachable["count"].as_u64().unwrap_or(0),
        "object",
        "objects",
    );
    // Writing to a string cannot fail.
    let _ = write!(
        html,
        "<p>{}: {objects}, Java {}, native {}.</p><h2>Leaks</h2><ul>",
        escaped(&meta["heap"]["path"]),
        bytes(&reachable["java_bytes"]),
        bytes(&reachable["native_bytes"]),
    );
    let rows = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for group in rows(&answers.answers["leaks?"]["groups"])
        .iter()
        .take(FACT_ROWS)
    {
        let _ = write!(
            html,
            "<li>{}: {}. {}</li>",
            escaped(&group["what"]),
            escaped(&group["class"]),
            escaped(&group["advice"]),
        );
    }
    html += "</ul><h2>Classes</h2><table><tr><th>Class<th>Objects<th>Shallow<th>Retained</tr>";
    for row in rows(&answers.answers["classes?by=class"]["rows"])
        .iter()
        .take(FACT_ROWS)
    {
        let _ = write!(
            html,
            "<tr><td>{}<td>{}<td>{}<td>{}</tr>",
            escaped(&row["name"]),
            row["count"],
            bytes(&row["shallow_bytes"]),
            bytes(&row["retained"]["java_bytes"]),
        );
    }
    html + "</table>"
}
