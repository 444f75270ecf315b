//! Mixes of NFS operations: the built-in ones, and what any must satisfy.

use crate::{IoSizes, NfsMix, NfsOperation};
use NfsOperation::{
    Access, Commit, Create, Fsinfo, Fsstat, Getattr, Lookup, Mkdir, Null, Read, Readdir, Readdirplus, Readlink, Remove,
    Rename, Rmdir, Setattr, Symlink, Write,
};
use std::collections::BTreeMap;

/// Percentages add up to 100 within this.
const TOLERANCE: f64 = 0.1;

/// A mix as a table: its name, the sizes of its reads and writes, and percent by operation.
type Table = (&'static str, IoSizes, &'static [(NfsOperation, f64)]);

const BUILT_IN: [Table; 7] = [
    // The mix of the LADDIS benchmark (SFS 1.x). It was written for NFS version 2; each operation is mapped onto version 3's
    // of the same name (STATFS onto FSSTAT). Version 2 knows no COMMIT: its writes are stable when they are answered, and
    // so are these (see `NfsMix::commits`).
    (
        "laddis-like",
        IoSizes::Laddis,
        &[
            (Lookup, 34.0),
            (Read, 22.0),
            (Write, 15.0),
            (Getattr, 13.0),
            (Readlink, 8.0),
            (Readdir, 3.0),
            (Create, 2.0),
            (Remove, 1.0),
            (Setattr, 1.0),
            (Fsstat, 1.0),
        ],
    ),
    // SFS97's mix for NFS version 3.
    (
        "sfs97-like",
        IoSizes::Laddis,
        &[
            (Lookup, 27.0),
            (Read, 18.0),
            (Getattr, 11.0),
            (Write, 9.0),
            (Readdirplus, 9.0),
            (Access, 7.0),
            (Readlink, 7.0),
            (Commit, 5.0),
            (Readdir, 2.0),
            (Create, 1.0),
            (Remove, 1.0),
            (Fsstat, 1.0),
            (Setattr, 1.0),
            (Fsinfo, 1.0),
        ],
    ),
    ("read", IoSizes::Whole, &[(Read, 100.0)]),
    // As clients write: to the server's memory, with a COMMIT after many.
    ("write", IoSizes::Whole, &[(Write, 99.0), (Commit, 1.0)]),
    // Names and attributes only, and as many made as removed.
    (
        "metadata",
        IoSizes::Laddis,
        &[
            (Getattr, 25.0),
            (Lookup, 25.0),
            (Access, 15.0),
            (Readdirplus, 7.0),
            (Remove, 7.0),
            (Create, 6.0),
            (Setattr, 5.0),
            (Readdir, 3.0),
            (Mkdir, 2.0),
            (Rmdir, 2.0),
            (Rename, 2.0),
            (Symlink, 1.0),
        ],
    ),
    ("null", IoSizes::Laddis, &[(Null, 100.0)]),
    ("getattr", IoSizes::Laddis, &[(Getattr, 100.0)]),
];

/// Why a mix cannot be run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MixError {
    /// There is no built-in mix of this name.
    #[error("there is no mix `{0}`; choose one of {list}, or give a table of percentages", list = NfsMix::names().join(", "))]
    Unknown(String),
    /// A percentage is not one.
    #[error("mix `{mix}`: {percent} percent of {operation}; give each operation 0 to 100")]
    Percent {
        /// The mix.
        mix: String,
        /// The operation.
        operation: NfsOperation,
        /// What it was given.
        percent: f64,
    },
    /// They do not add up.
    #[error("mix `{mix}`: its percentages add up to {sum}; make them 100 (within 0.1)")]
    Sum {
        /// The mix.
        mix: String,
        /// Their sum.
        sum: f64,
    },
    /// More names are removed than made.
    #[error(
        "mix `{mix}`: {removing} takes {removed} percent, and what it removes is made by {making}, with {made}; \
             make it as much or more"
    )]
    Removes {
        /// The mix.
        mix: String,
        /// The operation that removes.
        removing: NfsOperation,
        /// Its percent.
        removed: f64,
        /// The operations that make what it removes.
        making: &'static str,
        /// Their percent.
        made: f64,
    },
}

