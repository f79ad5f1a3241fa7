//! `GET /docs`: the description of the HTTP interface as a page for people, made from the same OpenAPI. It has no script
//! and loads nothing.

use super::openapi;
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::LazyLock;
use wire::ErrorCode;

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1rem; overflow-wrap: anywhere; }
h2 { border-bottom: 1px solid var(--line); margin-top: 3rem; }
h3 { margin: 2rem 0 0; font-size: 1.05rem; }
code, .method { font-family: ui-monospace, monospace; font-size: .9em; }
.method { display: inline-block; min-width: 3.5em; font-weight: 700; }
table { border-collapse: collapse; margin: .5rem 0 1rem; width: 100%; }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; }
th { background: var(--soft); }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
nav ul { list-style: none; padding: 0; }
";

/// Who calls what, in the order in which the page has it; a tag that is not named here comes last.
const TAGS: &[(&str, &str)] = &[
    ("machine", "For machines: header X-Api-Key"),
    ("guide", "For guides: Authorization: Bearer TOKEN"),
    ("visitor", "For visitors: Authorization: Bearer TOKEN"),
    ("admin", "For admins: Authorization: Bearer TOKEN"),
    ("accounts", "Signing in and out"),
    ("server", "The server"),
];

static PAGE: LazyLock<String> = LazyLock::new(|| {
    let document = serde_json::to_value(openapi::document()).unwrap_or_default();
    Page { document: &document, html: String::new() }.render()
});

