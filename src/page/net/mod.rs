//! Servers on loopback. One serves one file to one web page, and ends. Used by Perfetto's UI,
//! which fetches a trace over plain HTTP only from `http://127.0.0.1:9001`: its content policy
//! contains that literal address and port.
//!
//! Other users and web pages have no access: the server listens only on 127.0.0.1, answers only for
//! a path with 128 random bits, only to its own `Host` (names that resolve to it are rejected), and
//! lets only one origin read the answer. The file is streamed. The browser is started with an
//! address that redirects once, because all users see the arguments of programs.
//!
//! | file | contents |
//! |---|---|
//! | `answer` | answers, as a function of the request head |
//! | `body` | a file as a body, read as fast as it is consumed |
//! | `listener` | socket and connections of both servers |
//! | `page` | the page that transfers a trace if the UI cannot fetch it |
//! | `server` | one file for one page, its deadlines |
//! | `site` | a page and the requests of its script, for `explore` |

mod answer;
mod body;
mod listener;
mod page;
mod server;
mod site;

pub use server::{Ended, Offer, Server, ServerEvent};
pub use site::{Api, ApiHandler, ApiProblem, ApiRequest, Site, SitePage};

#[cfg(test)]
mod tests;
