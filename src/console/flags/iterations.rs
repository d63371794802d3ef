//! Numbers of iterations that growth is divided by.

/// `N` or `N,M`: numbers of iterations.
pub(crate) fn iterations(typed: &str) -> Result<[u64; 2], String> {
    match typed.split_once(',') {
        Some((before, after)) => Ok([iteration_count(before)?, iteration_count(after)?]),
        None => iteration_count(typed).map(|count| [count; 2]),
    }
}

/// A number of iterations.
pub(crate) fn iteration_count(typed: &str) -> Result<u64, String> {
    match typed.trim().parse::<u64>() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(format!("{typed:?} is not a whole number of at least 1")),
    }
}
