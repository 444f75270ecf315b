//! Addresses of pages that show the subject of an alert.

use linerate_schedule::{Alert, Subject};
use reqwest::Url;

/// Address below which `linerate view` serves the pages of the fleet.
#[derive(Debug, Clone)]
pub struct PageLinks {
    base: Url,
}

impl PageLinks {
    /// Takes the address of the pages, for example `https://linerate.example.net/`.
    ///
    /// # Errors
    /// The text is no URL with a host. The message says why.
    pub fn new(base: &str) -> Result<Self, String> {
        let url = Url::parse(base).map_err(|error| error.to_string())?;
        if url.host().is_none() { Err("it has no host".to_owned()) } else { Ok(Self { base: url }) }
    }

    /// Returns the page of the alert's pair, or the matrix if it names more than a pair.
    pub(super) fn page(&self, alert: &Alert) -> Url {
        let path = self.base.path().trim_end_matches('/');
        let mut url = self.base.clone();
        match &alert.subject {
            Subject::Pair { from, to } => {
                url.set_path(&format!("{path}/fleet/pair"));
                url.query_pairs_mut().clear().append_pair("from", &from.0).append_pair("to", &to.0);
            }
            Subject::Host(_) | Subject::Link(_) | Subject::Mesh(_) => url.set_path(&format!("{path}/fleet")),
        }
        url
    }
}
