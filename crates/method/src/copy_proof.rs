//! The verdict of a copy put to the test: the same copy without the storage that was named, or without any where the path was.

use crate::copy::found;
use crate::proof::{rises, stays, take};
use crate::verdict::bits;
use linerate_model::{
    CopyExisting, CopyFrom, CopyInto, CopyOutcome, CopyPlan, CopyTest, CopyTree, CopyVerify, CopyWay, Expects, Host,
    Limit, Proof,
};

/// What would test the verdict on copies of `plan`; none where leaving storage out cannot tell. Content of a real folder cannot be made
/// up, so what is read from one stays as it is.
pub fn counterproof(plan: &CopyPlan, found: &CopyOutcome) -> Option<CopyTest> {
    let made = matches!(plan.tree, CopyTree::Made(_)) && plan.from == CopyFrom::Files;
    let written = plan.into != CopyInto::Discard;
    let (change, plan, expects) = match found.verdict.as_ref()?.limit {
        Limit::StorageRead if made => ("content from memory", from_memory(plan), Expects::Rise),
        Limit::StorageWrite if written => ("nothing written", discarded(plan), Expects::Rise),
        Limit::Wire | Limit::Shaper if made && written => {
            ("content from memory and nothing written", discarded(&from_memory(plan)), Expects::Same)
        }
        Limit::Wire | Limit::Shaper if made => ("content from memory", from_memory(plan), Expects::Same),
        Limit::Wire | Limit::Shaper if written => ("nothing written", discarded(plan), Expects::Same),
        _ => return None,
    };
    Some(CopyTest { change: change.to_owned(), plan, expects, trials: Vec::new() })
}

fn from_memory(plan: &CopyPlan) -> CopyPlan {
    // What the first copy left in a folder of the user's stays.
    let into = if plan.into == CopyInto::Discard { CopyInto::Discard } else { CopyInto::Scratch };
    let mut changed = CopyPlan { from: CopyFrom::Memory, into, ..plan.clone() };
    changed.options.existing = CopyExisting::Refuse;
    changed
}

fn discarded(plan: &CopyPlan) -> CopyPlan {
    let mut changed = CopyPlan { into: CopyInto::Discard, ..plan.clone() };
    changed.options.existing = CopyExisting::Refuse;
    if changed.options.verify == CopyVerify::ReadBack {
        changed.options.verify = if plan.way == CopyWay::Path { CopyVerify::None } else { CopyVerify::Received };
    }
    changed
}

/// Settles the verdict that `test` was of.
pub(crate) fn settle(outcome: &mut CopyOutcome, hosts: &[Host], test: &CopyTest) {
    let changed = found(&test.plan, hosts, &test.trials);
    let (Some(verdict), Some(changed)) = (&mut outcome.verdict, changed) else { return };
    let (before, after) = (outcome.bytes_per_s * 8.0, changed.bytes_per_s * 8.0);
    let ratio = after / before.max(f64::MIN_POSITIVE);
    let held = match (test.expects, &changed.verdict) {
        (Expects::Rise, Some(changed)) => rises(ratio, changed),
        (Expects::Same, _) => stays(ratio),
        _ => None,
    };
    let said = format!("With {} the copy went at {} instead of {}", test.change, bits(after), bits(before));
    take(verdict, Proof { by: test.change.clone(), before, after, held }, &said, None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::tests::{plan, side};
    use linerate_model::{Confidence, CopyHalfResult, CopyPart, CopyStage, CopyTrial, Observation, Verdict};

    fn outcome(limit: Limit, bytes_per_s: f64) -> CopyOutcome {
        let verdict = Some(Verdict::new(limit, Confidence::Medium, Vec::new()));
        CopyOutcome { bytes_per_s, verdict, ..CopyOutcome::default() }
    }

    fn of_made_tree() -> CopyPlan {
        CopyPlan { tree: "like:mail".parse().expect("a tree"), ..plan(&["b"]) }
    }

    #[test]
    fn what_was_named_is_left_out() {
        let plan = of_made_tree();
        let test = |limit| counterproof(&plan, &outcome(limit, 1e6));
        let read = test(Limit::StorageRead).expect("a test").plan;
        assert_eq!((read.from, read.into), (CopyFrom::Memory, CopyInto::Scratch));
        let written = test(Limit::StorageWrite).expect("a test").plan;
        assert_eq!((written.from, written.into), (CopyFrom::Files, CopyInto::Discard));
        let path = test(Limit::Shaper).expect("a test");
        assert_eq!((path.plan.from, path.plan.into), (CopyFrom::Memory, CopyInto::Discard));
        assert_eq!((path.expects, test(Limit::SenderCpu)), (Expects::Same, None));
        // A real folder cannot be made up.
        assert_eq!(counterproof(&super::super::copy::tests::plan(&["b"]), &outcome(Limit::StorageRead, 1e6)), None);
    }

    #[test]
    fn a_copy_that_goes_faster_without_its_storage_makes_the_verdict_surer() {
        let of = |seconds| {
            let counted = CopyHalfResult {
                started_unix_ns: 1,
                sides: vec![side(seconds, 1_000, CopyStage::Write)],
                faults: Vec::new(),
                faults_total: 0,
                observation: Observation::default(),
                caveats: Vec::new(),
            };
            let part = |host: &str| vec![CopyPart { host: host.into(), counted: counted.clone() }];
            CopyTrial { sources: part("a"), destinations: part("b"), servers: Vec::new() }
        };
        for (limit, seconds, confidence, held) in [
            (Limit::StorageWrite, 1, Confidence::High, Some(true)),
            (Limit::StorageWrite, 4, Confidence::Low, Some(false)),
            (Limit::Wire, 4, Confidence::High, Some(true)),
            (Limit::Wire, 1, Confidence::Low, Some(false)),
        ] {
            // A megabyte in four seconds.
            let mut outcome = outcome(limit, 250e3);
            let mut test = counterproof(&of_made_tree(), &outcome).expect("a test");
            test.trials = vec![of(seconds)];
            settle(&mut outcome, &[], &test);
            let verdict = outcome.verdict.expect("a verdict");
            assert_eq!((verdict.confidence, verdict.proofs[0].held), (confidence, held), "{verdict:?}");
            assert!(verdict.evidence[0].contains("instead of 2 Mbit/s"), "{verdict:?}");
        }
    }
}
