//! What stands behind the question mark of an address: read, checked, and written again.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use linerate_model::{Limit, Text, text};
use linerate_report::{Language, said};
use linerate_store::{Query, State};

/// The fields of a query, in their order.
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// The fields of what stands behind the question mark.
    pub(crate) fn read(query: Option<&str>) -> Self {
        Self(form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// Every value of the field called `name`.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// The field called `name`, spaces around it taken off; empty if there is none.
    pub(crate) fn one(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.trim())
    }
}

/// An address on the same level: `page?name=value&...`, empty values left out.
pub(crate) fn address(page: &str, fields: &[(&str, &str)]) -> String {
    let kept = fields.iter().filter(|(_, value)| !value.is_empty());
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish();
    if query.is_empty() { page.to_owned() } else { format!("{page}?{query}") }
}

/// What the list is asked for, as it was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) text: String,
    pub(crate) kind: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) ended: String,
    pub(crate) limit: String,
    pub(crate) changed: String,
    /// From 1.
    pub(crate) page: usize,
}

/// Values of the field `ended`, what they ask for, and their words.
pub(crate) const ENDED: [(&str, &[State], &Text); 3] = [
    ("", &[], text!("view-all", "all")),
    ("finished", &[State::Finished], text!("view-finished", "finished")),
    (
        "unfinished",
        &[State::Running, State::Interrupted, State::Failed, State::Killed],
        text!("view-not-finished", "not finished"),
    ),
];

/// Values of the field `changed`, whether they ask for changed figures alone, and their words.
pub(crate) const CHANGED: [(&str, bool, &Text); 2] = [
    ("", false, text!("view-all", "all")),
    ("yes", true, text!("view-changed-by", "changed by more than {percent} %")),
];

impl Filter {
    /// The filter that the fields hold.
    pub(crate) fn read(fields: &Fields) -> Self {
        let typed = |name| fields.one(name).to_owned();
        Self {
            text: typed("text"),
            kind: typed("kind"),
            from: typed("from"),
            to: typed("to"),
            ended: typed("ended"),
            limit: typed("limit"),
            changed: typed("changed"),
            page: fields.one("page").parse().unwrap_or(1).max(1),
        }
    }

    /// Nothing is asked.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self { page: self.page, ..Self::default() }
    }

    /// The first page is asked for, of all.
    pub(crate) fn is_first(&self) -> bool {
        self.is_empty() && self.page == 1
    }

    /// The address of a page of what it asks for.
    pub(crate) fn address(&self, page: usize) -> String {
        let page = if page > 1 { page.to_string() } else { String::new() };
        let Self { text, kind, from, to, ended, limit, changed, .. } = self;
        let fields = [
            ("text", text),
            ("kind", kind),
            ("from", from),
            ("to", to),
            ("limit", limit),
            ("changed", changed),
            ("ended", ended),
            ("page", &page),
        ];
        address("./", &fields.map(|(name, value)| (name, value.as_str())))
    }

    /// Returns the query for the store, which has records of these kinds.
    ///
    /// # Errors
    /// A sentence about what was typed.
    pub(crate) fn query(&self, lang: Language, kinds: &[String]) -> Result<Query, String> {
        if !self.kind.is_empty() && !kinds.contains(&self.kind) {
            return Err(said!(
                lang,
                "view-error-kind",
                "The store has no record of the kind `{typed}`: choose a kind of the list",
                typed = self.kind
            ));
        }
        let ended = ENDED.iter().find(|(value, ..)| *value == self.ended);
        let (_, states, _) = ended.ok_or_else(|| {
            said!(
                lang,
                "view-error-state",
                "`{typed}` is not a state: choose finished or unfinished",
                typed = self.ended
            )
        })?;
        let limit = Limit::ALL.into_iter().find(|limit| limit.name() == self.limit);
        if limit.is_none() && !self.limit.is_empty() {
            return Err(said!(
                lang,
                "view-error-limit",
                "`{typed}` is not a limit: choose one of the list, as in wire",
                typed = self.limit
            ));
        }
        let changed = CHANGED.iter().find(|(value, ..)| *value == self.changed);
        let (_, changed, _) = changed.ok_or_else(|| {
            said!(
                lang,
                "view-error-changed",
                "`{typed}` is not a choice of changed figures: choose yes, or leave it out",
                typed = self.changed
            )
        })?;
        Ok(Query {
            limit,
            changed: *changed,
            kind: Some(self.kind.clone()).filter(|kind| !kind.is_empty()),
            from_unix_ns: day(lang, &self.from, 0)?,
            // The last day counts whole.
            until_unix_ns: day(lang, &self.to, 1)?,
            states: states.to_vec(),
            ..Query::text(&self.text)
                .map_err(|error| said!(lang, "message-in-english", "{text}", text = error.to_string()))?
        })
    }
}

/// When the day `later` days after the one typed begins (UTC), nanoseconds since 1970; none if nothing was typed.
fn day(lang: Language, typed: &str, later: i64) -> Result<Option<u64>, String> {
    if typed.is_empty() {
        return Ok(None);
    }
    let begins = typed.parse::<Date>().ok().and_then(|date| {
        let day = date.checked_add(jiff::Span::new().days(later)).ok()?;
        Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp().as_nanosecond())
    });
    let begins = begins.ok_or_else(|| {
        said!(lang, "view-error-day", "`{typed}` is not a day: write it like 2026-11-21", typed = typed)
    })?;
    // Before 1970 nothing was measured.
    Ok(Some(u64::try_from(begins.max(0)).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(query: &str) -> Filter {
        Filter::read(&Fields::read(Some(query)))
    }

    #[test]
    fn what_is_read_is_written_again() {
        let typed = filter(
            "text=a+%26+b%3Ci%3E&kind=stream&from=2026-11-01&to=2026-11-21&ended=finished&limit=wire&changed=yes&page=3&x=y",
        );
        assert_eq!((typed.text.as_str(), typed.page), ("a & b<i>", 3));
        let again = typed.address(3);
        assert_eq!(filter(again.split_once('?').expect("a query").1), typed);
        assert_eq!(filter("").address(1), "./");
        assert!(filter("page=7").is_empty() && !filter("text=x").is_empty() && !filter("changed=yes").is_empty());
        for broken in ["page=0", "page=-1", "page=99999999999999999999", "%ff=%", "&&=&"] {
            assert_eq!(filter(broken), Filter { page: 1, ..Filter::default() }, "{broken}");
        }
    }

    #[test]
    fn changed_figures_are_asked_for_with_yes() {
        assert!(filter("changed=yes&limit=wire").query(Language::English, &[]).expect("a query").changed);
        assert!(!filter("limit=wire").query(Language::English, &[]).expect("a query").changed);
    }

    #[test]
    fn days_are_whole_and_in_utc() {
        let query = filter("from=2026-11-21&to=2026-11-21").query(Language::English, &[]).expect("days");
        let noon = 1_795_262_400_000_000_000;
        let (from, until) = (query.from_unix_ns.expect("from"), query.until_unix_ns.expect("until"));
        assert!(from < noon && noon < until);
        assert_eq!(until - from, 86_400_000_000_000);
        assert_eq!(filter("from=0001-01-01").query(Language::English, &[]).expect("a day").from_unix_ns, Some(0));
        for broken in
            ["from=yesterday", "to=2026-13-01", "to=9999-12-31", "ended=maybe", "limit=kindness", "changed=no"]
        {
            assert!(filter(broken).query(Language::English, &[]).is_err(), "{broken}");
        }
    }
}
