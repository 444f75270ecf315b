//! Runs of one measurement that were kept as records of their own, as one record.

use crate::replay::replay;
use linerate_model::{Caveat, CaveatKind, Goal, Record, RecordId, Repeats};

/// One record of all trials of `records`, which are repeats of one measurement in the order they ran. Command, plan and hosts are
/// those of the first. None without records, or where they are no measurement with repeats.
pub fn merged(records: &[Record], id: RecordId) -> Option<Record> {
    let mut all = Record { id, trials: Vec::new(), ..records.first()?.clone() };
    let Goal::Sweep(sweep) = &mut all.plan.goal else { return None };
    sweep.repeats = Repeats::Times(records.len() as u32);
    all.trials = records.iter().flat_map(|record| record.trials.clone()).collect();
    let told = records.iter().flat_map(|record| &record.caveats);
    all.caveats.clear();
    for caveat in told.filter(|caveat| is_of_one_run(caveat)) {
        if !all.caveats.contains(caveat) {
            all.caveats.push(caveat.clone());
        }
    }
    replay(&mut all);
    Some(all)
}

/// Whether a caveat does not follow from the trials. Those that do are worked out anew.
fn is_of_one_run(caveat: &Caveat) -> bool {
    caveat.kind != CaveatKind::Repeated
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::{spec, trial};
    use linerate_model::{Message, Plan};

    #[test]
    fn runs_of_their_own_become_repeats_of_one_record() {
        let record = |id: &str, arrived: u64| {
            let mut record = Record {
                trials: vec![trial(arrived, 0)],
                ..Record::new(RecordId(id.into()), Plan::sweep(vec![spec()], Repeats::Times(1)))
            };
            record.caveats.push(Caveat::new(CaveatKind::NotMeasured, Message::untranslated("the same doubt")));
            replay(&mut record);
            record
        };
        let runs = [record("one", 1000), record("two", 1010), record("three", 990)];
        let all = merged(&runs, RecordId("all".into())).expect("three runs");
        assert_eq!(all.results[0].main.values, [8e6, 8.08e6, 7.92e6]);
        assert_eq!((all.id.0.as_str(), all.plan.repeats(), all.trials.len()), ("all", Some(Repeats::Times(3)), 3));
        assert_eq!(all.caveats.len(), 1, "{:?}", all.caveats);
        assert_eq!(merged(&[], RecordId("none".into())), None);
    }
}
