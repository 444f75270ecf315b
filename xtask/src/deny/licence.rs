//! SPDX licence expressions (SPDX 2.3 annex D), and the `/` that older packages write for OR.

/// Returns whether a package under `expression` may be used if these licences are allowed. Returns `None` if the text
/// is not an expression.
pub(super) fn is_allowed(expression: &str, allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = Words { words: spaced.split_whitespace().collect(), at: 0, allowed };
    let is_allowed = words.any_of()?;
    (words.at == words.words.len()).then_some(is_allowed)
}

/// Parser of an expression.
struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
    allowed: &'a dyn Fn(&str) -> bool,
}

impl Words<'_> {
    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }

    /// Parses alternatives separated by OR, which binds less than AND.
    fn any_of(&mut self) -> Option<bool> {
        let mut allowed = self.all_of()?;
        while self.takes("OR") {
            allowed |= self.all_of()?;
        }
        Some(allowed)
    }

    fn all_of(&mut self) -> Option<bool> {
        let mut allowed = self.term()?;
        while self.takes("AND") {
            allowed &= self.term()?;
        }
        Some(allowed)
    }

    /// Parses a licence, with or without an exception, or an expression in parentheses.
    fn term(&mut self) -> Option<bool> {
        if self.takes("(") {
            let allowed = self.any_of()?;
            return self.takes(")").then_some(allowed);
        }
        let mut name = self.name()?.to_owned();
        if self.takes("WITH") {
            name = format!("{name} WITH {}", self.name()?);
        }
        Some((self.allowed)(&name))
    }

    fn name(&mut self) -> Option<&str> {
        let name = self.words.get(self.at).filter(|name| !matches!(**name, "(" | ")" | "AND" | "OR" | "WITH"))?;
        self.at += 1;
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_follow_spdx() {
        let allowed = |licence: &str| matches!(licence, "MIT" | "Apache-2.0" | "Apache-2.0 WITH LLVM-exception");
        for (expression, expected) in [
            ("MIT", Some(true)),
            ("GPL-2.0-only", Some(false)),
            ("Apache-2.0 OR GPL-2.0-only", Some(true)),
            ("MIT/Apache-2.0", Some(true)),
            ("MIT AND ISC", Some(false)),
            ("(MIT OR ISC) AND Apache-2.0", Some(true)),
            ("ISC OR MIT AND ISC", Some(false)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("MIT WITH LLVM-exception", Some(false)),
            ("MIT OR", None),
            ("(MIT", None),
            ("MIT ISC", None),
            ("", None),
        ] {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
    }
}
