//! Knowledge of the task `stream`.

pub(crate) mod proof;