/// The style is allowed by its digest, everything else not at all.
static CSP: LazyLock<String> = LazyLock::new(|| {
    let digest = STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

/// The page.
pub(super) async fn page() -> Response {
    let mut response = Html(PAGE.as_str()).into_response();
    if let Ok(csp) = HeaderValue::from_str(&CSP) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, csp);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

struct Page<'a> {
    document: &'a Value,
    html: String,
}

impl<'a> Page<'a> {
    fn render(mut self) -> String {
        let info = &self.document["info"];
        let title = text(&info["title"]);
        self.add(format_args!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title} {}: HTTP interface</title>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><style>{STYLE}</style></head><body>\n\
             <h1>{title}: HTTP interface</h1>\n<p>{} Version {}. For programs: <a href=\"/api/openapi.json\">OpenAPI</a>.</p>\n",
            text(&info["version"]),
            text(&info["description"]),
            text(&info["version"]),
        ));
        let sections = self.sections();
        self.add(format_args!("<nav><ul>\n"));
        for (tag, operations) in &sections {
            self.add(format_args!(
                "<li><a href=\"#{0}\">{1}</a>: {2}</li>\n",
                escaped(tag),
                heading(tag),
                operations.len()
            ));
        }
        self.add(format_args!(
            "<li><a href=\"#types\">Types</a></li><li><a href=\"#errors\">Errors</a></li></ul></nav>\n"
        ));
        self.add(format_args!(
            "<p>Requests and answers are JSON. Every answer is <code>{{\"code\": 0, \"msg\": \"\", \"data\": …}}</code>; <code>data</code> \
             is what stands below. A <code>code</code> that is not 0 is one of the <a href=\"#errors\">errors</a>. Times are Unix \
             milliseconds.</p>\n"
        ));
        for (tag, operations) in sections {
            self.add(format_args!("<h2 id=\"{}\">{}</h2>\n", escaped(tag), heading(tag)));
            for operation in operations {
                self.operation(operation.method, operation.path, operation.about);
            }
        }
        self.types();
        self.errors();
        self.add(format_args!("</body></html>\n"));
        self.html
    }

    fn add(&mut self, html: std::fmt::Arguments<'_>) {
        // Writing to a text cannot fail.
        let _ = self.html.write_fmt(html);
    }

    /// The operations by their tags.
    fn sections(&self) -> Vec<(&'a str, Vec<Operation<'a>>)> {
        let mut by_tag: BTreeMap<(usize, &str), Vec<_>> = BTreeMap::new();
        for (path, item) in object(&self.document["paths"]) {
            for (method, operation) in object(item) {
                let tag = operation["tags"][0].as_str().unwrap_or("other");
                let place = TAGS.iter().position(|(known, _)| *known == tag).unwrap_or(TAGS.len());
                by_tag.entry((place, tag)).or_default().push(Operation { method, path, about: operation });
            }
        }
        by_tag.into_iter().map(|((_, tag), operations)| (tag, operations)).collect()
    }

    fn operation(&mut self, method: &str, path: &str, operation: &Value) {
        let id = text(&operation["operationId"]);
        self.add(format_args!(
            "<h3 id=\"{id}\"><span class=\"method\">{}</span> <code>{}</code></h3>\n<p>{}",
            method.to_uppercase(),
            escaped(path),
            prose(&operation["summary"]),
        ));
        if operation["description"].is_string() {
            self.add(format_args!(" {}", prose(&operation["description"])));
        }
        self.add(format_args!("</p>\n"));
        let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
        let rows = parameters.iter().map(|parameter| Row {
            name: parameter["name"].as_str().unwrap_or_default(),
            required: parameter["required"] == true,
            kind: kind(&parameter["schema"]),
            about: format!("{} ({})", prose(&parameter["description"]), text(&parameter["in"])),
        });
        self.table("Parameters", rows.collect());
        self.content("Request", &operation["requestBody"]["content"]);
        for (status, response) in object(&operation["responses"]) {
            self.content(&format!("Answer {status}"), &response["content"]);
        }
    }

    /// A body by its content types; of an envelope what is in it.
    fn content(&mut self, caption: &str, content: &Value) {
        for (mime, body) in object(content) {
            let schema = self.resolved(&body["schema"]);
            let data = &schema["properties"]["data"];
            let is_envelope = data.is_object() && schema["properties"]["code"].is_object();
            let schema = if is_envelope { self.resolved(data) } else { schema };
            let caption = if is_envelope { format!("{caption}: data") } else { caption.to_owned() };
            let (schema, many) = match schema["items"].is_object() {
                true => (self.resolved(&schema["items"]), ", a list of"),
                false => (schema, ""),
            };
            if schema["properties"].is_object() {
                self.table(&format!("{caption}{many}"), rows_of(schema));
            } else {
                let what =
                    if mime == "application/json" { kind(schema) } else { format!("<code>{}</code>", escaped(mime)) };
                self.add(format_args!("<p>{caption}{many} {what}</p>\n"));
            }
        }
    }

    fn resolved(&self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str().and_then(name_of_ref) {
            Some(name) => &self.document["components"]["schemas"][name],
            None => schema,
        }
    }

    fn table(&mut self, caption: &str, rows: Vec<Row<'_>>) {
        if rows.is_empty() {
            return;
        }
        self.add(format_args!(
            "<table><caption>{}</caption><tr><th>name</th><th>type</th><th>what it is</th></tr>\n",
            escaped(caption)
        ));
        for row in rows {
            let optional = if row.required { "" } else { ", may be missing" };
            let name = escaped(row.name);
            self.add(format_args!(
                "<tr><td><code>{name}</code></td><td>{}{optional}</td><td>{}</td></tr>\n",
                row.kind, row.about
            ));
        }
        self.add(format_args!("</table>\n"));
    }

    /// Every type that another refers to; envelopes are shown where they are answered.
    fn types(&mut self) {
        self.add(format_args!("<h2 id=\"types\">Types</h2>\n"));
        for (name, schema) in object(&self.document["components"]["schemas"]) {
            if name.starts_with("Envelope_") {
                continue;
            }
            let name = escaped(name);
            self.add(format_args!(
                "<h3 id=\"type-{name}\"><code>{name}</code></h3>\n<p>{}</p>\n",
                prose(&schema["description"])
            ));
            if schema["properties"].is_object() {
                self.table("Fields", rows_of(schema));
            } else {
                self.add(format_args!("<p>{}</p>\n", kind(schema)));
            }
        }
    }

    fn errors(&mut self) {
        self.add(format_args!(
            "<h2 id=\"errors\">Errors</h2>\n<table><tr><th>code</th><th>HTTP</th><th>name</th></tr>\n"
        ));
        for error in ErrorCode::ALL {
            self.add(format_args!(
                "<tr><td>{}</td><td>{}</td><td><code>{}</code></td></tr>\n",
                error.code(),
                error.status(),
                error.name()
            ));
        }
        self.add(format_args!("</table>\n"));
    }
}

