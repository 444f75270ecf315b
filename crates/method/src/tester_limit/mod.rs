//! The tester limit of a result: what the same hosts reached with the device bypassed, and the caveats of that figure.

mod age;

pub use age::in_words as age_in_words;

use age::OLD;
use linerate_model::{
    Bypass, Calibrated, CalibratedSubject, Caveat, CaveatKind, Summary, TaskKind, TesterLimit, message,
};

/// Name of the calibration of NFS operations, which holds for every mix and load.
pub const TESTER_LIMIT: &str = "nfs getattr, tester alone";

/// Returns what the tester reached without the device in the measurement of the same name.
pub(crate) fn tester_limit(
    name: &str,
    task: TaskKind,
    main: &Summary,
    calibrated: &[Calibrated],
) -> Option<TesterLimit> {
    let named = |name: &str| {
        let is = |known: &&Calibrated| matches!(&known.subject, CalibratedSubject::Result(of) if of == name);
        calibrated.iter().find(is)
    };
    let mut calibration = named(name);
    if calibration.is_none() && task == TaskKind::Nfs {
        // The tester's highest rate of NFS operations applies to every mix and load.
        calibration = named(TESTER_LIMIT);
    }
    let Calibrated { record, bypass, age, interleaved, reached, .. } = calibration?.clone();
    let share = if reached.median > 0.0 { main.median / reached.median } else { 0.0 };
    Some(TesterLimit { record, bypass, age, interleaved, reached, share })
}

/// Returns the caveats of a result of `task` that come from the tester limit it is compared with.
pub(crate) fn caveats(task: TaskKind, limit: &TesterLimit) -> Vec<Caveat> {
    let mut all = Vec::new();
    if limit.age >= OLD {
        let text = message!(
            "caveat-old-calibration",
            "the tester limit was measured {age} before this run, and hosts change: measure it again with \
             `linerate calibrate`",
            age = age_in_words(limit.age)
        );
        all.push(Caveat::new(CaveatKind::OldCalibration, text));
    }
    // Of NFS operations it is measured so on purpose.
    if limit.bypass == Bypass::Loopback && task != TaskKind::Nfs {
        let text = message!(
            "caveat-loopback-calibration",
            "the tester limit is an upper estimate, from the loopback of each host: their interfaces took no \
             part; join the hosts by a cable and measure it with `linerate calibrate`"
        );
        all.push(Caveat::new(CaveatKind::LoopbackCalibration, text));
    }
    all
}
