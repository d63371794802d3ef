//! `open`: chooses what to show of an input and where. A trace goes to the Perfetto UI, through a
//! server that serves it once. Other inputs go to a page of `report`. From a directory, only the
//! page that heaptap wrote there is shown, because a page can run scripts.

use crate::heaps::trace_findings;
use crate::page::net::{Offer, Server};
use crate::page::report::{PAGE, is_page};
use heaptap_base::bytes::sha256_of;
use heaptap_base::directory::{RAW_TRACE, SYMBOLIZED_TRACE};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::units::HumanDuration;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_input::OpenTrace;
use heaptap_results::findings::Finding;
use heaptap_results::manifest::{self, Manifest};
use heaptap_results::recorded;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Address of the Perfetto UI.
pub const UI: &str = "https://ui.perfetto.dev";
/// The only loopback port from which the UI's content policy allows fetches.
pub const UI_PORT: u16 = 9001;

/// The trace was not fetched in time. The host did its part; the result is unknown.
pub fn not_fetched(patience: Duration) -> Failure {
    let message = format!(
        "the browser did not fetch the trace within {}",
        HumanDuration(patience)
    );
    Failure::new(ErrorClass::Inconclusive, "trace-not-fetched", message).with_help(
        "allow the browser to reach this host if it asks, add `--page` to avoid the question, or \
         wait longer with `--timeout`",
    )
}

/// Thing to show for an input.
pub enum Shown {
    /// A trace, for the Perfetto UI.
    Trace(TraceToShow),
    /// An existing page.
    Page(PathBuf),
    /// A page that must be created from the input.
    NoPageYet,
}

/// Trace for the Perfetto UI.
pub struct TraceToShow {
    /// Name of the trace in the UI.
    pub name: String,
    trace: OpenTrace,
}

impl TraceToShow {
    /// Returns a finding about damage that is known before the trace is read.
    pub fn finding(&self) -> Option<Finding> {
        let damage = self.trace.damage.clone()?;
        Some(trace_findings::damaged(&self.trace.name, &damage))
    }
}

/// Chooses what to show of an input. A page of heaptap is shown directly. A recording directory
/// gives its symbolized trace, or else the raw one. Other inputs, and all inputs with `report`,
/// give a page. An existing page in a recording directory is shown if the manifest knows it. In a
/// directory without a manifest, the page is created again.
///
/// # Errors
/// Returns an error if the input cannot be shown or read.
pub fn choose(path: &Path) -> Result<Shown, Failure> {
    if is_page(path) {
        return Ok(Shown::Page(path.to_owned()));
    }
    let mut traces = match heaptap_input::open(path) {
        Ok(mut traces) => {
            recorded::compare(path, &mut traces);
            traces
        }
        // Keep the error for traces if the input is not another heap either.
        Err(error) => match heaptap_input::open_heaps(path) {
            Ok(_) => return page_of(path),
            Err(_) => return Err(error.into()),
        },
    };
    let Some(trace) = traces.pop().filter(|_| traces.is_empty()) else {
        let members: Vec<String> = traces.into_iter().map(|trace| trace.name).collect();
        let message = format!(
            "{} contains several traces: {}",
            path.display(),
            members.join(", ")
        );
        return Err(Failure::new(ErrorClass::Usage, "several-traces", message)
            .with_help("unpack one of them and pass its file"));
    };
    let name = title(path);
    Ok(Shown::Trace(TraceToShow { name, trace }))
}

/// Returns the page of an input.
fn page_of(path: &Path) -> Result<Shown, Failure> {
    let page = path.join(PAGE);
    if !path.is_dir() || !page.is_file() || !path.join(manifest::FILE_NAME).exists() {
        return Ok(Shown::NoPageYet);
    }
    let known = Manifest::read(path).ok().and_then(|found| found.page);
    match known.is_some_and(|known| sha256_of(&page).is_ok_and(|sum| sum == known.sha256)) {
        true => Ok(Shown::Page(page)),
        false => {
            let message = format!(
                "{} is not the page that heaptap wrote into this directory",
                page.display()
            );
            let failure = Failure::new(ErrorClass::BadInput, "page-unknown", message);
            Err(failure.with_help(format!(
                "move the page away and run `heaptap report {} --open`. heaptap does not open \
                 unknown pages, because they can run scripts.",
                quoted_path(path)
            )))
        }
    }
}

