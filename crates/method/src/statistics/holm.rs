//! Holm's correction for several tests at once.

/// Holm's step-down correction (Scandinavian Journal of Statistics 6, 1979): the k-th smallest of m p-values is multiplied
/// by m - k + 1, and none becomes smaller than the one before it. Returns them in the order given.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut highest: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        highest = highest.max((p_values[index] * (p_values.len() - rank) as f64).min(1.0));
        adjusted[index] = highest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_p_value_is_corrected_the_most() {
        // 0.01 x 3, 0.03 x 2, and 0.04 x 1, which may not be less than the one before.
        assert_eq!(holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
        assert_eq!(holm(&[]), Vec::<f64>::new());
    }
}
