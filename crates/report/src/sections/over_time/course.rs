//! A quantity over time as steps: arithmetic of step functions.

use crate::blocks::drawing::Stretch;
use linerate_method::statistics::median;
use linerate_model::{Series, Span};
use linerate_units::Nanos;

/// A value that holds for an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CourseStep {
    pub(crate) span: Span,
    pub(crate) value: f64,
}

impl CourseStep {
    /// Takes in the next step: the value becomes the mean of both.
    fn extend(&mut self, next: &Self) {
        let length = |span: Span| (span.to_us - span.from_us) as f64;
        let length_of_self = length(self.span);
        let other = length(next.span);
        self.value = (self.value * length_of_self + next.value * other) / (length_of_self + other);
        self.span.to_us = next.span.to_us;
    }

    /// Returns the step as a stretch of a drawing.
    pub(crate) fn stretch(&self) -> Stretch {
        Stretch { from: self.span.from_us as f64 / 1e6, to: self.span.to_us as f64 / 1e6, value: self.value }
    }
}

/// A quantity over time: steps in the order of time. Where nothing was measured there is no step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Course {
    pub(crate) steps: Vec<CourseStep>,
    /// The measured window. What lies outside is warm-up or drain.
    pub(crate) window: Span,
}

/// The lowest, the median and the highest of the steps within the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CourseRange {
    pub(crate) lowest: f64,
    pub(crate) median: f64,
    pub(crate) highest: f64,
    pub(crate) steps: usize,
}

impl Course {
    /// Returns a value for each interval of a series with its zero at `offset_us`, `None` if nothing was measured.
    pub(crate) fn new(series: &Series, offset_us: i64, values: impl IntoIterator<Item = Option<f64>>) -> Self {
        let moved = |span: Span| Span { from_us: span.from_us + offset_us, to_us: span.to_us + offset_us };
        let step = |(span, value): (Span, Option<f64>)| {
            let value = value.filter(|value| value.is_finite() && span.to_us > span.from_us)?;
            Some(CourseStep { span: moved(span), value })
        };
        let window = Span { from_us: 0, to_us: (series.window.get() / 1_000) as i64 };
        Self { steps: series.spans().zip(values).filter_map(step).collect(), window: moved(window) }
    }

    /// A counter's growth per second; zero throughout where the series has no such track.
    pub(crate) fn per_second(series: &Series, offset_us: i64, values: Option<&[u64]>) -> Self {
        let grown = |at: usize| values.and_then(|values| values.get(at)).copied().unwrap_or_default();
        let rates = series.spans().enumerate().map(|(at, span)| Some(grown(at) as f64 / span.seconds()));
        Self::new(series, offset_us, rates)
    }

    /// A level. Zero stands for what was not read yet.
    pub(crate) fn level(series: &Series, offset_us: i64, values: &[u64]) -> Self {
        Self::new(series, offset_us, values.iter().map(|value| (*value > 0).then_some(*value as f64)))
    }

    /// The response time, nanoseconds, that `share` of all in each interval are at or below.
    pub(crate) fn quantile(series: &Series, offset_us: i64, share: f64) -> Self {
        let quantiles = series.latency.iter().map(|times| Some(times.quantile(share)?.get() as f64));
        Self::new(series, offset_us, quantiles)
    }

    /// Returns the course in another unit.
    pub(crate) fn times(mut self, factor: f64) -> Self {
        self.steps.iter_mut().for_each(|step| step.value *= factor);
        self
    }

    /// Values times their seconds, added up within the window.
    pub(crate) fn area(&self) -> f64 {
        self.counted().map(|step| step.value * step.span.seconds()).sum()
    }

    /// Courses as one, over the steps of the first: `of` says what the values of all come to. A step is left out where another
    /// course was measured in less than half of it.
    pub(crate) fn combined(courses: &[Self], of: impl Fn(&[f64]) -> Option<f64>) -> Option<Self> {
        let (first, others) = courses.split_first()?;
        let mut next = vec![0; others.len()];
        let steps = first.steps.iter().filter_map(|step| {
            let mean_values = others.iter().zip(&mut next).map(|(course, next)| course.mean_in(step.span, next));
            let values: Vec<f64> = std::iter::once(Some(step.value)).chain(mean_values).collect::<Option<_>>()?;
            Some(CourseStep { value: of(&values)?, ..*step })
        });
        Some(Self { steps: steps.collect(), window: first.window })
    }

    /// The sum of courses, over the steps of the first.
    pub(crate) fn sum(courses: &[Self]) -> Option<Self> {
        Self::combined(courses, |values| Some(values.iter().sum()))
    }

