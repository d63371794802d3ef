//! `open`: what of an input is shown where. A trace goes to Perfetto's UI, through a server that
//! gives it away once; what that UI does not read goes to a page of `report`'s. Of a folder only
//! the page that heaptap wrote into it is shown: a page runs what is in it.

use crate::bytes::sha256_of;
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::folder::{RAW_TRACE, SYMBOLIZED_TRACE};
use crate::heaps::trace_findings;
use crate::import::{self, ImportError, OpenTrace};
use crate::net::{Offer, Server};
use crate::pages::browser::NoBrowser;
use crate::pages::{PAGE, is_page};
use crate::results::findings::Finding;
use crate::results::manifest::{self, Manifest};
use crate::results::recorded;
use crate::units::HumanDuration;
use crate::untrusted::shell::quoted_path;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Perfetto's UI.
pub const UI: &str = "https://ui.perfetto.dev";
/// The one port of loopback that the UI's content policy lets it fetch from.
pub const UI_PORT: u16 = 9001;

/// Why nothing is shown.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The input is nothing that can be shown, or can't be read.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A bundle of several.
    #[error("{name} holds several traces: {}", members.join(", "))]
    SeveralTraces {
        /// The input.
        name: String,
        /// Their names.
        members: Vec<String>,
    },
    /// Another program listens there.
    #[error("port {port} of 127.0.0.1 is in use")]
    PortBusy {
        /// The port.
        port: u16,
    },
    /// It can't be listened on.
    #[error("can't listen on 127.0.0.1:{port}")]
    Listen {
        /// The port.
        port: u16,
        /// What the system says.
        source: io::Error,
    },
    /// It listens, and can take no connection.
    #[error("can't take connections on 127.0.0.1")]
    NoConnections {
        /// What the system says.
        source: io::Error,
    },
    /// Nobody came in time.
    #[error("nobody fetched the trace within {}", HumanDuration(*.0))]
    NotFetched(Duration),
    /// Nobody shows it.
    #[error(transparent)]
    NoBrowser(#[from] NoBrowser),
    /// A folder has a page that nobody knows.
    #[error("{} is not the page that heaptap wrote into this folder", path.display())]
    UnknownPage {
        /// The page.
        path: PathBuf,
    },
    /// `--ui` is no address of a page.
    #[error("{0:?} is not the address of a UI")]
    BadUi(String),
}

impl Classified for OpenError {
    fn facts(&self) -> ErrorFacts {
        match self {
            OpenError::Import(error) => error.facts(),
            OpenError::NoBrowser(error) => error.facts(),
            OpenError::SeveralTraces { .. } => ErrorFacts::new(ErrorClass::Usage, "several-traces")
                .with_help("unpack the one that is meant, and give its file"),
            OpenError::PortBusy { .. } => ErrorFacts::new(ErrorClass::HostWrite, "port-busy")
                .with_help(format!(
                    "end what uses it (another `heaptap open`, trace_processor), since the UI \
                     fetches from port {UI_PORT} alone; or --page, which does without it"
                )),
            OpenError::Listen { .. } => ErrorFacts::new(ErrorClass::HostWrite, "no-listener")
                .with_help("--page takes any port that is free"),
            OpenError::NoConnections { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "no-listener").with_help(
                    "this host has too little of something, such as open files: end other \
                     programs, and try again",
                )
            }
            // This host did its part; what came of it is not known.
            OpenError::NotFetched(_) => {
                ErrorFacts::new(ErrorClass::Inconclusive, "trace-not-fetched").with_help(
                    "the browser may have asked for leave to reach this computer: allow it; --page \
                     does without, --timeout waits longer",
                )
            }
            OpenError::UnknownPage { path } => {
                ErrorFacts::new(ErrorClass::BadInput, "page-unknown").with_help(format!(
                    "a page runs what is in it: move this one away, then `heaptap report {} \
                     --open` writes it anew",
                    quoted_path(path.parent().unwrap_or(path))
                ))
            }
            OpenError::BadUi(_) => ErrorFacts::new(ErrorClass::Usage, "bad-ui")
                .with_help(format!("give one such as {UI}")),
        }
    }
}

