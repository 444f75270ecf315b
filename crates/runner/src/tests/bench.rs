//! A bench that does not keep the limits that were planted on it is a caveat of the record.

use super::fake::FakeAgents;
use super::plans;
use crate::{BenchWatch, Origin, Run};
use linerate_model::{CaveatKind, Sampling};
use std::collections::VecDeque;
use std::sync::Mutex;
use tokio::sync::watch;

/// What a bench says each time it is asked.
struct Scripted(Mutex<VecDeque<Option<&'static str>>>);

impl BenchWatch for Scripted {
    fn missed(&self) -> Option<linerate_model::Message> {
        self.0.lock().expect("no panic").pop_front().flatten().map(linerate_model::Message::untranslated)
    }
}

/// The caveat of a run of two trials, if it has one; the bench is asked before and after each.
async fn caveat(said: [Option<&'static str>; 4]) -> Option<String> {
    let bench = Scripted(Mutex::new(said.into()));
    let agents = FakeAgents::new(&["a", "b"]);
    let run = Run {
        plan: plans::sweep(1),
        origin: Origin::default(),
        sampling_period: Sampling::default().period,
        agents: &agents,
        id: None,
        takes_over: false,
        keep: None,
        password: None,
        device: None,
        bench: Some(&bench),
        resumed: None,
    };
    let (_go_on, cancel) = watch::channel(false);
    let record = run.execute(&mut |_| (), cancel).await.record;
    assert_eq!(record.trials.len(), 2);
    assert!(bench.0.lock().expect("no panic").is_empty(), "it was asked before and after each trial");
    record.caveats.into_iter().find(|caveat| caveat.kind == CaveatKind::BenchLimits).map(|caveat| caveat.text.text)
}

#[tokio::test(start_paused = true)]
async fn trials_in_which_it_fell_behind_are_counted_and_the_time_between_them_is_not() {
    let late = Some("the path was late");
    assert_eq!(caveat([None, None, None, late]).await.as_deref(), Some("in 1 of 2 trials the path was late"));
    assert_eq!(caveat([None, late, None, late]).await.as_deref(), Some("in 2 of 2 trials the path was late"));
    assert_eq!(caveat([late, None, late, None]).await, None);
}
