//! Users that a reverse proxy has logged in.

use crate::http::Answer;
use crate::place::{TestView, stream_record};
use linerate_report::Language;
use linerate_store::StoreError;
use linerate_view::TrustedProxy;

fn behind(address: &str, viewers: &[&str]) -> TestView {
    let addresses = vec![address.parse().expect("an address")];
    let viewers = viewers.iter().map(|name| (*name).to_owned()).collect();
    let proxy = TrustedProxy::new("X-Forwarded-User", addresses, viewers, vec!["olga".to_owned()]).expect("a header");
    let place = TestView::behind(Language::English, Some(proxy));
    place.keep(&stream_record("run", 1, &[941_000_000]));
    place
}

/// Sends a request with these header lines, as a proxy passes it on.
fn asked(place: &TestView, request: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    Answer::read(&place.send(&format!(
        "{request} HTTP/1.1\r\nHost: linerate.example\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )))
}

fn token(page: &str) -> &str {
    let rest = page.split_once("name=\"token\" value=\"").expect("a token").1;
    rest.split_once('"').expect("its end").0
}

#[test]
fn proxy_user_needs_no_key() {
    let place = behind("127.0.0.1", &[]);
    let vera = "X-Forwarded-User: vera\r\n";
    for page in ["/", "/record?id=run", "/fleet", "/fleet/changes", "/fleet/sites", "/style.css", "/fleet/matrix.json"]
    {
        assert_eq!(asked(&place, &format!("GET {page}"), vera, "").status, 200, "{page}");
        assert_eq!(asked(&place, &format!("GET {page}"), "", "").status, 403, "{page}: without a login");
    }
    assert_eq!(place.get("").status, 200, "the key still opens");
}

#[test]
fn forged_login_is_refused() {
    // The proxy is elsewhere, so that the header comes from a stranger.
    let place = behind("192.0.2.1", &[]);
    for headers in ["X-Forwarded-User: olga\r\n", "x-forwarded-user: olga\r\n"] {
        for page in ["/", "/delete?id=run", "/fleet"] {
            let answer = asked(&place, &format!("GET {page}"), headers, "");
            assert_eq!(answer.status, 403, "{page}");
            assert!(answer.body.contains("127.0.0.1") && !answer.body.contains("941"), "{}", answer.body);
        }
    }
    let with_key = format!("GET /{}/", place.key());
    assert_eq!(asked(&place, &with_key, "X-Forwarded-User: olga\r\n", "").status, 403, "nor with the key");
    assert_eq!(asked(&place, "GET /", "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-User: olga\r\n", "").status, 403);
}

#[test]
fn header_means_nothing_without_a_proxy() {
    let place = TestView::new();
    place.keep(&stream_record("run", 1, &[941_000_000]));
    assert_eq!(asked(&place, "GET /", "X-Forwarded-User: olga\r\n", "").status, 403);
    let delete = format!("GET /{}/delete?id=run", place.key());
    assert_eq!(asked(&place, &delete, "X-Forwarded-User: olga\r\n", "").status, 403, "the key only reads");
}

#[test]
fn two_names_and_unknown_users_are_refused() {
    let place = behind("127.0.0.1", &["vera"]);
    for headers in [
        "X-Forwarded-User: vera\r\nX-Forwarded-User: olga\r\n",
        "X-Forwarded-User: vera, olga\r\n",
        "X-Forwarded-User: \r\n",
        "X-Forwarded-User: mallory\r\n",
    ] {
        let answer = asked(&place, "GET /", headers, "");
        assert_eq!(answer.status, 403, "{headers}");
    }
    assert_eq!(asked(&place, "GET /", "X-Forwarded-User: vera\r\n", "").status, 200);
}

#[test]
fn only_operators_delete() {
    let place = behind("127.0.0.1", &[]);
    let vera = "X-Forwarded-User: vera\r\n";
    let olga = "X-Forwarded-User: olga\r\n";
    assert!(!asked(&place, "GET /record?id=run", vera, "").body.contains("delete?id=run"));
    assert!(asked(&place, "GET /record?id=run", olga, "").body.contains("delete?id=run"));
    assert_eq!(asked(&place, "GET /delete?id=run", vera, "").status, 403);
    let form = asked(&place, "GET /delete?id=run", olga, "");
    assert_eq!(form.status, 200);
    let body = format!("id=run&token={}", token(&form.body));
    assert_eq!(asked(&place, "POST /delete", vera, &body).status, 403, "a viewer with the token");
    for forged in ["id=run", "id=run&token=", "id=run&token=00000000000000000000000000000000"] {
        assert_eq!(asked(&place, "POST /delete", olga, forged).status, 403, "a form of another site: {forged}");
    }
    let by_key = format!("POST /{}/delete", place.key());
    assert_eq!(asked(&place, &by_key, "", &body).status, 403, "the key only reads");
    assert!(place.store.load("run").is_ok());

    let deleted = asked(&place, "POST /delete", olga, &body);
    assert_eq!((deleted.status, deleted.header("location")), (303, Some("./")));
    assert!(matches!(place.store.load("run"), Err(StoreError::Unknown { .. })));
    assert_eq!(asked(&place, "POST /delete", olga, &body).status, 404, "it is gone");
}