/// Returns the name of a trace in the UI: the name of the directory or file, with a trace ending.
fn title(path: &Path) -> String {
    let absolute = std::path::absolute(path);
    let path = absolute.as_deref().unwrap_or(path);
    // Traces in recordings all have the same names.
    let usual = [RAW_TRACE, SYMBOLIZED_TRACE];
    let is_usual = path
        .file_name()
        .is_some_and(|name| usual.iter().any(|u| name == *u));
    let path = if is_usual {
        path.parent().unwrap_or(path)
    } else {
        path
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match name.ends_with("trace") {
        true => name.into_owned(),
        false => format!("{name}.pftrace"),
    }
}

/// Options for serving a trace to a UI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeOptions {
    /// Address of the UI.
    pub ui: Ui,
    /// Port to listen on; 0 for any.
    pub port: u16,
    /// Whether a page of heaptap hands over the trace. It works from any port, and in browsers that
    /// do not let an HTTPS page fetch from HTTP.
    pub page: bool,
}

/// Address of a UI, with the origin of its requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ui {
    address: String,
    origin: String,
}

impl Ui {
    /// Parses an address such as `https://ui.perfetto.dev` or `http://127.0.0.1:10000/v1`.
    ///
    /// # Errors
    /// Returns an error if it is not an address.
    pub fn parse(address: &str) -> Result<Ui, Failure> {
        let bad = || {
            let message = format!("{address:?} is not the address of a UI");
            Failure::new(ErrorClass::Usage, "bad-ui", message)
                .with_help(format!("use an address such as {UI}"))
        };
        let (scheme, rest) = address.split_once("://").ok_or_else(bad)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._~/".contains(c);
        let known = matches!(scheme, "https" | "http");
        if !known || host.is_empty() || !host.chars().all(plain) || !path.chars().all(fits) {
            return Err(bad());
        }
        let host = host.to_ascii_lowercase();
        // Browsers omit the default port from an origin.
        let usual = match scheme {
            "https" => ":443",
            _ => ":80",
        };
        let host = host.strip_suffix(usual).unwrap_or(&host);
        if host.is_empty() {
            return Err(bad());
        }
        Ok(Ui {
            address: address.trim_end_matches('/').to_owned(),
            origin: format!("{scheme}://{host}"),
        })
    }
}

/// Server for a trace, with the address that makes a browser fetch it.
pub struct TraceServer {
    /// Address to open in a browser.
    pub url: String,
    /// Address to start a browser with. It redirects once and does not contain a secret afterwards.
    pub once_url: String,
    /// Address of the trace.
    pub trace_url: String,
    /// Size of the trace in bytes.
    pub bytes: u64,
    pub server: Server,
}

