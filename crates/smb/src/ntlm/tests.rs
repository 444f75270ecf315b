//! The examples of MS-NLMP section 4.2.4, and messages of servers that are made up.

use super::*;

fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("digits");
    digits.as_chunks().0.iter().map(byte).collect()
}

/// MS-NLMP 4.2.1: what all examples share.
const SERVER_CHALLENGE: [u8; 8] = 0x0123_4567_89ab_cdef_u64.to_be_bytes();
const CLIENT_CHALLENGE: [u8; 8] = [0xaa; 8];
const RANDOM_SESSION_KEY: [u8; 16] = [0x55; 16];

fn credentials() -> Credentials {
    Credentials::parse("Domain\\User", "Password").expect("a user")
}

/// MS-NLMP 4.2.4: the names of the domain and of the server, and the end.
fn target_info() -> Vec<u8> {
    hex("02000c00 44006f006d00610069006e00 01000c00 530065007200760065007200 00000000")
}

/// MS-NLMP 4.2.4.3, CHALLENGE_MESSAGE.
fn challenge() -> Vec<u8> {
    let mut message = hex("4e544c4d53535000 02000000 0c000c0038000000 33828ae2 0123456789abcdef 0000000000000000 \
         2400240044000000 060070170000000f 530065007200760065007200");
    message.extend(target_info());
    message
}

fn chosen() -> Chosen {
    Chosen { challenge: CLIENT_CHALLENGE, session_key: RANDOM_SESSION_KEY, time: 0 }
}

fn session() -> SessionKey {
    SessionKey { key: RANDOM_SESSION_KEY, exchanged: true }
}

#[test]
fn response_key_is_that_of_ms_nlmp_4_2_4_1_1() {
    assert_eq!(credentials().response_key()[..], hex("0c868a403bfd7a93a3001ef22ef02e3f"));
}

#[test]
fn responses_and_keys_are_those_of_ms_nlmp_4_2_4_2() {
    let key = credentials().response_key();
    let response = Response::new(&key, &SERVER_CHALLENGE, &CLIENT_CHALLENGE, 0, &target_info());
    assert_eq!(response.bytes[..16], hex("68cd0ab851e51c96aabc927bebef6a1c"), "4.2.4.2.2");
    assert_eq!(response.base_key[..], hex("8de40ccadbc14a82f15cb0ad0de95ca3"), "4.2.4.1.2");
    assert_eq!(
        lm_response(&key, &SERVER_CHALLENGE, &CLIENT_CHALLENGE)[..],
        hex("86c35097ac9cec102554764a57cccc19 aaaaaaaaaaaaaaaa"),
        "4.2.4.2.1"
    );
    assert_eq!(rc4(&response.base_key, RANDOM_SESSION_KEY)[..], hex("c5dad2544fc9799094ce1ce90bc9d03e"), "4.2.4.2.3");
}

#[test]
fn keys_and_signature_are_those_of_ms_nlmp_4_2_4_4() {
    let session = session();
    let sealing = session.derived(Side::Client, "seal");
    assert_eq!(sealing[..], hex("59f600973cc4960a25480a7c196e4c58"));
    assert_eq!(session.derived(Side::Client, "sign")[..], hex("4788dc861b4782f35d43fd98fe1a2d39"));
    // The example encrypts the text before it signs it, with the same keystream.
    let text = utf16("Plaintext");
    let mut stream = [0; 26];
    stream[..18].copy_from_slice(&text);
    let signature = session.signature(Side::Client, &text);
    let checksum: [u8; 8] = signature[4..12].try_into().expect("eight bytes");
    stream[18..].copy_from_slice(&rc4(&sealing, checksum));
    let sealed = rc4(&sealing, stream);
    assert_eq!(sealed[..18], hex("54e50165bf1936dc996020c1811b0f06fb5f"));
    assert_eq!(sealed[18..], hex("7fb38ec5c55d4976"));
    assert_eq!((&signature[..4], &signature[12..]), (&[1, 0, 0, 0][..], &[0; 4][..]));
}

/// A field of the third message, by the offset of its description.
fn field(message: &[u8], at: usize) -> &[u8] {
    let length = u16_at(message, at).expect("there").into();
    part(message, u32_at(message, at + 4).expect("there") as usize, length).expect("whole")
}

