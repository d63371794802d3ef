//! The heap that the page of `explore` shows, which the user may change.

use crate::explored::{ExploreOptions, ExploredHeap, answer};
use crate::heaps::selector::DumpSelector;
use crate::net::{ApiProblem, ApiRequest};
use std::sync::{Arc, Mutex, PoisonError};

/// The heap that the page shows, which the user may change.
pub struct Explored {
    options: ExploreOptions,
    shown: Mutex<Arc<ExploredHeap>>,
}

impl Explored {
    /// Creates a state without a heap; [`ExploredHeap::read`] reads it.
    pub fn new(options: ExploreOptions) -> Explored {
        Explored {
            options,
            shown: Mutex::default(),
        }
    }

    /// Returns what to read.
    pub fn options(&self) -> &ExploreOptions {
        &self.options
    }

    /// Returns the heap that the page shows.
    pub fn shown(&self) -> Arc<ExploredHeap> {
        Arc::clone(&self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Shows another dump of the process, and starts to read it. The one before is forgotten.
    fn show(&self, number: u32) {
        let mut options = self.options.clone();
        options.input.which = Some(DumpSelector::Number(number));
        let heap: Arc<ExploredHeap> = Arc::default();
        let reading = Arc::clone(&heap);
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = heap;
        std::thread::spawn(move || {
            // The page shows the error.
            let _read = reading.read(&options, &reading.reporter());
        });
    }

    /// Answers a request. `show` with a `number` reads another dump of the process.
    ///
    /// # Errors
    /// Returns an error if the heap is not read yet, or does not have what is asked for.
    pub fn answer(&self, request: &ApiRequest) -> Result<Vec<u8>, ApiProblem> {
        if request.operation != "show" {
            return answer(&self.shown(), request);
        }
        let number = request.get("number").unwrap_or_default();
        let number = number.parse();
        let wrong = |_| ApiProblem::Invalid("`show` needs the number of a dump".to_owned());
        self.show(number.map_err(wrong)?);
        Ok(b"null".to_vec())
    }
}
