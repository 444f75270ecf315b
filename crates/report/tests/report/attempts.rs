//! What a reader learns of attempts whose figures do not count.

use crate::sample;
use linerate_model::{Caveat, CaveatKind, Message, Record, Standing, TrialResult};
use linerate_report::{Language, markdown};

/// An attempt at the trial of that index.
fn attempt(record: &Record, cell: usize, attempt: u32, standing: Standing) -> TrialResult {
    TrialResult { standing, ..TrialResult::failed(record.plan.cells()[cell].clone(), attempt, "") }
}

/// A sweep of which two attempts were spoilt and one failed, beside one that counts.
pub(crate) fn record() -> Record {
    let mut record = sample::udp_sweep();
    let spoilt = |percent: u32| Standing::Spoilt {
        reason: Caveat::new(
            CaveatKind::CpuStolen,
            Message::untranslated(format!("the hypervisor took {percent} % of host a's CPU time")),
        ),
    };
    let failed = Standing::Failed { reason: "agent b: no answer within 10 s".to_owned() };
    record.trials = vec![
        attempt(&record, 0, 0, spoilt(7)),
        attempt(&record, 0, 1, spoilt(9)),
        attempt(&record, 0, 2, Standing::Counted),
        attempt(&record, 3, 0, failed),
    ];
    record
}

#[test]
fn where_all_attempts_count_nothing_is_said() {
    let mut record = record();
    record.trials.retain(TrialResult::is_counted);
    assert!(!markdown(Language::English, &record).contains("Attempts that do not count"));
}

#[test]
fn many_reasons_are_counted_not_listed() {
    let mut record = record();
    let failed = |number: usize| {
        attempt(&record, 1, 0, Standing::Failed { reason: format!("agent b closed connection {number}") })
    };
    record.trials = (0..25).map(failed).collect();
    let shown = markdown(Language::English, &record);
    assert!(shown.contains("25 of 25 attempts failed.") && shown.contains("Not listed: 5 more."), "{shown}");
    assert_eq!(shown.matches("closed connection").count(), 20, "{shown}");
}
