//! Knowledge of the task `rpc`.

pub(crate) mod proof;