#[test]
fn a_challenge_is_answered_with_all_fields_and_a_mic() {
    let negotiate = negotiate_message();
    let answer = Authenticate::to(&challenge(), &negotiate, &credentials(), &chosen()).expect("understood");
    let message = answer.message;
    assert_eq!(field(&message, 12), hex("86c35097ac9cec102554764a57cccc19 aaaaaaaaaaaaaaaa"), "no time was told");
    assert_eq!((field(&message, 28), field(&message, 36)), (&utf16("Domain")[..], &utf16("User")[..]));
    // The MIC's flag is added to what the server told.
    let response = field(&message, 20);
    assert_eq!(response[44..], [&target_info()[..32], &hex("06000400 02000000 00000000 00000000")].concat());
    let proof = hmac_md5(&credentials().response_key(), &[&SERVER_CHALLENGE, &response[16..]]);
    assert_eq!(response[..16], proof);
    assert_eq!(answer.session.key, RANDOM_SESSION_KEY);
    let key: [u8; 16] = field(&message, 52).try_into().expect("16 bytes");
    assert_eq!(rc4(&hmac_md5(&credentials().response_key(), &[&proof]), key), RANDOM_SESSION_KEY);
    let mut without = message.clone();
    without[MIC..PAYLOAD].fill(0);
    assert_eq!(message[MIC..PAYLOAD], hmac_md5(&RANDOM_SESSION_KEY, &[&negotiate, &challenge(), &without]));
}

#[test]
fn a_server_that_tells_its_time_gets_it_back_and_no_lm_response() {
    let mut challenge = challenge();
    challenge.truncate(challenge.len() - 4);
    challenge.extend(hex("06000400 01000000 07000800 0102030405060708 00000000"));
    let length = (challenge.len() - 0x44) as u8;
    (challenge[40], challenge[42]) = (length, length);
    let message =
        Authenticate::to(&challenge, &negotiate_message(), &credentials(), &chosen()).expect("understood").message;
    assert_eq!(field(&message, 12), [0; 24]);
    let response = field(&message, 20);
    assert_eq!(response[24..32], hex("0102030405060708"));
    let told = hex("07000800 0102030405060708 06000400 03000000 00000000 00000000");
    assert!(response.ends_with(&told), "its flags are kept: {response:02x?}");
}

#[test]
fn without_key_exchange_the_password_gives_the_session_key() {
    let mut challenge = challenge();
    challenge[23] &= 0xbf;
    let answer = Authenticate::to(&challenge, &negotiate_message(), &credentials(), &chosen()).expect("understood");
    assert_eq!(field(&answer.message, 52), b"");
    assert_ne!(answer.session.key, RANDOM_SESSION_KEY);
    let plain = hmac_md5(&answer.session.derived(Side::Server, "sign"), &[&[0; 4], b"text"]);
    assert_eq!(answer.session.signature(Side::Server, b"text")[4..12], plain[..8]);
}

#[test]
fn a_challenge_that_is_cut_or_weak_is_refused() {
    let refused = |challenge: &[u8]| {
        Authenticate::to(challenge, &negotiate_message(), &credentials(), &chosen()).map(|_| ()).unwrap_err().0
    };
    let whole = challenge();
    for length in 0..whole.len() {
        assert_eq!(refused(&whole[..length]), "its NTLM challenge is not understood", "{length} bytes");
    }
    // Without extended session security, and without Unicode.
    for (byte, bit) in [(22, 0x08), (20, 0x01)] {
        let mut weak = whole.clone();
        weak[byte] &= !bit;
        assert_eq!(refused(&weak), "it has no NTLM version 2 with 128-bit keys");
    }
}

#[test]
fn a_user_is_named_in_three_ways() {
    let read = |user| Credentials::parse(user, "").map(|read| (read.user, read.domain));
    let named = |name: &str, domain: &str| Ok((name.to_owned(), domain.to_owned()));
    assert_eq!(read("anna"), named("anna", ""));
    assert_eq!(read("OFFICE\\anna"), named("anna", "OFFICE"));
    assert_eq!(read("anna@office.example"), named("anna@office.example", ""));
    for wrong in ["", "OFFICE\\", "OFFICE\\anna@office.example", "a\\b\\c"] {
        assert_eq!(read(wrong), Err(AuthenticationError("it is no user name")), "{wrong}");
    }
}
