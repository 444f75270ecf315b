//! Studies: one quantity or a few in every cell that factors and levels make, imported or measured.
//!
//! A study is read from its files ([`StudyFile`]), its runs are planned and gathered from records ([`Measured`]), and
//! its report ([`StudyReport`]) holds what the numbers support: each finding with a test or a bound.
#![forbid(unsafe_code)]

mod design;
mod file;
mod finding;
mod findings;
mod report;
mod study;
mod translation;

pub use file::{HostCommand, Imported, Kept, Measured, NoValue, PlannedRun, StudyError, StudyFile};
pub use finding::{Evidence, Finding, FindingKind};
pub use findings::studied;
pub use report::{BadPivot, Pivot, csv, html, json, markdown, pictures, text};
pub use study::{
    ABOUT, Answer, CellLimit, Claim, Conclusion, Conditions, Design, Expected, Factor, FactorOf, Level, Measure,
    MeasurePair, Price, STUDY_SCHEMA, StatedAs, StatedValue, Study, StudyCell, StudyQuestion, StudyReport, Verdict,
};
pub use translation::{ConclusionTranslation, FactorTranslation, Translation};
