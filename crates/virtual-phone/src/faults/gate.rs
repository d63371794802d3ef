//! Gates: a test stops a client at a chosen request, does something to the phone or to the client,
//! and then decides the answer. Owns the list of closed gates and the waiting of requests.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::events::lock;

/// Answer to a request that a gate has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The request is served as usual.
    Serve,
    /// The request is refused with FAIL.
    Refuse,
    /// Bytes that are not of the protocol.
    Garble,
    /// A shell's output has nothing to do with the command, and its exit code is 0. Other requests
    /// are garbled.
    Nonsense,
    /// The connection ends.
    Close,
    /// The connection stays open, without an answer.
    Silence,
}

#[derive(Debug, Default)]
struct State {
    is_reached: bool,
    answer: Option<Answer>,
}

#[derive(Debug)]
struct Closed {
    parts: Vec<String>,
    state: Mutex<State>,
    changed: Condvar,
}

/// A closed gate. Dropping it opens it.
#[derive(Debug)]
pub struct Gate {
    closed: Arc<Closed>,
    gates: Arc<Gates>,
}

impl Gate {
    /// Waits until a request is stopped, at most for `limit`. Returns whether one is.
    pub fn is_reached_within(&self, limit: Duration) -> bool {
        let state = lock(&self.closed.state);
        let waited = self
            .closed
            .changed
            .wait_timeout_while(state, limit, |state| !state.is_reached);
        waited.is_ok_and(|(state, _)| state.is_reached)
    }

    /// Gives the stopped request its answer; later ones pass.
    pub fn answer(&self, answer: Answer) {
        lock(&self.closed.state).answer = Some(answer);
        self.closed.changed.notify_all();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        lock(&self.gates.closed).retain(|closed| !Arc::ptr_eq(closed, &self.closed));
        lock(&self.closed.state).answer.get_or_insert(Answer::Serve);
        self.closed.changed.notify_all();
    }
}

/// The gates of a server.
#[derive(Debug, Default)]
pub(super) struct Gates {
    closed: Mutex<Vec<Arc<Closed>>>,
}

impl Gates {
    pub(super) fn close(self: &Arc<Self>, parts: &[&str]) -> Gate {
        let closed = Arc::new(Closed {
            parts: parts.iter().map(|part| (*part).to_owned()).collect(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        lock(&self.closed).push(Arc::clone(&closed));
        Gate {
            closed,
            gates: Arc::clone(self),
        }
    }

    /// Waits at the gate that stops `request`, and returns the answer.
    pub(super) fn pass(&self, request: &str) -> Answer {
        let found = lock(&self.closed)
            .iter()
            .find(|closed| closed.parts.iter().all(|part| request.contains(part)))
            .map(Arc::clone);
        let Some(closed) = found else {
            return Answer::Serve;
        };
        let mut state = lock(&closed.state);
        if state.is_reached {
            return Answer::Serve;
        }
        state.is_reached = true;
        closed.changed.notify_all();
        loop {
            if let Some(answer) = state.answer {
                return answer;
            }
            state = match closed.changed.wait(state) {
                Ok(state) => state,
                Err(_) => return Answer::Serve,
            };
        }
    }
}
