//! A series of values as one line of text.

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws a series as at most `width` blocks: longer series show the highest value of each group, so
/// that peaks are visible. The lowest value is at the bottom, unless all are similar, which gives a
/// flat line.
pub(crate) fn sparkline(values: &[f64], width: usize) -> String {
    let groups = groups(values, width);
    let top = highest(&groups);
    let bottom = groups.iter().copied().fold(f64::INFINITY, f64::min);
    // Insignificant differences would look large.
    let range = (top - bottom).max(top.abs() / 20.0);
    let base = f64::midpoint(top, bottom) - range / 2.0;
    groups
        .iter()
        .map(|value| {
            let height = match range > 0.0 {
                true => (value - base) / range,
                false => 0.5,
            };
            // Prevents rounding errors from lowering middle values.
            BLOCKS[((height * 7.0 + 1e-9).round().clamp(0.0, 7.0)) as usize]
        })
        .collect()
}

/// Returns the highest values of `count` groups of a series, fewer if it is shorter.
pub(crate) fn groups(values: &[f64], count: usize) -> Vec<f64> {
    let count = count.min(values.len());
    let at = |group: usize| group * values.len() / count;
    (0..count)
        .map(|group| highest(&values[at(group)..at(group + 1)]))
        .collect()
}

fn highest(part: &[f64]) -> f64 {
    part.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::sparkline;

    #[test]
    fn a_series_rises_from_the_bottom_to_the_top() {
        let values: Vec<f64> = (0..8).map(f64::from).collect();
        assert_eq!(sparkline(&values, 20), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&values, 4), "▁▃▆█");
        assert_eq!(sparkline(&[100.0, 100.5, 100.0], 9), "▄▅▄");
        assert_eq!(sparkline(&[0.0, 0.0], 9), "▅▅");
        assert_eq!(sparkline(&[7.0], 9), "▅");
        assert_eq!(sparkline(&[], 9), "");
        assert_eq!(sparkline(&[i64::MIN as f64, i64::MAX as f64], 9), "▁█");
        let peak: Vec<f64> = (0..100).map(|n| if n == 50 { 9.0 } else { 1.0 }).collect();
        assert_eq!(sparkline(&peak, 10).matches('█').count(), 1);
    }
}