    /// Returns the mean over a span, `None` if less than half of it was measured. `next` is the first step that may
    /// reach into it.
    fn mean_in(&self, span: Span, next: &mut usize) -> Option<f64> {
        while self.steps.get(*next).is_some_and(|step| step.span.to_us <= span.from_us) {
            *next += 1;
        }
        let mut sum = 0.0;
        let mut measured = 0.0;
        for step in self.steps[*next..].iter().take_while(|step| step.span.from_us < span.to_us) {
            let shared = step.span.to_us.min(span.to_us) - step.span.from_us.max(span.from_us);
            sum += step.value * shared as f64;
            measured += shared as f64;
        }
        (measured * 2.0 >= (span.to_us - span.from_us) as f64).then(|| sum / measured)
    }

    /// Merges steps shorter than `shortest_us` with their neighbours, but neither across an edge of the window nor across a gap. What
    /// stays so short outside the window is left out: it would be a stroke without width.
    pub(crate) fn merged(&self, shortest_us: i64) -> Self {
        let is_edge = |at: i64| at == self.window.from_us || at == self.window.to_us;
        let joins =
            |one: &CourseStep, next: &CourseStep| one.span.to_us == next.span.from_us && !is_edge(one.span.to_us);
        let is_short = |step: &CourseStep| step.span.to_us - step.span.from_us < shortest_us;
        let mut steps: Vec<CourseStep> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            match steps.last_mut() {
                Some(last) if is_short(last) && joins(last, step) => last.extend(step),
                _ => steps.push(*step),
            }
        }
        // The last before an edge or a gap had no next one.
        let mut whole: Vec<CourseStep> = Vec::with_capacity(steps.len());
        for step in &steps {
            match whole.last_mut() {
                Some(last) if is_short(step) && joins(last, step) => last.extend(step),
                _ => whole.push(*step),
            }
        }
        whole.retain(|step| self.has_within(step.span) || !is_short(step));
        Self { steps: whole, window: self.window }
    }

    /// The course from a moment on.
    pub(crate) fn since(&self, from_us: i64) -> Self {
        let mut steps = self.steps.clone();
        steps.retain(|step| step.span.to_us > from_us);
        steps.iter_mut().for_each(|step| step.span.from_us = step.span.from_us.max(from_us));
        Self { steps, window: self.window }
    }

    /// The course without the part of a warm-up that is longer than the window: its end is kept.
    pub(crate) fn without_early_warm_up(&self) -> Self {
        self.since(self.window.from_us - (self.window.to_us - self.window.from_us))
    }

    fn has_within(&self, span: Span) -> bool {
        span.from_us >= self.window.from_us && span.to_us <= self.window.to_us
    }

    /// The steps within the window.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &CourseStep> {
        self.steps.iter().filter(|step| self.has_within(step.span))
    }

    /// Returns the mean of each of `parts` equal parts of the window, `None` if less than half of it was measured.
    pub(crate) fn in_parts(&self, parts: usize) -> impl Iterator<Item = Option<f64>> {
        let length = (self.window.to_us - self.window.from_us) as f64;
        let mut next = 0;
        let edge = move |at: usize| self.window.from_us + (length * at as f64 / parts as f64) as i64;
        (0..parts).map(move |at| self.mean_in(Span { from_us: edge(at), to_us: edge(at + 1) }, &mut next))
    }

    /// Returns the lowest and the highest step within the window, `None` if there is no step.
    pub(crate) fn range(&self) -> Option<CourseRange> {
        let mut values: Vec<f64> = self.counted().map(|step| step.value).collect();
        values.sort_by(f64::total_cmp);
        let lowest = *values.first()?;
        let highest = *values.last()?;
        Some(CourseRange { lowest, highest, steps: values.len(), median: median(values)? })
    }
}

/// Returns the first and the last moment of all courses, `None` if they have no step.
pub(crate) fn extent<'a>(courses: impl Iterator<Item = &'a Course>) -> Option<Span> {
    let ends = courses.filter_map(|course| Some((course.steps.first()?.span.from_us, course.steps.last()?.span.to_us)));
    let (from_us, to_us) = ends.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))?;
    Some(Span { from_us, to_us })
}

