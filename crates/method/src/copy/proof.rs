//! The verdict of a copy put to the test: the same copy without the storage that was named, or without any where the path was.

use crate::counterproof::changed_name;
use linerate_model::{
    CopyExisting, CopyFrom, CopyInto, CopyTask, CopyTree, CopyVerify, CopyWay, Counterproof, Expects, Limit, Load,
    Measurement, PairPart, Task, Trial, message,
};

/// The trial that would test the verdict on the copies of `cell`; none where leaving storage out is inconclusive. Content of a
/// real folder cannot be made up, so what is read from one stays as it is. A copy that cannot be made again is not tested: the
/// copy with storage left out is compared with further copies like the first.
pub(crate) fn counterproof(cell: &Trial, result: &Measurement) -> Option<Trial> {
    let Task::Copy(task) = cell.task() else { return None };
    let stays = matches!(task.into, CopyInto::Folder(_) | CopyInto::Server(_));
    if stays && task.options.existing != CopyExisting::Replace {
        return None;
    }
    let made = task.trees().iter().all(|tree| matches!(tree, CopyTree::Made(_))) && task.from == CopyFrom::Files;
    let written = task.into != CopyInto::Discard;
    let (change, task, expects) = match result.verdict.leading() {
        Limit::StorageRead if made => {
            (message!("change-from-memory", "content from memory"), from_memory(task), Expects::Rise)
        }
        Limit::StorageWrite if written => {
            (message!("change-nothing-written", "nothing written"), discarded(task), Expects::Rise)
        }
        Limit::Wire | Limit::Shaper if made && written => (
            message!("change-neither", "content from memory and nothing written"),
            discarded(&from_memory(task)),
            Expects::Same,
        ),
        Limit::Wire | Limit::Shaper if made => {
            (message!("change-from-memory", "content from memory"), from_memory(task), Expects::Same)
        }
        Limit::Wire | Limit::Shaper if written => {
            (message!("change-nothing-written", "nothing written"), discarded(task), Expects::Same)
        }
        _ => return None,
    };
    Some(Trial {
        name: changed_name(&cell.name, &change),
        loads: vec![Load { task: Task::Copy(task), timing: cell.load().timing }],
        proves: Some(Counterproof {
            of: cell.name.clone(),
            change,
            part: PairPart::Changed,
            expects,
            otherwise: None,
            contrary: None,
            only_excludes: false,
        }),
    })
}

fn from_memory(task: &CopyTask) -> CopyTask {
    // What the first copy left in a folder of the user's stays.
    let into = if task.into == CopyInto::Discard { CopyInto::Discard } else { CopyInto::Scratch };
    let mut changed = CopyTask { from: CopyFrom::Memory, into, ..task.clone() };
    changed.options.existing = CopyExisting::Refuse;
    changed
}

fn discarded(task: &CopyTask) -> CopyTask {
    let mut changed = CopyTask { into: CopyInto::Discard, ..task.clone() };
    changed.options.existing = CopyExisting::Refuse;
    if changed.options.verify == CopyVerify::ReadBack {
        changed.options.verify = if task.way == CopyWay::Path { CopyVerify::None } else { CopyVerify::Received };
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::tests::{cell, made, plan, side};
    use crate::proof::{Pairs, settle};
    use crate::results::measured;
    use linerate_model::{Confidence, CopyParts, CopyStage, Repeats, Verdict};

    /// Three copies.
    fn result(cell: &Trial, limit: Limit, seconds: u64) -> Measurement {
        let runs = [(); 3].map(|()| made(cell, of(seconds)));
        let results = measured(&[cell], Repeats::Times(3), &[], &[], &runs);
        let verdict = Verdict::new(limit, Confidence::Medium, Vec::new());
        Measurement { verdict, ..results.into_iter().next().expect("a run") }
    }

    /// A megabyte in so many seconds.
    fn of(seconds: u64) -> CopyParts {
        let part = |host: &str| vec![crate::copy::tests::part(host, vec![side(seconds, 1_000, CopyStage::Write)])];
        CopyParts { sources: part("a"), destinations: part("b"), servers: Vec::new() }
    }

    fn copy_of(cell: &Trial) -> &CopyTask {
        match cell.task() {
            Task::Copy(task) => task,
            other => panic!("no copy: {other:?}"),
        }
    }

    fn of_made_tree() -> Trial {
        cell(CopyTask { tree: "like:mail".parse().expect("a tree"), ..plan(&["b"]) })
    }

    fn test_of(cell: &Trial, limit: Limit) -> Option<(CopyTask, Expects)> {
        let test = counterproof(cell, &result(cell, limit, 4))?;
        let expects = test.proves.as_ref().map(|test| test.expects)?;
        Some((copy_of(&test).clone(), expects))
    }

    #[test]
    fn the_storage_that_was_named_is_left_out() {
        let cell = of_made_tree();
        let (read, _) = test_of(&cell, Limit::StorageRead).expect("a test");
        assert_eq!((read.from, read.into), (CopyFrom::Memory, CopyInto::Scratch));
        let (written, _) = test_of(&cell, Limit::StorageWrite).expect("a test");
        assert_eq!((written.from, written.into), (CopyFrom::Files, CopyInto::Discard));
        let (path, expects) = test_of(&cell, Limit::Shaper).expect("a test");
        assert_eq!((path.from, path.into), (CopyFrom::Memory, CopyInto::Discard));
        assert_eq!((expects, test_of(&cell, Limit::SenderCpu)), (Expects::Same, None));
        // A copy that stays cannot be made again, unless it replaces the first.
        let stays = CopyTask { into: CopyInto::Folder("/kept".into()), ..copy_of(&cell).clone() };
        let mut replaced = stays.clone();
        replaced.options.existing = CopyExisting::Replace;
        let of = |task| test_of(&crate::copy::tests::cell(task), Limit::StorageWrite);
        assert!(of(stays).is_none() && of(replaced).is_some());
        // A real folder cannot be made up.
        assert_eq!(test_of(&crate::copy::tests::cell(plan(&["b"])), Limit::StorageRead), None);
    }

    #[test]
    fn a_faster_copy_without_the_storage_raises_confidence() {
        for (limit, seconds, confidence, held) in [
            (Limit::StorageWrite, 1, Confidence::High, Some(true)),
            (Limit::StorageWrite, 4, Confidence::Low, Some(false)),
            (Limit::Wire, 4, Confidence::High, Some(true)),
            (Limit::Wire, 1, Confidence::Low, Some(false)),
        ] {
            let cell = of_made_tree();
            let before = result(&cell, limit, 4);
            let test = counterproof(&cell, &before).expect("a test");
            let changed = result(&test, Limit::CannotTell, seconds);
            let pairs = Pairs { test: test.proves.expect("it tests a verdict"), unchanged: before.clone(), changed };
            let mut results = [before];
            settle(&[pairs], &mut results);
            let verdict = &results[0].verdict;
            assert_eq!((verdict.confidence, verdict.proofs[0].held), (confidence, held), "{verdict:?}");
            assert!(verdict.evidence[0].contains("instead of 2 Mbit/s"), "{verdict:?}");
        }
    }
}
