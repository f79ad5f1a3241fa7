//! A caller of the HTTP interface, and the answers that it gets.

use reqwest::{Method, RequestBuilder, header::HeaderMap};
use serde_json::{Value, json};

/// An answer, read to its end.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as text.
    pub text: String,
}

impl Answer {
    /// Sends a request and reads the answer.
    pub async fn to(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        assert!(status != 429 || headers.contains_key("retry-after"), "a 429 says when to come back: {text}");
        Self { status, headers, text }
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {} {}", self.status, self.text))
    }

    /// The envelope's code.
    pub fn code(&self) -> i64 {
        self.json()["code"].as_i64().unwrap()
    }

    /// The envelope's data.
    pub fn data(&self) -> Value {
        self.json()["data"].clone()
    }

    /// The data of a success.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!((self.status, self.code()), (200, 0), "{}", self.text);
        self.data()
    }

    /// Asserts HTTP status and code.
    #[track_caller]
    pub fn refused(&self, status: u16, code: i64) -> Value {
        assert_eq!((self.status, self.code()), (status, code), "{}", self.text);
        self.data()
    }
}

/// Somebody with (or without) a token.
#[derive(Debug, Clone)]
pub struct Caller {
    pub(crate) client: reqwest::Client,
    pub(crate) base: String,
    /// The header that says who calls.
    pub credential: Option<(String, String)>,
}

impl Caller {
    /// The same caller, asking at another address.
    #[must_use]
    pub fn at(&self, base: String) -> Self {
        Self { base, ..self.clone() }
    }

    /// A request with the caller's credential.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some((name, value)) = &self.credential {
            request = request.header(name, value);
        }
        request
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::GET, path)).await
    }

    /// POST with a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::to(self.request(Method::POST, path).json(body)).await
    }

    /// PUT with a JSON body.
    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        Answer::to(self.request(Method::PUT, path).json(body)).await
    }

    /// A visitor asks for an order's code.
    pub async fn verify_code(&self, order_no: &str) -> Answer {
        self.get(&format!("/app-api/team/booking/booking/verify-code?orderNo={order_no}")).await
    }

    /// A guide redeems.
    pub async fn redeem(&self, order_no: &str, code: &str) -> Answer {
        self.post(GUIDE_CONSUME, &json!({"orderNo": order_no, "verifyCode": code})).await
    }

    /// A guide redeems with a request id.
    pub async fn redeem_as(&self, order_no: &str, code: &str, request_id: &str) -> Answer {
        self.post(GUIDE_CONSUME, &json!({"orderNo": order_no, "verifyCode": code, "requestId": request_id})).await
    }

    /// An admin redeems.
    pub async fn redeem_as_admin(&self, order_no: &str, code: &str) -> Answer {
        let path = "/admin-api/team/booking-order/booking/consume";
        self.post(path, &json!({"orderNo": order_no, "verifyCode": code})).await
    }
}

const GUIDE_CONSUME: &str = "/app-api/team/guide-task/booking/consume";

/// What a spreadsheet's file is called in a `Content-Type`.
pub const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

impl Caller {
    /// An admin uploads an order file, and gets a preview.
    pub async fn upload(&self, file: impl Into<reqwest::Body>) -> Answer {
        self.upload_as("application/octet-stream", file).await
    }

    /// The same, with a content type.
    pub async fn upload_as(&self, content_type: &str, file: impl Into<reqwest::Body>) -> Answer {
        let request = self.request(Method::POST, "/admin-api/order-imports").header("content-type", content_type);
        Answer::to(request.header("accept-language", "en").body(file)).await
    }

    /// An admin applies a preview.
    pub async fn apply(&self, preview: &Value) -> Answer {
        let request = self.request(Method::POST, &format!("/admin-api/order-imports/{}", preview["id"]));
        Answer::to(request.header("accept-language", "en")).await
    }
}

impl Caller {
    /// Asks for a code.
    pub async fn send_sms(&self, mobile: &str, scene: &str) -> Answer {
        self.post("/api/sms/send", &json!({"mobile": mobile, "scene": scene})).await
    }

    /// Logs in by a code.
    pub async fn sms_login(&self, mobile: &str, code: &str) -> Answer {
        self.post("/api/auth/sms-login", &json!({"mobile": mobile, "code": code})).await
    }
}
