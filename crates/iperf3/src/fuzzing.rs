//! Entry points for fuzzing: JSON texts of servers and of clients, and public keys.

use crate::login::{Login, Padding, public_key};
use crate::message;
use crate::results::TestResults;
use crate::server::fuzzing::read_request;
use linerate_model::{Iperf3Login, Password};

/// Reads results with their length before them. The first byte is the number of flows.
pub fn text(bytes: &[u8]) {
    let Some((&flows, bytes)) = bytes.split_first() else { return };
    let Some((head, text)) = bytes.split_first_chunk() else { return };
    if let Ok(length) = message::length(*head, message::LONGEST) {
        assert!((1..=message::LONGEST as usize).contains(&length));
    }
    let Ok(value) = message::decode(text) else { return };
    let flows = usize::from(flows);
    if let Ok(results) = TestResults::decode(&value, flows) {
        assert_eq!(results.flows.len(), flows);
        assert_eq!(TestResults::decode(&results.encode(), flows).map(|copy| copy.flows.len()), Ok(flows));
    }
}

/// Reads the parameters of a test, and checks them against limits.
pub fn parameters(bytes: &[u8]) {
    if let Ok(value) = message::decode(bytes) {
        read_request(&value);
    }
}

/// Reads a public key, and encrypts a login with it.
pub fn key(bytes: &[u8]) {
    let Ok(public_key) = public_key(&String::from_utf8_lossy(bytes)) else { return };
    let login = Iperf3Login { user: "ann".to_owned(), public_key };
    let login = Login::check(&login, Some(&Password("secret".to_owned()))).expect("the written key is read again");
    for padding in [Padding::Oaep, Padding::Pkcs1v15] {
        login.token(padding, 0).expect("it fits");
    }
}