/// What of an input is shown.
pub enum Shown {
    /// A trace, by Perfetto's UI.
    Trace(TraceToShow),
    /// A page that is there.
    Page(PathBuf),
    /// A page that is to be made of the input.
    NoPageYet,
}

/// A trace for Perfetto's UI.
pub struct TraceToShow {
    /// What the UI calls it.
    pub name: String,
    trace: OpenTrace,
}

impl TraceToShow {
    /// What is wrong with it, as far as that is known before it is read.
    pub fn finding(&self) -> Option<Finding> {
        let damage = self.trace.damage.clone()?;
        Some(trace_findings::damaged(&self.trace.name, &damage))
    }
}

/// Decides what is shown of an input: a page of heaptap's as it is; of a recording's folder the
/// symbolized trace, else the raw one; a page of what is no trace, and where `report` asks for it.
/// The page in a recording's folder is shown if its manifest knows it. In a folder without a
/// manifest it is made anew.
///
/// # Errors
/// Where the input is nothing that can be shown, or can't be read.
pub fn choose(path: &Path, report: bool) -> Result<Shown, OpenError> {
    if is_page(path) {
        return Ok(Shown::Page(path.to_owned()));
    }
    if report {
        return page_of(path);
    }
    let mut traces = match import::open(path) {
        Ok(mut traces) => {
            recorded::compare(path, &mut traces);
            traces
        }
        // The words for a trace fit where it is no other heap either.
        Err(error) => match import::open_heaps(path) {
            Ok(_) => return page_of(path),
            Err(_) => return Err(error.into()),
        },
    };
    let Some(trace) = traces.pop().filter(|_| traces.is_empty()) else {
        return Err(OpenError::SeveralTraces {
            name: path.display().to_string(),
            members: traces.into_iter().map(|trace| trace.name).collect(),
        });
    };
    let name = title(path);
    Ok(Shown::Trace(TraceToShow { name, trace }))
}

/// The page of an input.
fn page_of(path: &Path) -> Result<Shown, OpenError> {
    let page = path.join(PAGE);
    if !path.is_dir() || !page.is_file() || !path.join(manifest::FILE_NAME).exists() {
        return Ok(Shown::NoPageYet);
    }
    let known = Manifest::read(path).ok().and_then(|found| found.page);
    match known.is_some_and(|known| sha256_of(&page).is_ok_and(|sum| sum == known.sha256)) {
        true => Ok(Shown::Page(page)),
        false => Err(OpenError::UnknownPage { path: page }),
    }
}

/// What the UI calls a trace: the name of the folder or file, with the ending of traces.
fn title(path: &Path) -> String {
    let absolute = std::path::absolute(path);
    let path = absolute.as_deref().unwrap_or(path);
    // Traces in recordings are all called the same.
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

/// How a trace is given to a UI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeOptions {
    /// The UI's address.
    pub ui: Ui,
    /// The port to listen on; 0 for any.
    pub port: u16,
    /// Whether a page of ours hands it over: from any port, and to browsers that let no page
    /// with TLS fetch without.
    pub page: bool,
}

/// The address of a UI, and the origin that its requests name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ui {
    address: String,
    origin: String,
}

