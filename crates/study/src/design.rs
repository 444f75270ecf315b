//! The order of a study's runs in sentences.

use crate::study::{Design, Factor};
use linerate_report::parts::wording::{in_a_row, listed};
use linerate_report::{Language, said};

impl Design {
    /// Describes the order in sentences.
    pub(crate) fn text(&self, lang: Language, factors: &[Factor]) -> String {
        let repeats = u64::from(self.repeats);
        let mut sentences = vec![match self.seed {
            Some(seed) if self.repeats == 1 => said!(
                lang,
                "study-design-random-once",
                "Each cell was measured once, in an order by chance (seed {seed}).",
                seed = seed.to_string()
            ),
            Some(seed) => said!(
                lang,
                "study-design-random",
                "Each cell was measured {repeats} times, in blocks that hold each cell once in an order by chance (seed {seed}).",
                repeats = repeats,
                seed = seed.to_string()
            ),
            None => said!(
                lang,
                "study-design-listed",
                if repeats == 1 {
                    "Each cell was measured once, in the order of the levels."
                } else {
                    "Each cell was measured {repeats} times, in the order of the levels."
                },
                repeats = repeats
            ),
        }];
        let (built, set) = (titles(lang, factors, &self.built), titles(lang, factors, &self.set_by_person));
        sentences.extend(built.map(|factors| {
            said!(
                lang,
                "study-design-lab",
                "For each state of {factors} the lab was built anew once in a block.",
                factors = factors
            )
        }));
        sentences.extend(set.map(|factors| {
            said!(
                lang,
                "study-design-person",
                "A person set {factors}, each state once for all its repeats (a split-plot design): the spread of the \
                 repeats does not hold what setting it again would change.",
                factors = factors
            )
        }));
        in_a_row(&sentences)
    }
}

/// Lists the titles of factors that have several levels; `None` if there are none.
fn titles(lang: Language, factors: &[Factor], of: &[usize]) -> Option<String> {
    let several = of.iter().map(|factor| &factors[*factor]).filter(|factor| factor.levels.len() > 1);
    let titles: Vec<String> = several.map(|factor| factor.title.clone()).collect();
    (!titles.is_empty()).then(|| listed(lang, &titles))
}
