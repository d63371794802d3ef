//! Numbers of iterations that differences are divided by.

/// `N` or `N,M`: numbers of iterations.
pub(crate) fn iterations(typed: &str) -> Result<[f64; 2], String> {
    match typed.split_once(',') {
        Some((before, after)) => Ok([iteration_count(before)?, iteration_count(after)?]),
        None => iteration_count(typed).map(|count| [count; 2]),
    }
}

/// A number of iterations.
pub(crate) fn iteration_count(typed: &str) -> Result<f64, String> {
    match typed.trim().parse::<f64>() {
        Ok(count) if count.is_finite() && count > 0.0 => Ok(count),
        _ => Err(format!("{typed:?} is no number of iterations")),
    }
}
