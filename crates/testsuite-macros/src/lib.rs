//! The attributes `#[lab_test]`, `#[server_test]` and `#[wine_test]`. Their crate `linerate-testsuite` re-exports them and explains
//! them.

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// Need of a lab test that fills the kernel's table of IPv6 neighbours. Every other lab test takes a share of the
/// table.
const ALL_NEIGHBOURS: &str = "AllIpv6Neighbours";

/// Marks a test that creates network namespaces. It needs root and the needs in the attribute.
#[proc_macro_attribute]
pub fn lab_test(needs: TokenStream, function: TokenStream) -> TokenStream {
    test("in_lab", needs, function)
}

/// Marks a test with a third-party program. It has the needs in the attribute.
#[proc_macro_attribute]
pub fn server_test(needs: TokenStream, function: TokenStream) -> TokenStream {
    test("with_servers", needs, function)
}

/// Marks a test with the program for Windows in a network namespace. It needs root, Wine and the needs in the attribute.
#[proc_macro_attribute]
pub fn wine_test(needs: TokenStream, function: TokenStream) -> TokenStream {
    test("with_wine", needs, function)
}

/// Moves the test `function` into a module of its name and renames it to `tier`. The test returns at once if a need is
/// not met.
fn test(tier: &str, needs: TokenStream, function: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let Some(TokenTree::Group(body)) = tokens.pop().filter(is_block) else {
        return error("this attribute belongs to a function");
    };
    let Some(TokenTree::Ident(name)) =
        tokens.iter().position(|token| is_ident(token, "fn")).and_then(|at| tokens.get(at + 1)).cloned()
    else {
        return error("this attribute belongs to a function");
    };
    for token in &mut tokens {
        if is_ident(token, &name.to_string()) {
            *token = Ident::new(tier, name.span()).into();
        }
    }
    let mut needs = split_needs(needs);
    let mut lock = String::new();
    if tier == "with_wine" {
        needs.splice(0..0, ["Root".to_owned(), "Wine".to_owned()]);
    }
    if tier == "in_lab" {
        let fills = needs.iter().any(|need| need == ALL_NEIGHBOURS);
        needs.retain(|need| need != ALL_NEIGHBOURS);
        needs.insert(0, "Root".to_owned());
        let function = if fills { "fill" } else { "share" };
        lock = format!("let _neighbours = ::linerate_testsuite::Ipv6Neighbours::{function}();");
    }
    let needs: Vec<String> = needs.iter().map(|need| format!("::linerate_testsuite::Need::{need}")).collect();
    let mut block = parse(&format!(
        "if !::linerate_testsuite::can_run(::core::module_path!(), &[{}]) {{ return; }} {lock}",
        needs.join(", ")
    ));
    block.extend(body.stream());
    tokens.push(TokenTree::Group(Group::new(Delimiter::Brace, block)));

    let mut module = parse("#[allow(unused_imports, reason = \"a test may need none\")] use super::*; #[test]");
    module.extend(tokens);
    let mut item = parse("mod");
    item.extend([TokenTree::Ident(name), TokenTree::Group(Group::new(Delimiter::Brace, module))]);
    item
}

/// Splits the list of needs at its commas.
fn split_needs(needs: TokenStream) -> Vec<String> {
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

fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident.to_string() == name)
}

fn parse(code: &str) -> TokenStream {
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
