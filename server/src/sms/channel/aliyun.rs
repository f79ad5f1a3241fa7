//! The channel `aliyun`: Alibaba Cloud's SMS (Dysmsapi) and, for spoken codes, its voice service (Dyvmsapi), both asked by
//! ACS3-HMAC-SHA256.

use super::{
    Answer, Carrier, Receipt, Recipient, Request, Timing, call, params, provider_zone, variables, variables_fault, word,
};
use crate::clock::{Clock, RandomSource};
use crate::config::{ChannelConfig, Param};
use crate::signature::{hex, hmac_sha256};
use async_trait::async_trait;
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::{Mobile, Secret};

const SMS: &str = "https://dysmsapi.aliyuncs.com/";
const VOICE: &str = "https://dyvmsapi.aliyuncs.com/";
/// Of both services.
const VERSION: &str = "2017-05-25";
/// The headers that are signed, in the order of the alphabet.
const SIGNED: &str = "host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version";
/// The SHA-256 of nothing: all parameters stand in the query, where this interface wants them.
const NO_BODY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[derive(Debug)]
pub(super) struct Aliyun {
    url: Url,
    host: String,
    key_id: String,
    secret: Secret,
    sign_name: Option<String>,
    show_number: Option<String>,
    voice: bool,
    params: Vec<Param>,
    client: Client,
    clock: Arc<dyn Clock>,
    random: Arc<dyn RandomSource>,
}

/// What both services answer.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Said {
    code: String,
    biz_id: Option<String>,
    call_id: Option<String>,
}

impl Aliyun {
    pub(super) fn new(
        config: &ChannelConfig,
        timing: Timing,
        clock: Arc<dyn Clock>,
        random: Arc<dyn RandomSource>,
    ) -> anyhow::Result<Self> {
        let url = call::address(config, Some(if config.voice { VOICE } else { SMS }))?;
        let client = call::client(&url, timing, None)?;
        Ok(Self {
            host: call::host(&url),
            url,
            key_id: config.key_id.clone().unwrap_or_default(),
            secret: config.secret.clone().unwrap_or_else(|| Secret::new("")),
            sign_name: config.sign_name.clone(),
            show_number: config.show_number.clone(),
            voice: config.voice,
            params: config.params.clone().unwrap_or_else(|| vec![Param::Code]),
            client,
            clock,
            random,
        })
    }

    /// Asks for an action, signed. The body of the answer, where there is one.
    async fn ask(
        &self,
        action: &str,
        parameters: &BTreeMap<&str, &str>,
    ) -> Result<(StatusCode, Option<Vec<u8>>), Answer> {
        let mut nonce = [0; 16];
        self.random.fill(&mut nonce);
        let nonce = hex(&nonce);
        let date = date(self.clock.now_ms());
        let query = query(parameters);
        let canonical = canonical(&self.host, action, VERSION, &date, &nonce, &query);
        let mut url = self.url.clone();
        url.set_query(Some(&query));
        let request = self
            .client
            .post(url)
            .header("x-acs-action", action)
            .header("x-acs-content-sha256", NO_BODY)
            .header("x-acs-date", date)
            .header("x-acs-signature-nonce", nonce)
            .header("x-acs-version", VERSION)
            .header("authorization", authorization(&self.key_id, self.secret.expose(), SIGNED, &canonical))
            .header("content-length", "0")
            .header("accept", "application/json");
        let response = call::call(request).await?;
        Ok((response.status(), call::body(response).await))
    }
}

impl Aliyun {
    /// Asks for something that sends nothing; an error begins with the provider's code where there is one.
    async fn look_up<T: DeserializeOwned>(&self, action: &str, parameters: &BTreeMap<&str, &str>) -> anyhow::Result<T> {
        let asked = self.ask(action, parameters).await;
        let (status, body) = asked.map_err(|answer| anyhow::anyhow!("{}", answer.reason()))?;
        let unclear = || anyhow::anyhow!("HTTP {} without a clear answer", status.as_u16());
        let body = body.ok_or_else(unclear)?;
        let said: Said = serde_json::from_slice(&body).map_err(|_| unclear())?;
        anyhow::ensure!(said.code == "OK", "{}", word(&said.code));
        serde_json::from_slice(&body).map_err(|_| unclear())
    }
}

