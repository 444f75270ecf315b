//! Trials that test a verdict: the measured task with one thing changed.

use linerate_model::{Counterproof, Expects, Limit, Load, Message, PairPart, Task, Trial};

/// Ratio of the changed result to the unchanged one from which it has risen.
pub(crate) const RISEN: f64 = 1.1;
/// Factor by which a test raises the number of flows.
pub(crate) const FLOWS: u16 = 4;
/// Factor by which a test raises the number of requests in flight.
pub(crate) const OUTSTANDING: u16 = 8;

/// Returns the name of the trial that repeats `cell` with `change`.
pub(crate) fn changed_name(cell: &str, change: &str) -> String {
    format!("{cell} with {change}")
}

/// A task with one thing changed, and what the verdict predicts of it.
pub(crate) struct Test {
    pub(crate) task: Task,
    change: Message,
    expects: Expects,
    /// What the limit is if the contrary comes out, where that is known.
    otherwise: Option<Limit>,
    /// What the contrary shows, in words.
    contrary: Option<Message>,
    /// The expected outcome only rules the contrary out.
    only_excludes: bool,
}

impl Test {
    pub(crate) fn new(task: Task, change: Message, expects: Expects) -> Self {
        Self { task, change, expects, otherwise: None, contrary: None, only_excludes: false }
    }

    /// The contrary shows `what`.
    pub(crate) fn else_it_shows(self, what: Message) -> Self {
        Self { contrary: Some(what), ..self }
    }

    /// The expected outcome only rules out `what` the contrary shows.
    pub(crate) fn only_excludes(self, what: Message) -> Self {
        Self { only_excludes: true, ..self.else_it_shows(what) }
    }

    pub(crate) fn else_it_is(self, limit: Limit) -> Self {
        Self { otherwise: Some(limit), ..self }
    }

    /// Returns the trial with the change. It has the measured load alone: other loads have served their purpose.
    pub(crate) fn of(self, cell: &Trial) -> Trial {
        let Self { task, change, expects, otherwise, contrary, only_excludes } = self;
        let (of, part) = (cell.name.clone(), PairPart::Changed);
        Trial {
            name: changed_name(&cell.name, &change),
            loads: vec![Load { task, timing: cell.load().timing }],
            proves: Some(Counterproof { of, change, part, expects, otherwise, contrary, only_excludes }),
        }
    }
}
