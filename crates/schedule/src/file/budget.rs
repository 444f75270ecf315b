//! Budgets of bytes.

use linerate_units::ByteCount;
use std::str::FromStr;

/// Bytes that a mesh may move on a calendar day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Bytes a day.
    pub bytes: ByteCount,
    /// What the bytes are counted for.
    pub scope: BudgetScope,
}

/// What a budget is counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetScope {
    /// The mesh as a whole.
    Mesh,
    /// Each declared link apart, both directions together. Pairs that cross no declared link are not limited.
    Link,
}

/// A text that is no budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a budget; write it like \"100GB a day\", or \"20GB a day and link\" for each [[link]] apart")]
pub struct BudgetError(String);

impl FromStr for Budget {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let error = || BudgetError(text.to_owned());
        let (bytes, rest) = text.trim().split_once(" a day").ok_or_else(error)?;
        let scope = match rest.trim() {
            "" => BudgetScope::Mesh,
            "and link" => BudgetScope::Link,
            _ => return Err(error()),
        };
        Ok(Self { bytes: bytes.parse().map_err(|_| error())?, scope })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_a_day_and_perhaps_a_link() {
        let bytes = ByteCount::new(20_000_000_000);
        assert_eq!("20GB a day and link".parse(), Ok(Budget { bytes, scope: BudgetScope::Link }));
        assert_eq!("20 GB a day".parse(), Ok(Budget { bytes, scope: BudgetScope::Mesh }));
        for text in ["20GB", "much a day", "20GB a day and night", "20GB a week"] {
            assert_eq!(text.parse::<Budget>(), Err(BudgetError(text.to_owned())));
        }
    }
}