/// Opens a server for a trace.
///
/// # Errors
/// Returns an error if the port cannot be opened.
pub async fn give(trace: TraceToShow, options: &ServeOptions) -> Result<TraceServer, Failure> {
    let offer = Offer {
        source: trace.trace.source,
        name: trace.name,
        origin: options.ui.origin.clone(),
        page: options.page,
    };
    let port = options.port;
    let no_listener = |source: io::Error| {
        let message = format!("cannot listen on 127.0.0.1:{port}");
        Failure::new(ErrorClass::HostWrite, "no-listener", message)
            .caused_by(&source)
            .with_help("add `--page`, which uses any free port")
    };
    let server = Server::bind(port, offer).await;
    let mut server = server.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => {
            let message = format!("port {port} of 127.0.0.1 is in use");
            Failure::new(ErrorClass::HostWrite, "port-busy", message).with_help(format!(
                "stop the program that uses the port, such as another `heaptap open` or \
                 trace_processor, or add `--page`. The UI fetches only from port {UI_PORT}."
            ))
        }
        _ => no_listener(source),
    })?;
    let trace_url = server.file_url();
    let from_ui = || format!("{}/#!/?url={trace_url}", options.ui.address);
    let url = server.page_url().unwrap_or_else(from_ui);
    let once_url = server.lead_once(&url).map_err(no_listener)?;
    Ok(TraceServer {
        url,
        once_url,
        bytes: server.length(),
        trace_url,
        server,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_called_after_its_recording() {
        for (path, name) in [
            ("/x/heaptap-app-1/raw-trace", "heaptap-app-1.pftrace"),
            ("/x/heaptap-app-1", "heaptap-app-1.pftrace"),
            ("/x/mine.perfetto-trace", "mine.perfetto-trace"),
            ("/x/mine.pftrace", "mine.pftrace"),
            ("/x/mine.pftrace.gz", "mine.pftrace.gz.pftrace"),
        ] {
            assert_eq!(title(Path::new(path)), name);
        }
    }

    #[test]
    fn the_origin_of_a_ui_is_what_its_requests_name() {
        let of = |address: &str| Ui::parse(address).ok().map(|ui| (ui.address, ui.origin));
        let some = |address: &str, origin: &str| Some((address.to_owned(), origin.to_owned()));
        assert_eq!(of(UI), some(UI, UI));
        assert_eq!(
            of("http://127.0.0.1:10000/v49.0/"),
            some("http://127.0.0.1:10000/v49.0", "http://127.0.0.1:10000")
        );
        for (address, origin) in [
            ("https://ui.perfetto.dev:443", UI),
            ("https://UI.perfetto.dev:443/v49.0", UI),
            ("http://localhost:80/", "http://localhost"),
            ("http://[::1]:80", "http://[::1]"),
            ("https://x:80", "https://x:80"),
            ("http://x:443", "http://x:443"),
            ("http://x:8080", "http://x:8080"),
        ] {
            let found = of(address).map(|ui| ui.1);
            assert_eq!(found.as_deref(), Some(origin), "{address}");
        }
        for bad in [
            "",
            "ui.perfetto.dev",
            "https://:443",
            "file:///x",
            "https://",
            "https://a b",
            "https://x/\"<",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_page_is_shown_of_what_is_no_trace() {
        let directory = tempfile::tempdir().expect("a folder");
        let path = |name: &str| directory.path().join(name);
        let fixture = |name: &str, goal: &str| {
            let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
            std::fs::copy(fixtures.join(name), path(goal)).expect("copied");
        };
        fixture("hprof/android-a.hprof.gz", "dump.hprof");
        fixture("conversions/c_cont.pftrace", "raw-trace");
        std::fs::write(path("notes.txt"), "not a heap").expect("written");
        assert!(matches!(choose(&path("dump.hprof")), Ok(Shown::NoPageYet)));
        let kind = |shown: Result<Shown, Failure>| shown.err().map(|failure| failure.kind);
        assert_eq!(kind(choose(&path("notes.txt"))), Some("not-a-trace"));
        assert!(matches!(page_of(directory.path()), Ok(Shown::NoPageYet)));
        std::fs::write(path(PAGE), "<!doctype html>").expect("written");
        assert!(matches!(page_of(directory.path()), Ok(Shown::NoPageYet)));
        assert!(choose(&path("none")).is_err());
        assert!(matches!(choose(directory.path()), Ok(Shown::Trace(_))));
    }

    #[test]
    fn the_page_of_a_directory_is_shown_only_as_the_manifest_knows_it() {
        let directory = tempfile::tempdir().expect("a folder");
        let page = directory.path().join(PAGE);
        let is_unknown = |shown: Result<Shown, Failure>| {
            shown.is_err_and(|failure| failure.kind == "page-unknown")
        };
        let head = format!("<!doctype html>\n{} 0.1.0\">", heaptap_report::MARK);
        assert_eq!(heaptap_report::MARK, heaptap_input::REPORT_MARK);
        std::fs::write(&page, &head).expect("written");
        Manifest::default()
            .write(directory.path())
            .expect("written");
        assert!(
            is_unknown(page_of(directory.path())),
            "it is not in the manifest"
        );
        let sum = sha256_of(&page).expect("it can be read");
        Manifest::note_page(directory.path(), PAGE, &sum).expect("noted");
        let shown = page_of(directory.path());
        assert!(matches!(shown, Ok(Shown::Page(path)) if path == page));
        std::fs::write(&page, format!("{head}<script>")).expect("written");
        assert!(is_unknown(page_of(directory.path())));
        std::fs::write(directory.path().join(manifest::FILE_NAME), "{}").expect("written");
        assert!(is_unknown(page_of(directory.path())), "no manifest of ours");
    }

    #[test]
    fn a_page_of_ours_is_shown_itself_and_no_other() {
        let directory = tempfile::tempdir().expect("a folder");
        let page = directory.path().join(PAGE);
        let head = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n";
        let ours = format!("{head}{} 0.1.0\">", heaptap_report::MARK);
        std::fs::write(&page, ours).expect("written");
        let shown = choose(&page);
        assert!(matches!(shown, Ok(Shown::Page(path)) if path == page));
        // A page of another program can run any script.
        std::fs::write(&page, head).expect("written");
        assert!(choose(&page).is_err());
    }

    #[test]
    fn a_trace_that_nobody_fetched_is_no_fault_of_this_host() {
        let error = not_fetched(Duration::from_secs(300));
        assert_eq!(error.class, ErrorClass::Inconclusive);
        assert_eq!(error.kind, "trace-not-fetched");
    }
}