#[async_trait]
impl Carrier for Aliyun {
    async fn carry(&self, request: &Request<'_>) -> Answer {
        let message = request.message;
        let Recipient::Mobile(mobile) = &message.to else { return Answer::Refused("is no number".to_owned()) };
        let template = request.template.unwrap_or_default();
        let values: BTreeMap<_, _> =
            params(&self.params, message).map(|(param, value)| (param.as_str(), value)).collect();
        // A string each: the interface takes no other type.
        let values = serde_json::json!(values).to_string();
        let number = number(mobile);
        let mut parameters = BTreeMap::from([("OutId", message.id.as_str())]);
        let action = if self.voice {
            parameters.extend([("CalledNumber", number), ("TtsCode", template), ("TtsParam", &values)]);
            if let Some(shown) = &self.show_number {
                parameters.insert("CalledShowNumber", shown);
            }
            "SingleCallByTts"
        } else {
            parameters.extend([("PhoneNumbers", number), ("TemplateCode", template), ("TemplateParam", &values)]);
            if let Some(sign_name) = &self.sign_name {
                parameters.insert("SignName", sign_name);
            }
            "SendSms"
        };
        let (status, body) = match self.ask(action, &parameters).await {
            Ok(said) => said,
            Err(answer) => return answer,
        };
        let said = body.and_then(|body| serde_json::from_slice::<Said>(&body).ok());
        match said {
            Some(said) if said.code == "OK" => Answer::Taken(said.biz_id.or(said.call_id).map(|id| word(&id))),
            Some(said) => class(&said.code, status),
            None => call::bare(status),
        }
    }

    fn keeps_records(&self) -> bool {
        // The voice service keeps neither.
        !self.voice
    }

    async fn receipt(
        &self,
        mobile: &Mobile,
        provider_id: &str,
        send_id: &str,
        sent_at: i64,
    ) -> anyhow::Result<Receipt> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Details {
            #[serde(default, rename = "SmsSendDetailDTOs")]
            details: Option<List>,
        }
        #[derive(Deserialize)]
        struct List {
            #[serde(default, rename = "SmsSendDetailDTO")]
            list: Vec<Detail>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Detail {
            send_status: i64,
            #[serde(default)]
            err_code: Option<String>,
            #[serde(default)]
            out_id: Option<String>,
        }
        anyhow::ensure!(!self.voice, "this service keeps no receipts of calls");
        // The day as the provider counts it.
        let day = day(sent_at);
        let mut parameters = BTreeMap::from([
            ("CurrentPage", "1"),
            ("PageSize", "50"),
            ("PhoneNumber", number(mobile)),
            ("SendDate", day.as_str()),
        ]);
        if !provider_id.is_empty() {
            parameters.insert("BizId", provider_id);
        }
        let details: Details = self.look_up("QuerySendDetails", &parameters).await?;
        // Without its id all of the number's messages of the day are told: the one that bears ours is meant.
        let ours = |one: &Detail| !provider_id.is_empty() || one.out_id.as_deref() == Some(send_id);
        let detail = details.details.and_then(|details| details.list.into_iter().find(ours));
        Ok(match detail {
            Some(Detail { send_status: 3, .. }) => Receipt::Delivered,
            Some(Detail { send_status: 2, err_code, .. }) => {
                Receipt::Failed(err_code.map_or_else(|| "no reason given".to_owned(), |code| word(&code)))
            }
            _ => Receipt::Waiting,
        })
    }

