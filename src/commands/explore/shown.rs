//! The heap that the page of `explore` shows, which the user may change.

use crate::heaps::java::JavaError;
use crate::heaps::selector::DumpSelector;
use crate::page::explore_api::{
    ExploreOptions, ExploredHeap, ReadOutcome, ServerFacts, answer, check_generation,
};
use crate::page::net::{ApiProblem, ApiRequest};
use heaptap_base::error::catch_panic;
use heaptap_base::parallel::lock;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The heap that the page shows, which the user may change.
pub struct ShownHeap {
    options: ExploreOptions,
    idle: Duration,
    current: Mutex<Current>,
    /// Held while a heap is read: two at once would need the memory of both.
    reading: Mutex<()>,
}

#[derive(Clone, Default)]
struct Current {
    heap: Arc<ExploredHeap>,
    /// Number of heaps that were shown before.
    generation: u64,
}

impl ShownHeap {
    /// Creates a state without a heap; [`ShownHeap::read`] reads it. `idle` is the time after which the
    /// server ends.
    pub fn new(options: ExploreOptions, idle: Duration) -> ShownHeap {
        ShownHeap {
            options,
            idle,
            current: Mutex::default(),
            reading: Mutex::default(),
        }
    }

    /// Returns the heap that the page shows.
    pub fn heap(&self) -> Arc<ExploredHeap> {
        lock(&self.current).heap.clone()
    }

    /// Reads the heap that the user named. Blocks.
    ///
    /// # Errors
    /// Returns an error if the input does not contain the heap, or cannot be read.
    pub fn read(&self) -> Result<ReadOutcome, JavaError> {
        let heap = self.heap();
        let _reading = lock(&self.reading);
        heap.read(&self.options, &heap.reporter())
    }

    /// Shows another dump of the process, and starts to read it. Forgets the one before, whose reading
    /// ends early.
    fn show(self: &Arc<Self>, number: u32) {
        let mut options = self.options.clone();
        options.input.which = Some(DumpSelector::Number(number));
        let heap: Arc<ExploredHeap> = Arc::default();
        let before = {
            let mut current = lock(&self.current);
            current.generation += 1;
            std::mem::replace(&mut current.heap, Arc::clone(&heap))
        };
        before.cancel();
        let this = Arc::clone(self);
        std::thread::spawn(move || {
            // It takes time to free a large heap, and no request has to wait for that.
            drop(before);
            let _reading = lock(&this.reading);
            // The user may have chosen again while this one waited.
            if !Arc::ptr_eq(&this.heap(), &heap) {
                return;
            }
            // The page shows errors, which are noted; a panic would be noted nowhere.
            let read = catch_panic(|| heap.read(&options, &heap.reporter()));
            if let Err(panic) = read {
                heap.fail(format!("heaptap failed to read it; this is a bug: {panic}"));
            }
        });
    }

    /// Answers a request. `show` with a `number` reads another dump of the process.
    ///
    /// # Errors
    /// Returns an error if the heap is not read yet, or does not have what is asked for.
    pub fn answer(self: &Arc<Self>, request: &ApiRequest) -> Result<Vec<u8>, ApiProblem> {
        let Current { heap, generation } = lock(&self.current).clone();
        if request.operation != "show" {
            let served = ServerFacts {
                generation,
                idle_seconds: self.idle.as_secs_f64(),
            };
            return answer(&heap, request, Some(served));
        }
        check_generation(request, generation)?;
        let number = request.get("number").unwrap_or_default();
        let number = number.parse();
        let wrong = |_| ApiProblem::Invalid("`show` needs the number of a dump".to_owned());
        self.show(number.map_err(wrong)?);
        Ok(b"null".to_vec())
    }
}