impl NfsMix {
    /// The names of the built-in mixes.
    pub fn names() -> Vec<&'static str> {
        BUILT_IN.iter().map(|(name, ..)| *name).collect()
    }

    /// A built-in mix.
    pub fn named(name: &str) -> Result<Self, MixError> {
        let (name, sizes, percent) = BUILT_IN
            .iter()
            .find(|(built_in, ..)| *built_in == name)
            .ok_or_else(|| MixError::Unknown(name.to_owned()))?;
        Ok(Self { name: (*name).to_owned(), percent: percent.iter().copied().collect(), sizes: *sizes })
    }

    /// A mix of one's own, checked.
    pub fn new(name: &str, percent: BTreeMap<NfsOperation, f64>, sizes: IoSizes) -> Result<Self, MixError> {
        let mix = Self { name: name.to_owned(), percent, sizes };
        mix.check()?;
        Ok(mix)
    }

    /// Whether it can be run: percentages that add up to 100, and no more names removed than made.
    pub fn check(&self) -> Result<(), MixError> {
        let mix = || self.name.clone();
        for (operation, percent) in &self.percent {
            if !(0.0..=100.0).contains(percent) {
                return Err(MixError::Percent { mix: mix(), operation: *operation, percent: *percent });
            }
        }
        let sum: f64 = self.percent.values().sum();
        if (sum - 100.0).abs() > TOLERANCE {
            return Err(MixError::Sum { mix: mix(), sum });
        }
        let pairs = [
            (Remove, "create and symlink", self.percent(Create) + self.percent(Symlink)),
            (Rmdir, "mkdir", self.percent(Mkdir)),
        ];
        for (removing, making, made) in pairs {
            let removed = self.percent(removing);
            if removed > made {
                return Err(MixError::Removes { mix: mix(), removing, removed, making, made });
            }
        }
        Ok(())
    }

    /// Percent of all operations that are `operation`.
    pub fn percent(&self, operation: NfsOperation) -> f64 {
        self.percent.get(&operation).copied().unwrap_or_default()
    }

    /// Writes go to the server's memory and are committed later; otherwise each is stable when it is answered.
    pub fn commits(&self) -> bool {
        self.percent(Commit) > 0.0
    }

    /// Its operations read or write data, so that files must have some.
    pub fn moves_data(&self) -> bool {
        self.percent(Read) > 0.0 || self.percent(Write) > 0.0
    }

    /// Any of its operations works on files.
    pub fn needs_files(&self) -> bool {
        self.percent.iter().any(|(operation, percent)| *operation != Null && *percent > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_mix_can_be_run() {
        for name in NfsMix::names() {
            let mix = NfsMix::named(name).expect("it is built in");
            mix.check().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(mix.percent.values().sum::<f64>(), 100.0, "{name}");
        }
        let error = NfsMix::named("laddis").expect_err("that is not its name").to_string();
        assert!(error.contains("laddis-like, sfs97-like"), "{error}");
    }

    #[test]
    fn what_cannot_be_run_is_said() {
        for (percent, needle) in [
            (vec![(Read, 50.0)], "add up to 50"),
            (vec![(Read, 100.2)], "100.2 percent of read"),
            (vec![(Read, f64::NAN)], "NaN percent of read"),
            (vec![(Read, 110.0), (Write, -10.0)], "percent of read"),
            (vec![(Getattr, 90.0), (Create, 4.0), (Remove, 6.0)], "create and symlink, with 4"),
            (vec![(Getattr, 90.0), (Create, 4.0), (Rmdir, 6.0)], "made by mkdir, with 0"),
        ] {
            let error = NfsMix::new("mine", percent.into_iter().collect(), IoSizes::Laddis).expect_err(needle);
            assert!(error.to_string().contains(needle), "{error}");
        }
        let within = BTreeMap::from([(Read, 66.7), (Write, 33.33)]);
        NfsMix::new("mine", within, IoSizes::Whole).expect("100.03 is near enough");
    }
}