impl Ui {
    /// An address such as `https://ui.perfetto.dev` or `http://127.0.0.1:10000/v1`.
    ///
    /// # Errors
    /// Where it is none.
    pub fn parse(address: &str) -> Result<Ui, OpenError> {
        let bad = || OpenError::BadUi(address.to_owned());
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
        // Browsers leave the usual port out of an origin.
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

/// A server that has a trace to give, and the address that makes a browser take it.
pub struct TraceServer {
    /// What to open in a browser.
    pub url: String,
    /// What to start a browser with: it leads there once, and holds no secret afterwards.
    pub once_url: String,
    /// Where the trace itself is.
    pub trace_url: String,
    /// Bytes of it.
    pub bytes: u64,
    /// Answers.
    pub server: Server,
}

/// Listens for whoever fetches a trace.
///
/// # Errors
/// Where the port can't be had.
pub async fn give(trace: TraceToShow, options: &ServeOptions) -> Result<TraceServer, OpenError> {
    let offer = Offer {
        source: trace.trace.source,
        name: trace.name,
        origin: options.ui.origin.clone(),
        page: options.page,
    };
    let port = options.port;
    let server = Server::bind(port, offer).await;
    let mut server = server.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => OpenError::PortBusy { port },
        _ => OpenError::Listen { port, source },
    })?;
    let trace_url = server.file_url();
    let from_ui = || format!("{}/#!/?url={trace_url}", options.ui.address);
    let url = server.page_url().unwrap_or_else(from_ui);
    let once_url = server.lead_once(&url);
    Ok(TraceServer {
        once_url: once_url.map_err(|source| OpenError::Listen { port, source })?,
        url,
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
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let fixture = |name: &str, goal: &str| {
            let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
            std::fs::copy(fixtures.join(name), path(goal)).expect("copied");
        };
        fixture("hprof/android-a.hprof.gz", "dump.hprof");
        fixture("conversions/c_cont.pftrace", "raw-trace");
        std::fs::write(path("notes.txt"), "not a heap").expect("written");
        let shown = |path: &Path, report| choose(path, report);
        assert!(matches!(
            shown(&path("dump.hprof"), false),
            Ok(Shown::NoPageYet)
        ));
        assert!(matches!(
            shown(&path("notes.txt"), false),
            Err(OpenError::Import(_))
        ));
        assert!(matches!(shown(folder.path(), true), Ok(Shown::NoPageYet)));
        std::fs::write(path(PAGE), "<!doctype html>").expect("written");
        assert!(matches!(shown(folder.path(), true), Ok(Shown::NoPageYet)));
        assert!(matches!(
            shown(&path("none"), false),
            Err(OpenError::Import(_))
        ));
        assert!(matches!(shown(folder.path(), false), Ok(Shown::Trace(_))));
    }

    #[test]
    fn the_page_of_a_folder_is_shown_only_as_the_manifest_knows_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let page = folder.path().join(PAGE);
        let is_unknown =
            |shown| matches!(shown, Err(OpenError::UnknownPage { path }) if path == page);
        let head = format!("<!doctype html>\n{} 0.1.0\">", crate::report::MARK);
        std::fs::write(&page, &head).expect("written");
        Manifest::default().write(folder.path()).expect("written");
        assert!(is_unknown(choose(folder.path(), true)), "nobody noted it");
        let sum = sha256_of(&page).expect("it can be read");
        Manifest::note_page(folder.path(), PAGE, &sum).expect("noted");
        let shown = choose(folder.path(), true);
        assert!(matches!(shown, Ok(Shown::Page(path)) if path == page));
        std::fs::write(&page, format!("{head}<script>")).expect("written");
        assert!(is_unknown(choose(folder.path(), true)));
        std::fs::write(folder.path().join(manifest::FILE_NAME), "{}").expect("written");
        assert!(
            is_unknown(choose(folder.path(), true)),
            "no manifest of ours"
        );
    }

    #[test]
    fn a_page_of_ours_is_shown_itself_and_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let page = folder.path().join(PAGE);
        let head = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n";
        let ours = format!("{head}{} 0.1.0\">", crate::report::MARK);
        std::fs::write(&page, ours).expect("written");
        for report in [false, true] {
            let shown = choose(&page, report);
            assert!(matches!(shown, Ok(Shown::Page(path)) if path == page));
        }
        // What somebody else wrote may run anything.
        std::fs::write(&page, head).expect("written");
        assert!(matches!(choose(&page, false), Err(OpenError::Import(_))));
    }

    #[test]
    fn a_trace_that_nobody_fetched_is_no_fault_of_this_host() {
        let error = OpenError::NotFetched(Duration::from_secs(300));
        assert_eq!(error.class(), ErrorClass::Inconclusive);
        assert_eq!(error.kind(), "trace-not-fetched");
    }
}
