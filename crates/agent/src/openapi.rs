//! The API described for other programs: OpenAPI 3.1, made from the table of routes and the types' own schemas.
//! <https://spec.openapis.org/oas/v3.1.0>

use crate::route::{Answer, Route};
use linerate_control::{ApiError, ErrorKind, PROTOCOL_HEADER, neighbours};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The description of an API of these routes.
pub(crate) fn describe(routes: &[Route]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for route in routes {
        let operation = operation(route, &mut generator);
        paths.entry(route.path).or_insert_with(|| json!({}))[route.method.name()] = operation;
    }
    let error = generator.subschema_for::<ApiError>();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "linerate agent",
            "summary": "One host's part in any trial",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT"}
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                "Error": {
                    "description": "Not done as asked",
                    "content": {"application/json": {"schema": error}}
                }
            }
        }
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut parameters: Vec<Value> = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    let mut errors = [&[ErrorKind::Limit], route.errors].concat();
    if route.versioned {
        parameters.push(json!({
            "name": PROTOCOL_HEADER, "in": "header", "required": true, "schema": {"type": "integer", "minimum": neighbours().0, "maximum": neighbours().1}
        }));
        errors.push(ErrorKind::Protocol);
    }
    let content = |media: &str, schema: Value| json!({"description": "Done", "content": {media: {"schema": schema}}});
    let (status, success) = match route.answer {
        Answer::Json(schema) => ("200", content("application/json", schema(generator).to_value())),
        Answer::Events(schema) => ("200", content("text/event-stream", schema(generator).to_value())),
        Answer::Text => ("200", content("text/plain", json!({"type": "string"}))),
        Answer::Nothing => ("204", json!({"description": "Done"})),
    };
    let mut operation = json!({"summary": route.summary, "parameters": parameters});
    if route.admitted {
        errors.push(ErrorKind::Unauthorized);
    } else {
        operation["security"] = json!([]);
    }
    if let Some(schema) = route.body {
        errors.extend([ErrorKind::BadRequest, ErrorKind::TooLarge]);
        operation["requestBody"] = json!({
            "required": true,
            "content": {"application/json": {"schema": schema(generator).to_value()}}
        });
    }
    let mut responses: Map<String, Value> = errors
        .iter()
        .map(|kind| (kind.status().to_string(), json!({"$ref": "#/components/responses/Error"})))
        .collect();
    responses.insert(status.to_owned(), success);
    operation["responses"] = responses.into();
    operation
}

#[cfg(test)]
mod tests {
    use crate::routes::{ROUTES, openapi};

    #[test]
    fn lists_every_route_and_every_reference_leads_somewhere() {
        let description = openapi();
        for route in &ROUTES {
            let operation = &description["paths"][route.path][route.method.name()];
            assert_eq!(operation["summary"], route.summary, "{}", route.path);
            let asks_for_token = operation["responses"]["401"].is_object();
            assert_eq!(
                (asks_for_token, operation["security"].is_null()),
                (route.admitted, route.admitted),
                "{}",
                route.path
            );
        }
        for (path, method, status) in [
            ("/v1/host", "get", "422"),
            ("/v1/sessions", "post", "403"),
            ("/v1/sessions/{id}/order", "post", "409"),
            ("/v1/sessions/{id}/counts", "get", "404"),
        ] {
            assert!(description["paths"][path][method]["responses"][status].is_object(), "{method} {path}: {status}");
        }
        let text = description.to_string();
        let references: Vec<_> = text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(references.len() > 20, "only {} references", references.len());
        for reference in references {
            assert!(description.pointer(reference).is_some(), "{reference} leads nowhere");
        }
    }
}
