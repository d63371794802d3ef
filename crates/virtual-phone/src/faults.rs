//! Fault injection. Owns the list of faults and the count of their occasions; the code that a
//! fault affects calls [`Faults::strikes`].
//!
//! `KIND[@VALUE][#K]`: VALUE is a number whose meaning depends on the kind (bytes, ms, …). With
//! `#K`, the fault strikes only on the k-th occasion, otherwise on every one. [`draws`] adds faults
//! that a seed chooses.

pub(crate) mod draws;
mod fault;
pub(crate) mod gate;

use std::sync::{Arc, Mutex};

use self::draws::Draws;
pub use self::fault::{Fault, FaultError, FaultKind};
use self::gate::{Answer, Gate, Gates};
use super::events::lock;

struct Armed {
    fault: Fault,
    occasions: u32,
    struck: u32,
}

/// The faults of a phone; more can be added at run time. The phones of a server share the list, and
/// each has its own draws.
#[derive(Default)]
pub struct Faults {
    armed: Arc<Mutex<Vec<Armed>>>,
    gates: Arc<Gates>,
    draws: Option<Arc<Draws>>,
}

impl Faults {
    /// Creates the list with `faults` armed.
    pub fn new(faults: &[Fault]) -> Self {
        let all = Faults::default();
        faults.iter().for_each(|f| all.add(*f));
        all
    }

    /// Returns the faults of one phone, which shares this list.
    pub(crate) fn with_draws(&self, draws: Option<Arc<Draws>>) -> Faults {
        Faults {
            armed: Arc::clone(&self.armed),
            gates: Arc::clone(&self.gates),
            draws,
        }
    }

    /// Arms one more fault.
    pub fn add(&self, fault: Fault) {
        lock(&self.armed).push(Armed {
            fault,
            occasions: 0,
            struck: 0,
        });
    }

    /// Disarms all faults of a kind.
    pub fn remove(&self, kind: FaultKind) {
        lock(&self.armed).retain(|a| a.fault.kind != kind);
    }

    /// Closes a gate for the next request that contains all `parts`, such as `shell` and `perfetto`,
    /// `RECV:PATH` or `host:version`.
    pub fn close_gate(&self, parts: &[&str]) -> Gate {
        self.gates.close(parts)
    }

    /// Waits at the gate that stops `request`, and returns the answer.
    pub(crate) fn pass(&self, request: &str) -> Answer {
        self.gates.pass(request)
    }

    /// Returns the number of times that a kind has struck.
    pub fn struck(&self, kind: FaultKind) -> u32 {
        let armed = lock(&self.armed);
        let of_kind = armed.iter().filter(|a| a.fault.kind == kind);
        of_kind.map(|a| a.struck).sum()
    }

    /// Returns the drawn faults that have struck, in order.
    pub(crate) fn drawn(&self) -> Vec<Fault> {
        let draws = self.draws.as_ref();
        draws.map_or_else(Vec::new, |draws| draws.struck())
    }

    /// Ends the draws.
    pub(crate) fn end_draws(&self) {
        if let Some(draws) = &self.draws {
            draws.end();
        }
    }

    /// Counts an occasion for `kind`. Returns the fault's value if it strikes.
    pub(crate) fn strikes(&self, kind: FaultKind) -> Option<Option<i64>> {
        let drawn = self.draws.as_ref().and_then(|draws| draws.draw(kind));
        let mut hit = drawn.map(Some);
        let mut armed = lock(&self.armed);
        for a in armed.iter_mut().filter(|a| a.fault.kind == kind) {
            a.occasions += 1;
            if a.fault.occasion.is_none_or(|k| k == a.occasions) {
                a.struck += 1;
                hit = Some(a.fault.value);
            }
        }
        hit
    }

    /// Counts an occasion like [`Faults::strikes`], of a kind without a value.
    pub(crate) fn has_struck(&self, kind: FaultKind) -> bool {
        self.strikes(kind).is_some()
    }

    /// Counts an occasion like [`Faults::strikes`], with a default for the value.
    pub(crate) fn value(&self, kind: FaultKind, default: u64) -> Option<u64> {
        self.strikes(kind)
            .map(|v| v.map_or(default, |v| v.max(0) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_on_its_occasion() {
        let faults = Faults::new(&[Fault::parse("pull-cut@100#2").expect("valid")]);
        assert_eq!(faults.strikes(FaultKind::PullCut), None);
        assert_eq!(faults.strikes(FaultKind::PullCut), Some(Some(100)));
        assert_eq!(faults.strikes(FaultKind::PullCut), None);
        assert_eq!(faults.strikes(FaultKind::NoExit), None);
        assert_eq!(faults.struck(FaultKind::PullCut), 1);
    }
}