    async fn template_fault(&self, template: &str) -> anyhow::Result<Option<String>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Template {
            template_status: i64,
            #[serde(default)]
            template_content: String,
        }
        if self.voice {
            // The voice service has no such question.
            return Ok(None);
        }
        let parameters = BTreeMap::from([("TemplateCode", template)]);
        let known: Template = match self.look_up("QuerySmsTemplate", &parameters).await {
            Ok(known) => known,
            Err(error) if error.to_string().starts_with("isv.") => return Ok(Some(error.to_string())),
            Err(error) => return Err(error),
        };
        let given: Vec<String> = self.params.iter().map(|param| param.as_str().to_owned()).collect();
        Ok(match known.template_status {
            1 => variables_fault(&variables(&known.template_content, "${"), &given),
            0 => Some("the provider has not approved it yet".to_owned()),
            _ => Some("the provider has refused it or withdrawn it".to_owned()),
        })
    }

    async fn sent_on(&self, day: &str) -> anyhow::Result<u64> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Statistics {
            data: Data,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Data {
            target_list: Vec<Day>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Day {
            total_count: u64,
        }
        anyhow::ensure!(!self.voice, "this service keeps no count of calls");
        let mut count = 0;
        // Mainland numbers, and all others.
        for globe in ["1", "2"] {
            let parameters = BTreeMap::from([
                ("EndDate", day),
                ("IsGlobe", globe),
                ("PageIndex", "1"),
                ("PageSize", "10"),
                ("StartDate", day),
            ]);
            let statistics: Statistics = self.look_up("QuerySendStatistics", &parameters).await?;
            count += statistics.data.target_list.iter().map(|day| day.total_count).sum::<u64>();
        }
        Ok(count)
    }
}

/// A mainland number without its prefix, any other without its plus sign.
fn number(mobile: &Mobile) -> &str {
    let number = mobile.expose();
    number.strip_prefix("+86").or(number.strip_prefix('+')).unwrap_or(number)
}

/// What an error code means. The list is the provider's "API error codes"; codes of the kinds `isv` (what we sent) and the
/// gateway's own refusals were surely not taken, all that is not known may have been.
fn class(code: &str, status: StatusCode) -> Answer {
    let reason = word(code);
    match code {
        "isv.AMOUNT_NOT_ENOUGH" | "isv.OUT_OF_SERVICE" => Answer::NoBalance(reason),
        "isv.BUSINESS_LIMIT_CONTROL" | "MOBILE_SEND_LIMIT" => Answer::NumberLimit(reason),
        "isv.MOBILE_NUMBER_ILLEGAL"
        | "isv.MOBILE_COUNT_OVER_LIMIT"
        | "isv.DOMESTIC_NUMBER_NOT_SUPPORTED"
        | "isv.BLACK_KEY_CONTROL_LIMIT"
        | "isv.PARAM_LENGTH_LIMIT"
        | "isv.PARAM_NOT_SUPPORT_URL"
        | "isv.SMS_CONTENT_ILLEGAL"
        | "isv.CONTENT_KEYWORD"
        | "MOBILE_IN_BLACK" => Answer::Refused(reason),
        "isp.RAM_PERMISSION_DENY" => Answer::Unusable(reason),
        // The request came twice: somebody between has repeated it, and the first one may have been taken.
        "SignatureNonceUsed" => Answer::Unknown(reason),
        _ if code.starts_with("Throttling") || code == "ServiceUnavailable" => Answer::Passing(reason),
        _ if code.starts_with("isv.") => Answer::Unusable(reason),
        _ if code.starts_with("isp.") => Answer::Unknown(reason),
        // Signature, key, clock, permission.
        _ if status.is_client_error() => Answer::Unusable(reason),
        _ => Answer::Unknown(reason),
    }
}

fn timestamp(now: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(now).unwrap_or_default()
}

fn date(now: i64) -> String {
    timestamp(now).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn day(at: i64) -> String {
    timestamp(at).to_zoned_datetime(provider_zone()).strftime("%Y%m%d").to_string()
}

/// Names and values, percent-encoded, in the names' order.
fn query(parameters: &BTreeMap<&str, &str>) -> String {
    let pairs: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    pairs.join("&")
}

/// Percent-encoded but for RFC 3986's unreserved characters.
fn encoded(text: &str) -> String {
    use std::fmt::Write;
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
        encoded
    })
}

