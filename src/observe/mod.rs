//! What is read from a running phone beside a recording: samples of memory through one shell
//! loop, and the log, followed line by line. Turns answers into entries of
//! [`crate::memory::timeline`]; what they mean is said elsewhere.
