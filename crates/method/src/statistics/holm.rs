//! Holm's correction for several tests at once.

/// One of several tests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tested {
    /// The p-value by itself.
    pub p: f64,
    /// The smallest p-value that the test could have given. Few data, or data with many ties, allow only a few p-values.
    pub least: f64,
}

impl Tested {
    /// A test that could have given any p-value.
    pub fn any(p: f64) -> Self {
        Self { p, least: 0.0 }
    }
}

/// A family of tests, adjusted together so that the chance of one wrong rejection among all of them has the stated level.
///
/// Holm's step-down correction (Scandinavian Journal of Statistics 6, 1979): the k-th smallest of m p-values is multiplied
/// by m - k + 1, and none becomes smaller than the one before it. It holds however the tests depend on each other. At each
/// step, tests that can give no p-value so small do not count, because their chance of one is zero (Westfall and Wolfinger,
/// The American Statistician 51, 1997).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Holm {
    /// Each p-value beside the adjusted one, ascending.
    family: Vec<(f64, f64)>,
}

impl Holm {
    /// The family of these tests.
    pub fn over(tests: impl IntoIterator<Item = Tested>) -> Self {
        let mut tests: Vec<Tested> = tests.into_iter().collect();
        tests.sort_by(|a, b| a.p.total_cmp(&b.p));
        let mut highest = 0.0f64;
        let adjusted = |(rank, test): (usize, &Tested)| {
            let count = tests[rank..].iter().filter(|other| other.least <= test.p).count();
            highest = highest.max((test.p * count as f64).min(1.0));
            (test.p, highest)
        };
        Self { family: tests.iter().enumerate().map(adjusted).collect() }
    }

    /// The adjusted p-value of a test of this family. Of equal p-values it is the same.
    pub fn adjusted(&self, test: Tested) -> f64 {
        let at = self.family.partition_point(|(known, _)| *known < test.p);
        debug_assert!(self.family.get(at).is_some_and(|(p, _)| *p == test.p), "{test:?} is no test of this family");
        self.family.get(at).map_or(1.0, |(_, adjusted)| *adjusted)
    }

    /// How many tests there are.
    pub fn tests(&self) -> usize {
        self.family.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(p_values: &[f64]) -> Holm {
        Holm::over(p_values.iter().copied().map(Tested::any))
    }

    #[test]
    fn the_smallest_p_value_is_corrected_the_most() {
        // 0.01 x 3, 0.03 x 2, and 0.04 x 1, which may not be less than the one before.
        let family = family(&[0.01, 0.04, 0.03]);
        assert_eq!([0.01, 0.04, 0.03].map(|p| family.adjusted(Tested::any(p))), [0.03, 0.06, 0.06]);
        assert_eq!(family.tests(), 3);
    }

    #[test]
    fn equal_p_values_stay_equal() {
        let family = family(&[0.02, 0.5, 0.02]);
        assert_eq!([0.02, 0.5].map(|p| family.adjusted(Tested::any(p))), [0.06, 0.5]);
    }

    /// Two pairs of cells give a sign test with p = 0.5 at best: a hundred of them cannot be as small by chance as the others are.
    #[test]
    fn tests_that_can_give_no_p_value_so_small_do_not_count() {
        let small = Tested { p: 0.5, least: 0.5 };
        let large = Tested { p: 0.004, least: 0.002 };
        let family = Holm::over(std::iter::repeat_n(small, 100).chain([large, large]));
        assert_eq!((family.adjusted(large), family.adjusted(small)), (0.008, 1.0));
        // One with a p-value between counts where it could have been the smaller one.
        let between = Tested { p: 0.03, least: 0.001 };
        let family = Holm::over([between, large, large]);
        assert_eq!((family.adjusted(large), family.adjusted(between)), (0.012, 0.03));
    }
}