/// The usual length of a step: the median of all.
pub(crate) fn usual_interval<'a>(courses: impl Iterator<Item = &'a Course>) -> Nanos {
    let lengths = courses.flat_map(|course| course.steps.iter().map(|step| step.span.seconds()));
    // Samplers are late by some microseconds; a reader wants to know what was asked for.
    let milliseconds = median(lengths.collect()).map_or(0.0, |seconds| (seconds * 1e3).round().max(1.0));
    Nanos::from_millis(milliseconds as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(from_us: i64, at_us: &[i64], window_us: u64) -> Series {
        let window = Nanos::new(window_us * 1_000);
        Series { from_us, at_us: at_us.to_vec(), window, ..Series::default() }
    }

    fn course(steps: &[(i64, i64, f64)], window: (i64, i64)) -> Course {
        let step = |(from_us, to_us, value): &(i64, i64, f64)| CourseStep {
            span: Span { from_us: *from_us, to_us: *to_us },
            value: *value,
        };
        Course { steps: steps.iter().map(step).collect(), window: Span { from_us: window.0, to_us: window.1 } }
    }

    #[test]
    fn a_counter_becomes_a_rate_and_its_absence_zero() {
        let series = series(-100_000, &[0, 100_000, 300_000], 300_000);
        let rates = Course::per_second(&series, 50, Some(&[10, 20, 20]));
        let expected = [(-99_950, 50, 100.0), (50, 100_050, 200.0), (100_050, 300_050, 100.0)];
        assert_eq!(rates, course(&expected, (50, 300_050)));
        assert!(Course::per_second(&series, 0, None).steps.iter().all(|step| step.value == 0.0));
        let range = rates.range().expect("steps in the window");
        assert_eq!((range.lowest, range.median, range.highest, range.steps), (100.0, 150.0, 200.0, 2));
    }

    #[test]
    fn what_was_not_measured_is_a_gap() {
        let series = series(0, &[10, 20, 30], 30);
        assert_eq!(Course::level(&series, 0, &[5, 0, 7]), course(&[(0, 10, 5.0), (20, 30, 7.0)], (0, 30)));
    }

    #[test]
    fn courses_add_up_over_the_steps_of_the_first() {
        let one = course(&[(0, 100, 1.0), (100, 200, 2.0), (200, 300, 3.0)], (0, 300));
        let other = course(&[(-20, 80, 10.0), (80, 180, 20.0), (180, 240, 30.0)], (5, 240));
        let sum = Course::sum(&[one.clone(), other]).expect("two courses");
        // A fifth of the first step lies in the second of the other; of the last step less than half was measured.
        assert_eq!(sum, course(&[(0, 100, 13.0), (100, 200, 24.0)], (0, 300)));
        assert_eq!(Course::sum(std::slice::from_ref(&one)), Some(one));
        assert_eq!(Course::sum(&[]), None);
    }

    #[test]
    fn nothing_is_merged_across_an_edge_or_a_gap() {
        let steps = [(-20, -10, 1.0), (-10, 0, 3.0), (0, 10, 5.0), (20, 30, 7.0), (30, 40, 9.0), (40, 50, 1.0)];
        let merged = course(&steps, (0, 40)).merged(20);
        // The last step, too narrow to be seen, lies outside the window.
        assert_eq!(merged, course(&[(-20, 0, 2.0), (0, 10, 5.0), (20, 40, 8.0)], (0, 40)));
    }

    #[test]
    fn a_short_step_before_an_edge_is_merged_with_the_one_before_it() {
        let merged = course(&[(0, 20, 1.0), (20, 40, 1.0), (40, 50, 7.0), (50, 70, 2.0)], (0, 50)).merged(15);
        assert_eq!(merged, course(&[(0, 20, 1.0), (20, 50, 3.0), (50, 70, 2.0)], (0, 50)));
    }

    #[test]
    fn a_course_is_cut_at_a_moment() {
        let cut = course(&[(-50, -20, 1.0), (-20, 10, 2.0), (10, 20, 3.0)], (0, 20)).since(-5);
        assert_eq!(cut, course(&[(-5, 10, 2.0), (10, 20, 3.0)], (0, 20)));
    }

    #[test]
    fn the_usual_interval_is_said_without_the_samplers_lateness() {
        let one = course(&[(0, 100_012, 1.0), (100_012, 199_998, 2.0), (199_998, 201_000, 2.0)], (0, 201_000));
        assert_eq!(usual_interval([&one].into_iter()), Nanos::from_millis(100));
    }

    proptest! {
        /// However steps are merged, the area below them stays.
        #[test]
        fn merging_keeps_the_mean(values in prop::collection::vec((1i64..50, 0.0f64..1e9), 1..200), shortest in 1i64..200) {
            let mut at = 0;
            let steps: Vec<(i64, i64, f64)> = values
                .iter()
                .map(|(length, value)| { at += length; (at - length, at, *value) })
                .collect();
            let area = |course: &Course| course.steps.iter().map(|step| step.value * step.span.seconds()).sum::<f64>();
            let whole = course(&steps, (0, at));
            let merged = whole.merged(shortest);
            prop_assert!((area(&merged) - area(&whole)).abs() <= area(&whole) * 1e-9);
            let lengths = merged.steps.iter().rev().skip(1).map(|step| step.span.to_us - step.span.from_us);
            prop_assert!(lengths.min().is_none_or(|least| least >= shortest));
            prop_assert_eq!(extent([&merged].into_iter()), extent([&whole].into_iter()));
        }
    }
}
