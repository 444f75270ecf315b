//! Search goals, RFC 9971: what has to hold of a load, and how narrow the answer has to be.

use linerate_units::{Nanos, Ratio};

/// What a search looks for (RFC 9971, search goal and its attributes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    /// What users call it.
    pub name: String,
    /// Goal final trial duration: a trial of at least this length is a full-length trial.
    pub final_time: Nanos,
    /// Goal duration sum: the trials at a load are enough when they are so long together.
    pub duration_sum: Nanos,
    /// Goal loss ratio: a trial that loses more than this is a high-loss trial.
    pub loss: Ratio,
    /// Goal exceed ratio: the share of the duration sum that may be high-loss trials at a lower bound.
    pub exceed: Ratio,
    /// Goal width: how far apart the relevant bounds may lie at the end, as a share of the upper one.
    pub width: Ratio,
    /// Goal initial trial duration: the length of the first, coarse trials.
    pub initial_time: Nanos,
}

/// Why a goal cannot be searched for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadGoal {
    /// There is no such goal.
    #[error("there is no search goal `{name}`; name one of {}", Goal::NAMES.join(", "))]
    Unknown {
        /// The name given.
        name: String,
    },
    /// A ratio is outside its limits.
    #[error("goal {goal}: the {what} is {part}/{of}; give one {limits}", part = .ratio.part, of = .ratio.of)]
    Ratio {
        /// The goal's name.
        goal: String,
        /// Which of its ratios.
        what: &'static str,
        /// Its value.
        ratio: Ratio,
        /// What it may be.
        limits: &'static str,
    },
    /// The durations are not in order.
    #[error(
        "goal {0}: give an initial trial duration above zero, a final one not below it, and a duration sum not below that"
    )]
    Durations(String),
    /// Nothing to search for.
    #[error("a search needs at least one goal; name one of {}", Goal::NAMES.join(", "))]
    None,
}

