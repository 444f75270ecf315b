//! The attributes `#[lab_test]` and `#[server_test]`. Their crate `linerate-testsuite` re-exports them and explains them.

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// What a lab test lists that fills the kernel's table of IPv6 neighbours. Every other lab test has a share of it.
const ALL_NEIGHBOURS: &str = "AllIpv6Neighbours";

/// Marks a test that makes network namespaces: it needs root, and what the attribute lists.
#[proc_macro_attribute]
pub fn lab_test(needs: TokenStream, function: TokenStream) -> TokenStream {
    test("in_lab", needs, function)
}

/// Marks a test of a program that is not linerate's: it needs what the attribute lists.
#[proc_macro_attribute]
pub fn server_test(needs: TokenStream, function: TokenStream) -> TokenStream {
    test("with_servers", needs, function)
}

/// Puts the test `function` into a module of its name, where it is called `tier`, and lets it begin only where its needs are met.
fn test(tier: &str, needs: TokenStream, function: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let Some(TokenTree::Group(body)) = tokens.pop().filter(is_block) else {
        return error("this attribute belongs to a function");
    };
    let is_fn = |token: &TokenTree| matches!(token, TokenTree::Ident(ident) if ident.to_string() == "fn");
    let Some(TokenTree::Ident(name)) = tokens.iter().position(is_fn).and_then(|at| tokens.get(at + 1)).cloned() else {
        return error("this attribute belongs to a function");
    };
    for token in &mut tokens {
        if matches!(token, TokenTree::Ident(ident) if ident.to_string() == name.to_string()) {
            *token = Ident::new(tier, name.span()).into();
        }
    }
    let mut needs = listed(needs);
    let mut begin = String::new();
    if tier == "in_lab" {
        let fills = needs.iter().any(|need| need == ALL_NEIGHBOURS);
        needs.retain(|need| need != ALL_NEIGHBOURS);
        needs.insert(0, "Root".to_owned());
        let take = if fills { "fill" } else { "share" };
        begin = format!("let _neighbours = ::linerate_testsuite::Ipv6Neighbours::{take}();");
    }
    let needs: Vec<String> = needs.iter().map(|need| format!("::linerate_testsuite::Need::{need}")).collect();
    let mut block = parsed(&format!(
        "if !::linerate_testsuite::can_run(::core::module_path!(), &[{}]) {{ return; }} {begin}",
        needs.join(", ")
    ));
    block.extend(body.stream());
    tokens.push(TokenTree::Group(Group::new(Delimiter::Brace, block)));

    let mut module = parsed("#[allow(unused_imports, reason = \"a test may need none\")] use super::*; #[test]");
    module.extend(tokens);
    let mut whole = parsed("mod");
    whole.extend([TokenTree::Ident(name), TokenTree::Group(Group::new(Delimiter::Brace, module))]);
    whole
}

/// The needs as they are written.
fn listed(needs: TokenStream) -> Vec<String> {
    let mut all = vec![String::new()];
    for token in needs {
        match (&token, all.last_mut()) {
            (TokenTree::Punct(comma), _) if comma.as_char() == ',' => all.push(String::new()),
            (_, Some(last)) => last.push_str(&token.to_string()),
            (_, None) => {}
        }
    }
    all.retain(|need| !need.is_empty());
    all
}

fn is_block(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

fn parsed(code: &str) -> TokenStream {
    code.parse().unwrap_or_else(|_| error("this attribute lists needs, as in Program(\"tshark\")"))
}

fn error(message: &str) -> TokenStream {
    let message = format!("compile_error!({message:?});");
    let stream: TokenStream = message.parse().unwrap_or_default();
    stream
        .into_iter()
        .map(|mut token| {
            token.set_span(Span::call_site());
            token
        })
        .collect()
}
