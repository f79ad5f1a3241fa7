//! The description of the HTTP interface, made from the handlers; what all of them have in common is added here.

use axum::Json;
use axum::http::StatusCode;
use utoipa::OpenApi as _;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, ResponseBuilder};
use wire::Envelope;
use wire::accounts::{Reason, Remaining};
use wire::api::{BadField, OrderState, RetryAfter};

/// What stands above the routes: the title, and the `data` of errors.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Guidepost",
        description = "The front desk of a venue: visitors' codes and their redemption, exactly once."
    ),
    components(schemas(BadField, Envelope<serde_json::Value>, OrderState, Reason, Remaining, RetryAfter))
)]
struct Description;

/// What stands above the routes.
pub(crate) fn description() -> OpenApi {
    Description::openapi()
}

/// The whole description, for the generator of the pages' types.
pub(crate) fn document() -> OpenApi {
    let mut document = super::api().split_for_parts().1;
    let components = document.components.get_or_insert_default();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("a session's token")).build();
    components.add_security_scheme(SESSION, SecurityScheme::Http(bearer));
    let key = ApiKeyValue::with_description("X-Api-Key", "made by `guidepost-server api-key add`");
    components.add_security_scheme(API_KEY, SecurityScheme::ApiKey(ApiKey::Header(key)));
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Envelope_Value"))).build();
    let refusal = ResponseBuilder::new().description("why not").content("application/json", content).build();
    components.responses.insert(REFUSAL.to_owned(), refusal.into());
    for (path, item) in &mut document.paths.paths {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch];
        for operation in operations.into_iter().flatten() {
            complete(path, operation);
        }
    }
    document
}

/// What every refusal looks like.
const REFUSAL: &str = "Refusal";
const SESSION: &str = "session";
const API_KEY: &str = "apiKey";

/// Adds who may call, and the refusals that an operation of this kind can give.
fn complete(path: &str, operation: &mut Operation) {
    let mut refusals =
        vec![StatusCode::BAD_REQUEST, StatusCode::INTERNAL_SERVER_ERROR, StatusCode::SERVICE_UNAVAILABLE];
    if let Some(scheme) = opened_by(path) {
        operation.security = Some(vec![SecurityRequirement::new::<_, [&str; 0], &str>(scheme, [])]);
        refusals.extend([StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN]);
    } else {
        refusals.extend([StatusCode::UNAUTHORIZED, StatusCode::TOO_MANY_REQUESTS]);
    }
    if path.ends_with("/order-imports") {
        refusals.push(StatusCode::TOO_MANY_REQUESTS);
    }
    if operation.request_body.is_some() {
        refusals.extend([
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::CONFLICT,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ]);
    }
    if path.contains('{') || path.contains("/booking/") {
        refusals.push(StatusCode::NOT_FOUND);
    }
    // What has to do with verify codes.
    if path.contains("/consume") || path.contains("/verify-code") {
        refusals.extend([StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY, StatusCode::TOO_MANY_REQUESTS]);
    }
    // What has to do with SMS codes.
    let by_sms = [
        "/sms",
        "/auth/register",
        "/auth/reset-password",
        "/auth/change-mobile",
        "/compensate",
        "/reverse",
        "/captcha",
    ];
    if by_sms.iter().any(|part| path.contains(part)) {
        refusals.extend([
            StatusCode::UNAUTHORIZED,
            StatusCode::FORBIDDEN,
            StatusCode::CONFLICT,
            StatusCode::UNPROCESSABLE_ENTITY,
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::BAD_GATEWAY,
        ]);
    }
    for status in refusals {
        let refusal = RefOr::Ref(Ref::from_response_name(REFUSAL));
        operation.responses.responses.entry(status.as_str().to_owned()).or_insert(refusal);
    }
}

/// What a caller must show.
fn opened_by(path: &str) -> Option<&'static str> {
    // `/api/sms/send` and `/api/captcha` with a session for some scenes alone.
    let before_log_in = [
        "/api/info",
        "/api/auth/login",
        "/api/auth/sign-in-link",
        "/api/auth/sms-login",
        "/api/auth/register",
        "/api/auth/reset-password",
        "/api/sms/send",
        "/api/captcha",
    ];
    if path.starts_with("/open-api/") { Some(API_KEY) } else { (!before_log_in.contains(&path)).then_some(SESSION) }
}

/// `GET /api/openapi.json`.
pub(crate) async fn json() -> Json<OpenApi> {
    Json(document())
}
