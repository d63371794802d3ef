//! A server on loopback that gives one file to one web page, and ends. For Perfetto's UI, which
//! fetches a trace from `http://127.0.0.1:9001` and from no other place over plain HTTP: its
//! content policy names that literal address and port.
//!
//! Whoever else is on this machine or on the web learns nothing: it listens on 127.0.0.1 alone,
//! answers only for a path with 128 random bits, only to a `Host` that is its own (a name that
//! was made to lead here is refused), and lets only one origin read the answer. The file is
//! streamed. A browser is started with an address that leads there once, since all users see what
//! a program was started with.
//!
//! | file | owns |
//! |---|---|
//! | `answer` | what a request is answered, as a function of its head |
//! | `body` | a file as a body, read as fast as it is taken |
//! | `page` | the page that hands a trace over where the UI may not fetch it |
//! | `server` | the socket, connections, deadlines |

mod answer;
mod body;
mod page;
mod server;

pub use server::{Ended, Offer, Server, ServerEvent};

#[cfg(test)]
mod tests;