/// The request as it is signed.
fn canonical(host: &str, action: &str, version: &str, date: &str, nonce: &str, query: &str) -> String {
    format!(
        "POST\n/\n{query}\nhost:{host}\nx-acs-action:{action}\nx-acs-content-sha256:{NO_BODY}\nx-acs-date:{date}\n\
         x-acs-signature-nonce:{nonce}\nx-acs-version:{version}\n\n{SIGNED}\n{NO_BODY}"
    )
}

/// The header `Authorization`.
fn authorization(key_id: &str, secret: &str, signed: &str, canonical: &str) -> String {
    let to_sign = format!("ACS3-HMAC-SHA256\n{}", hex(&Sha256::digest(canonical.as_bytes())));
    let signature = hex(&hmac_sha256(secret.as_bytes(), to_sign.as_bytes()));
    format!("ACS3-HMAC-SHA256 Credential={key_id},SignedHeaders={signed},Signature={signature}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sms::channel::tests::vectors;

    #[test]
    fn the_published_signatures_are_reproduced() {
        let Some(vectors) = vectors("aliyun-acs3") else { return };
        assert_eq!(vectors.len(), 3);
        for vector in vectors {
            let text = |key: &str| vector[key].as_str().unwrap_or_default();
            let canonical_text = text("canonical");
            let signed = canonical_text.rsplit('\n').nth(1).unwrap();
            let got = authorization("YourAccessKeyId", text("secret"), signed, canonical_text);
            assert!(got.ends_with(&format!("Signature={}", text("signature"))), "{}", text("name"));
            if let Some(whole) = vector["authorization"].as_str() {
                assert_eq!(got, whole);
            }
            // The one that is the call we make: the canonical request is built as well.
            if let Some(given) = vector["query"].as_object() {
                let parameters = given.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
                let query = query(&parameters);
                let (date, nonce) = ("2026-01-02T03:04:05Z", "0123456789abcdef0123456789abcdef");
                assert_eq!(date, super::date(1_767_323_045_000));
                let built = canonical("dysmsapi.aliyuncs.com", "SendSms", VERSION, date, nonce, &query);
                assert_eq!(built, canonical_text);
            }
        }
    }

    #[test]
    fn each_code_has_its_class() {
        for (code, status, class_is) in [
            ("isv.AMOUNT_NOT_ENOUGH", 200, "NoBalance"),
            ("isv.OUT_OF_SERVICE", 200, "NoBalance"),
            ("isv.BUSINESS_LIMIT_CONTROL", 200, "NumberLimit"),
            ("isv.MOBILE_NUMBER_ILLEGAL", 200, "Refused"),
            ("isv.SMS_TEMPLATE_ILLEGAL", 200, "Unusable"),
            ("isv.SMS_SIGNATURE_ILLEGAL", 200, "Unusable"),
            ("isv.TEMPLATE_MISSING_PARAMETERS", 200, "Unusable"),
            ("isv.DAY_LIMIT_CONTROL", 200, "Unusable"),
            ("isp.RAM_PERMISSION_DENY", 200, "Unusable"),
            ("isp.SYSTEM_ERROR", 200, "Unknown"),
            ("SignatureDoesNotMatch", 400, "Unusable"),
            ("InvalidTimeStamp.Expired", 400, "Unusable"),
            ("InvalidAccessKeyId.NotFound", 404, "Unusable"),
            ("SignatureNonceUsed", 400, "Unknown"),
            ("Throttling.User", 400, "Passing"),
            ("ServiceUnavailable", 503, "Passing"),
            ("InternalError", 500, "Unknown"),
            ("something\nnew", 200, "Unknown"),
        ] {
            let got = format!("{:?}", class(code, StatusCode::from_u16(status).unwrap()));
            assert!(got.starts_with(&format!("{class_is}(")) && !got.contains("\\n"), "{code}: {got}");
        }
    }
}
