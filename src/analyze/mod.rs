//! What a heap graph tells people: histograms, trees by class, who holds what, leaks, waste,
//! differences. Takes graphs, gives plain tables; prints nothing.
