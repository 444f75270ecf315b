//! Pairing over the wire, as `linerate hosts add --pair` does.

use super::{Raw, agent, answer, metric};
use linerate_control::pairing::{PairingCode, pair};
use linerate_control::{AgentError, Client};
use reqwest::Method;

fn code(text: &str) -> PairingCode {
    text.parse().expect("a code")
}

#[tokio::test]
async fn the_code_gives_the_agents_url() {
    let agent = agent(|options| options.pairing = Some(code("417-293"))).await;
    let (host, port) = (agent.url().host.clone(), agent.url().port);
    let wrong = pair(&host, port, &code("417-294")).await.expect_err("a wrong code");
    assert!(wrong.to_string().contains("the pairing code is wrong; 2 tries are left"), "{wrong}");
    let url = pair(&host, port, &code("417-293")).await.expect("paired");
    assert_eq!(url, *agent.url());
    Client::connect(&url).await.expect("the URL is good");
    let again = pair(&host, port, &code("417-293")).await.expect_err("it is used up");
    assert!(matches!(again, AgentError::Refused { .. }) && again.to_string().contains("used already"), "{again}");
}

#[tokio::test]
async fn an_agent_without_a_code_says_so_and_takes_no_more_than_a_message_from_strangers() {
    let agent = agent(|_| ()).await;
    let none = pair(&agent.url().host, agent.url().port, &code("417-293")).await.expect_err("no code");
    assert!(none.to_string().contains("linerate serve --pair"), "{none}");
    let raw = Raw::new(&agent);
    let path = "/v1/pair";
    let (status, _) = answer(raw.admitted(Method::POST, path).body(vec![b' '; 1_025])).await;
    assert_eq!(status, 413);
    for body in ["", "{}", r#"{"message":"x"}"#, r#"{"message":[256]}"#] {
        let (status, said) = answer(raw.admitted(Method::POST, path).body(body)).await;
        assert_eq!(status, 400, "{body}: {said}");
    }
    // No other route is open to strangers, whatever their path looks like.
    for path in ["/v1/pair/", "/v1/pair/x", "/v1/host", "/v1/pair/../host"] {
        let (status, said) = answer(raw.bare(Method::GET, path)).await;
        assert_eq!(status, 401, "{path}: {said}");
    }
    assert!(metric(&agent, "linerate_requests_turned_away_total").await >= 4);
}

#[tokio::test]
async fn nobody_there_is_said_so() {
    // No test is given a port below 1,024.
    let error = pair("127.0.0.1", 1, &code("417-293")).await.expect_err("nobody");
    assert!(matches!(error, AgentError::Unreachable { .. }), "{error:?}");
}
