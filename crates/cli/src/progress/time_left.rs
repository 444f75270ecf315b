//! How long a run will go on: the trials left, each with its warm-up, its window, and what trials have taken besides so far.

use linerate_model::{Task, Trial, Warmup};
use std::time::Duration;

/// A warm-up that ends when the load is steady takes about so long, until one was seen.
const STEADY_AFTER: Duration = Duration::from_millis(500);

/// What is known of the time that trials take. Times are those of one clock, from any moment on.
#[derive(Debug, Default)]
pub(super) struct TimeLeft {
    begun: Duration,
    /// What the trial that runs takes by its plan; none if it ends by what it has done.
    planned: Option<Duration>,
    ended: u32,
    /// What those that ended took, and how much of that their plans did not say.
    took: Duration,
    beyond: Duration,
}

impl TimeLeft {
    /// A trial begins.
    pub(super) fn begins(&mut self, now: Duration, trial: &Trial) {
        (self.begun, self.planned) = (now, planned(trial));
    }

    /// It has ended, or was spoilt: either takes its time.
    pub(super) fn ends(&mut self, now: Duration) {
        let took = now.saturating_sub(self.begun);
        self.ended += 1;
        self.took += took;
        self.beyond += took.saturating_sub(self.planned.unwrap_or(took));
    }

    /// What the whole trial that runs takes; `share` of one without a length is done. None before it has begun to do anything.
    fn trial(&self, now: Duration, share: f64) -> Option<Duration> {
        match self.planned {
            Some(planned) => Some(planned + self.beyond.checked_div(self.ended).unwrap_or_default()),
            None if self.ended > 0 => self.took.checked_div(self.ended),
            None => Duration::try_from_secs_f64(now.saturating_sub(self.begun).as_secs_f64() / share).ok(),
        }
    }

    /// How much of the trial that runs is done, from 0 to 1: of one without a length, `share`.
    pub(super) fn within(&self, now: Duration, share: f64) -> f64 {
        if self.planned.is_none() {
            return share.clamp(0.0, 1.0);
        }
        let all = self.trial(now, share).unwrap_or_default().as_secs_f64();
        if all > 0.0 { (now.saturating_sub(self.begun).as_secs_f64() / all).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The time left, with so many trials after the one that runs; none while it is not known.
    pub(super) fn left(&self, now: Duration, share: f64, after: usize) -> Option<Duration> {
        let trial = self.trial(now, share)?;
        let rest = trial.saturating_sub(now.saturating_sub(self.begun));
        Some(rest + trial.saturating_mul(u32::try_from(after).unwrap_or(u32::MAX)))
    }
}

/// What a trial takes by its plan, warm-up included; none if it runs until it is done, or has sent its volume.
fn planned(trial: &Trial) -> Option<Duration> {
    if let Task::Frames(frames) = trial.task() {
        return Some(Duration::from(frames.time) + Duration::from(frames.settle));
    }
    let window = trial.window().filter(|_| trial.volume().is_none())?;
    let warm_up = match window.warmup {
        Warmup::Fixed(time) => Duration::from(time),
        Warmup::Steady { at_most, then } => STEADY_AFTER.min(at_most.into()) + Duration::from(then),
    };
    Some(warm_up + Duration::from(window.measure))
}

/// A time left in words: `12 s`, `3 min`, `2 h 5 min`.
pub(super) fn shown(left: Duration) -> String {
    let seconds = left.as_secs_f64().ceil() as u64;
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..6_000 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{StreamTask, Timing, Transport};
    use linerate_units::{ByteCount, Nanos};

    const SECOND: Duration = Duration::from_secs(1);

    fn trial(timing: Timing) -> Trial {
        Trial::new("tcp", Task::Stream(StreamTask::plain(Transport::Tcp, ByteCount::new(1))), timing)
    }

    fn of_seconds(warm_up: u64, measure: u64) -> Trial {
        trial(Timing::of(Nanos::from_secs(warm_up), Nanos::from_secs(measure)))
    }

    /// Six trials of 2 s of warm-up, a window of 10 s and 3 s that no plan says: told at each second, the time left holds.
    #[test]
    fn the_time_left_holds_once_one_trial_was_seen() {
        let (spec, each, all) = (of_seconds(2, 10), 15, 6);
        let mut time = TimeLeft::default();
        for second in 0..each * all {
            let (number, now) = (second / each, SECOND * second);
            if second % each == 0 {
                if number > 0 {
                    time.ends(now);
                }
                time.begins(now, &spec);
            }
            let left = time.left(now, 0.0, (all - number - 1) as usize).expect("it has a length");
            let truth = SECOND * (each * all - second);
            match number {
                // The plan alone: the 3 s of each trial are not known yet.
                0 => assert!(left <= truth && truth - left <= 3 * SECOND * all, "{second}: {left:?}"),
                _ => assert_eq!(left, truth, "{second}"),
            }
        }
    }

    /// The warm-up is a part of the way.
    #[test]
    fn a_trial_advances_in_its_warm_up_and_never_beyond_its_end() {
        let mut time = TimeLeft::default();
        time.begins(5 * SECOND, &of_seconds(5, 5));
        let within = [5, 10, 15, 99].map(|now| time.within(SECOND * now, 0.0));
        assert_eq!(within, [0.0, 0.5, 1.0, 1.0]);
        assert_eq!(time.left(99 * SECOND, 0.0, 2), Some(20 * SECOND), "what is late leaves the others");
    }

    #[test]
    fn a_trial_without_a_length_is_told_by_what_it_has_done() {
        let mut time = TimeLeft::default();
        time.begins(Duration::ZERO, &trial(Timing::UntilDone));
        assert_eq!(time.left(SECOND, 0.0, 1), None, "nothing is done yet");
        assert_eq!(time.left(2 * SECOND, 0.25, 1), Some(14 * SECOND));
        time.ends(8 * SECOND);
        time.begins(8 * SECOND, &trial(Timing::UntilDone));
        assert_eq!(time.left(10 * SECOND, 0.0, 0), Some(6 * SECOND), "like the one before it");
    }

    #[test]
    fn times_are_short_words() {
        let told = [0, 12, 99, 100, 5_999, 7_500].map(|seconds| shown(SECOND * seconds));
        assert_eq!(told, ["0 s", "12 s", "99 s", "2 min", "100 min", "2 h 5 min"]);
    }
}