/// A method of a path, and what the description says of it.
struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    about: &'a Value,
}

/// A line of a table.
struct Row<'a> {
    name: &'a str,
    required: bool,
    kind: String,
    about: String,
}

fn rows_of(schema: &Value) -> Vec<Row<'_>> {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    object(&schema["properties"])
        .map(|(name, field)| Row {
            name,
            required: required.iter().any(|required| required == name),
            kind: kind(field),
            about: about(field),
        })
        .collect()
}

/// A field's description; of one that may be null it stands with the type.
fn about(field: &Value) -> String {
    let inner = || field["oneOf"].as_array()?.iter().find(|one| one["description"].is_string());
    prose(inner().map_or(&field["description"], |one| &one["description"]))
}

/// A type in a few words, as HTML.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(name_of_ref) {
        let name = escaped(name);
        return format!("<a href=\"#type-{name}\">{name}</a>");
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(|value| format!("<code>{}</code>", text(value))).collect();
        return values.join(", ");
    }
    if let Some(either) = schema["oneOf"].as_array() {
        return either.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().map(text).collect::<Vec<_>>().join(" or "),
        Value::String(array) if array == "array" => format!("list of {}", kind(&schema["items"])),
        Value::String(one) => escaped(one),
        _ => "any".to_owned(),
    }
}

fn heading(tag: &str) -> String {
    escaped(TAGS.iter().find(|(known, _)| *known == tag).map_or(tag, |(_, heading)| heading))
}

fn name_of_ref(reference: &str) -> Option<&str> {
    reference.strip_prefix("#/components/schemas/")
}

fn object(value: &Value) -> serde_json::map::Iter<'_> {
    static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    value.as_object().unwrap_or(&NONE).iter()
}

fn text(value: &Value) -> String {
    escaped(value.as_str().unwrap_or_default())
}

/// A doc comment: what stands between backticks is code, and links to other items are no links here.
fn prose(value: &Value) -> String {
    let plain = value.as_str().unwrap_or_default().replace("[`", "`").replace("`]", "`");
    let mut html = String::new();
    for (n, part) in plain.split('`').enumerate() {
        let part = escaped(part);
        html += &if n % 2 == 1 { format!("<code>{part}</code>") } else { part };
    }
    html
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_and_every_type_that_is_linked_is_on_the_page() {
        let document = serde_json::to_value(openapi::document()).unwrap();
        let mut operations = 0;
        for (path, item) in object(&document["paths"]) {
            for (_, operation) in object(item) {
                operations += 1;
                assert!(PAGE.contains(&format!("<h3 id=\"{}\">", text(&operation["operationId"]))), "{path}");
                assert!(PAGE.contains(&escaped(path)), "{path}");
            }
        }
        assert!(operations > 20, "{operations}");
        for link in PAGE.split("href=\"#").skip(1) {
            let target = link.split('"').next().unwrap();
            assert_eq!(PAGE.matches(&format!(" id=\"{target}\"")).count(), 1, "{target}");
        }
    }

    #[test]
    fn what_the_description_says_cannot_become_markup() {
        assert_eq!(prose(&Value::from("a <b> `c<d>` [`E`]")), "a &lt;b&gt; <code>c&lt;d&gt;</code> <code>E</code>");
    }
}
