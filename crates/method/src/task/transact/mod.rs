//! Knowledge of the task `transact`.

pub(crate) mod proof;