impl Goal {
    /// The names that [`Goal::named`] knows.
    pub const NAMES: [&'static str; 4] = ["rfc2544", "tst009", "ndr", "pdr"];

    /// The goal of this name.
    ///
    /// # Errors
    /// No goal has it.
    pub fn named(name: &str) -> Result<Self, BadGoal> {
        match name {
            "rfc2544" => Ok(Self::rfc2544()),
            "tst009" => Ok(Self::tst009()),
            "ndr" => Ok(Self::ndr()),
            "pdr" => Ok(Self::pdr()),
            _ => Err(BadGoal::Unknown { name: name.to_owned() }),
        }
    }

    /// That of RFC 2544, as RFC 9971 has it: one trial of 60 s without loss.
    pub fn rfc2544() -> Self {
        Self::example("rfc2544", (60, 60), Ratio::new(0, 1), Ratio::new(0, 1))
    }

    /// That of ETSI TST009, as RFC 9971 has it: two trials of 60 s, one of which may lose.
    pub fn tst009() -> Self {
        Self::example("tst009", (60, 120), Ratio::new(0, 1), Ratio::new(1, 2))
    }

    /// The no-drop rate of the CSIT project: 21 trials of 1 s, half of which may lose.
    pub fn ndr() -> Self {
        Self::example("ndr", (1, 21), Ratio::new(0, 1), Ratio::new(1, 2))
    }

    /// The partial-drop rate of the CSIT project: 21 trials of 1 s, half of which may lose more than 0.5 %.
    pub fn pdr() -> Self {
        Self::example("pdr", (1, 21), Ratio::new(5, 1000), Ratio::new(1, 2))
    }

    /// To a width of 0.5 %, and from trials of 1 s.
    fn example(name: &str, (final_secs, sum_secs): (u64, u64), loss: Ratio, exceed: Ratio) -> Self {
        Self {
            name: name.to_owned(),
            final_time: Nanos::from_secs(final_secs),
            duration_sum: Nanos::from_secs(sum_secs),
            loss,
            exceed,
            width: Ratio::new(5, 1000),
            initial_time: Nanos::from_secs(1),
        }
    }

    /// The same goal in more or less time: the final trials and their sum last `factor` as long. The initial trials stay
    /// as they are, unless the final ones become shorter. The result then no longer is what the name stands for.
    pub fn scaled(mut self, factor: Ratio) -> Self {
        let scale = |time: Nanos| {
            let scaled = u128::from(time.get()) * u128::from(factor.part) / u128::from(factor.of.max(1));
            Nanos::new(u64::try_from(scaled).unwrap_or(u64::MAX).max(1))
        };
        self.final_time = scale(self.final_time);
        self.duration_sum = scale(self.duration_sum).max(self.final_time);
        self.initial_time = self.initial_time.min(self.final_time);
        self
    }

    /// The goal itself, and before it goals that are coarser and sooner reached, whose bounds tell where to look next.
    /// They affect how long a search takes, not what it finds.
    pub(super) fn stages(&self) -> Vec<Self> {
        let mut stages = Vec::new();
        if self.initial_time < self.duration_sum {
            let coarser = |final_time, duration_sum, times| {
                let part = self.width.part.saturating_mul(times);
                let width = if part < self.width.of { Ratio::new(part, self.width.of) } else { self.width };
                Self { final_time, duration_sum, width, ..self.clone() }
            };
            let halfway = |time| geometric_mean(self.initial_time, time);
            stages.push(coarser(self.initial_time, self.initial_time, 4));
            stages.push(coarser(halfway(self.final_time), halfway(self.duration_sum), 2));
        }
        stages.push(self.clone());
        stages
    }

    /// Refuses what the formulas of RFC 9971 cannot take.
    pub(super) fn check(&self) -> Result<(), BadGoal> {
        let bad = |what, ratio, limits| BadGoal::Ratio { goal: self.name.clone(), what, ratio, limits };
        for (what, ratio) in [("loss ratio", self.loss), ("exceed ratio", self.exceed)] {
            if ratio.part >= ratio.of {
                return Err(bad(what, ratio, "from 0 to below 1"));
            }
        }
        if self.width.part == 0 || self.width.part >= self.width.of {
            return Err(bad("width", self.width, "above 0 and below 1"));
        }
        let ordered = self.initial_time <= self.final_time && self.final_time <= self.duration_sum;
        if self.initial_time.get() > 0 && ordered { Ok(()) } else { Err(BadGoal::Durations(self.name.clone())) }
    }
}

fn geometric_mean(low: Nanos, high: Nanos) -> Nanos {
    Nanos::new((u128::from(low.get()) * u128::from(high.get())).isqrt() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_goal_is_sound_and_an_unknown_name_is_told_the_known_ones() {
        for name in Goal::NAMES {
            let goal = Goal::named(name).unwrap();
            assert_eq!((goal.name.as_str(), goal.check()), (name, Ok(())));
            assert!(goal.stages().iter().all(|stage| stage.check() == Ok(())));
            assert_eq!(goal.stages().last(), Some(&goal));
        }
        assert_eq!(
            Goal::named("mrr").unwrap_err().to_string(),
            "there is no search goal `mrr`; name one of rfc2544, tst009, ndr, pdr"
        );
    }

    #[test]
    fn scaling_shortens_the_final_trials_and_their_sum_alike() {
        let goal = Goal::named("tst009").unwrap().scaled(Ratio::new(1, 120));
        assert_eq!(goal.final_time, Nanos::from_millis(500));
        assert_eq!(goal.duration_sum, Nanos::from_millis(1000));
        assert_eq!(goal.initial_time, Nanos::from_millis(500));
        assert_eq!(goal.check(), Ok(()));
        let longer = Goal::named("ndr").unwrap().scaled(Ratio::new(10, 1));
        assert_eq!((longer.final_time, longer.initial_time), (Nanos::from_secs(10), Nanos::from_secs(1)));
    }

    #[test]
    fn refuses_what_the_formulas_cannot_take() {
        let refuse = |change: fn(&mut Goal)| {
            let mut goal = Goal::named("pdr").unwrap();
            change(&mut goal);
            goal.check().unwrap_err().to_string()
        };
        assert_eq!(
            refuse(|goal| goal.exceed = Ratio::new(1, 1)),
            "goal pdr: the exceed ratio is 1/1; give one from 0 to below 1"
        );
        assert_eq!(
            refuse(|goal| goal.width = Ratio::new(0, 1)),
            "goal pdr: the width is 0/1; give one above 0 and below 1"
        );
        assert!(refuse(|goal| goal.loss = Ratio::new(0, 0)).contains("loss ratio is 0/0"));
        assert!(refuse(|goal| goal.initial_time = Nanos::new(0)).contains("initial trial duration above zero"));
        assert!(refuse(|goal| goal.duration_sum = Nanos::new(1)).contains("duration sum not below"));
    }
}
