//! The channel `tencent`: Tencent Cloud's SMS, asked by TC3-HMAC-SHA256.

use super::{Answer, Carrier, Receipt, Recipient, Request, Timing, call, params, variables, variables_fault, word};
use crate::clock::Clock;
use crate::config::{ChannelConfig, Param};
use crate::signature::{hex, hmac_sha256};
use async_trait::async_trait;
use reqwest::{Client, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use wire::{Mobile, Secret};

const ENDPOINT: &str = "https://sms.tencentcloudapi.com/";
const VERSION: &str = "2021-01-11";
const REGION: &str = "ap-guangzhou";
const SERVICE: &str = "sms";
const CONTENT_TYPE: &str = "application/json; charset=utf-8";
const SIGNED: &str = "content-type;host;x-tc-action";

#[derive(Debug)]
pub(super) struct Tencent {
    url: Url,
    host: String,
    key_id: String,
    secret: Secret,
    sign_name: String,
    sdk_app_id: String,
    region: String,
    params: Vec<Param>,
    client: Client,
    clock: Arc<dyn Clock>,
}

/// What `SendSms` takes.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct SendSms<'a> {
    phone_number_set: [&'a str; 1],
    sms_sdk_app_id: &'a str,
    template_id: &'a str,
    sign_name: &'a str,
    template_param_set: Vec<String>,
    session_context: &'a str,
}

/// What every action answers.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Envelope<T> {
    response: Response<T>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Response<T> {
    Failed {
        #[serde(rename = "Error")]
        error: Failure,
    },
    Said(T),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    code: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Statuses {
    send_status_set: Vec<SendStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SendStatus {
    #[serde(default)]
    serial_no: String,
    code: String,
}

impl Tencent {
    pub(super) fn new(config: &ChannelConfig, timing: Timing, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let url = call::address(config, Some(ENDPOINT))?;
        let client = call::client(&url, timing, None)?;
        Ok(Self {
            host: call::host(&url),
            url,
            key_id: config.key_id.clone().unwrap_or_default(),
            secret: config.secret.clone().unwrap_or_else(|| Secret::new("")),
            sign_name: config.sign_name.clone().unwrap_or_default(),
            sdk_app_id: config.sdk_app_id.clone().unwrap_or_default(),
            region: config.region.clone().unwrap_or_else(|| REGION.to_owned()),
            params: config.params.clone().unwrap_or_else(|| vec![Param::Code]),
            client,
            clock,
        })
    }

    /// Asks for an action, signed. The body of the answer, where there is one.
    async fn ask(&self, action: &str, body: String) -> Result<(StatusCode, Option<Vec<u8>>), Answer> {
        // Seconds; none is before 1970.
        let timestamp = self.clock.now_ms().max(0) / 1000;
        let canonical = canonical(&self.host, action, &body);
        let authorization = authorization(&self.key_id, self.secret.expose(), SERVICE, timestamp, SIGNED, &canonical);
        let request = self
            .client
            .post(self.url.clone())
            .header("content-type", CONTENT_TYPE)
            .header("x-tc-action", action)
            .header("x-tc-version", VERSION)
            .header("x-tc-region", &self.region)
            .header("x-tc-timestamp", timestamp)
            .header("authorization", authorization)
            .body(body);
        let response = call::call(request).await?;
        Ok((response.status(), call::body(response).await))
    }
}

impl Tencent {
    /// Asks for something that sends nothing.
    async fn look_up<T: DeserializeOwned>(&self, action: &str, wanted: &(impl Serialize + Sync)) -> anyhow::Result<T> {
        let asked = self.ask(action, serde_json::to_string(wanted)?).await;
        let (status, body) = asked.map_err(|answer| anyhow::anyhow!("{}", answer.reason()))?;
        let said: Option<Envelope<T>> = body.and_then(|body| serde_json::from_slice(&body).ok());
        match said.map(|said| said.response) {
            Some(Response::Said(said)) => Ok(said),
            Some(Response::Failed { error }) => anyhow::bail!("{}", word(&error.code)),
            None => anyhow::bail!("HTTP {} without a clear answer", status.as_u16()),
        }
    }
}

#[async_trait]
impl Carrier for Tencent {
    async fn carry(&self, request: &Request<'_>) -> Answer {
        let message = request.message;
        let Recipient::Mobile(mobile) = &message.to else { return Answer::Refused("is no number".to_owned()) };
        let body = SendSms {
            phone_number_set: [mobile.expose()],
            sms_sdk_app_id: &self.sdk_app_id,
            template_id: request.template.unwrap_or_default(),
            sign_name: &self.sign_name,
            template_param_set: params(&self.params, message).map(|(_, value)| value).collect(),
            session_context: &message.id,
        };
        let Ok(body) = serde_json::to_string(&body) else {
            return Answer::Unusable("the request could not be written".to_owned());
        };
        let (status, body) = match self.ask("SendSms", body).await {
            Ok(said) => said,
            Err(answer) => return answer,
        };
        let said = body.and_then(|body| serde_json::from_slice::<Envelope<Statuses>>(&body).ok());
        match said.map(|said| said.response) {
            Some(Response::Failed { error }) => class(&error.code),
            // The call as a whole went well; whether the message did stands beside its number.
            Some(Response::Said(statuses)) => match statuses.send_status_set.as_slice() {
                [one] if one.code == "Ok" => Answer::Taken(Some(word(&one.serial_no))),
                [one] => class(&one.code),
                _ => Answer::Unknown("an answer without the number's own status".to_owned()),
            },
            None => call::bare(status),
        }
    }

    fn keeps_records(&self) -> bool {
        true
    }

    async fn receipt(
        &self,
        mobile: &Mobile,
        provider_id: &str,
        send_id: &str,
        sent_at: i64,
    ) -> anyhow::Result<Receipt> {
        #[derive(Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Pull<'a> {
            begin_time: i64,
            end_time: i64,
            offset: u32,
            limit: u32,
            phone_number: &'a str,
            sms_sdk_app_id: &'a str,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Pulled {
            pull_sms_send_status_set: Vec<Status>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Status {
            serial_no: String,
            #[serde(default)]
            session_context: String,
            report_status: String,
            #[serde(default)]
            description: String,
        }
        let pull = Pull {
            // The provider's clock may differ from ours.
            begin_time: sent_at / 1000 - 60,
            end_time: self.clock.now_ms() / 1000 + 60,
            offset: 0,
            limit: 100,
            phone_number: mobile.expose(),
            sms_sdk_app_id: &self.sdk_app_id,
        };
        let pulled: Pulled = self.look_up("PullSmsSendStatusByPhoneNumber", &pull).await?;
        let pulled = pulled.pull_sms_send_status_set;
        let ours = |one: &&Status| word(&one.serial_no) == provider_id || one.session_context == send_id;
        Ok(match pulled.iter().find(ours) {
            Some(one) if one.report_status == "SUCCESS" => Receipt::Delivered,
            Some(one) if one.report_status == "FAIL" => Receipt::Failed(word(&one.description)),
            _ => Receipt::Waiting,
        })
    }

    async fn template_fault(&self, template: &str) -> anyhow::Result<Option<String>> {
        #[derive(Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct List {
            international: u32,
            template_id_set: [u64; 1],
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Listed {
            describe_template_status_set: Vec<Template>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Template {
            status_code: i64,
            #[serde(default)]
            template_content: String,
        }
        let list = List { international: 0, template_id_set: [template.parse()?] };
        let listed: Listed = self.look_up("DescribeSmsTemplateList", &list).await?;
        let given: Vec<String> = (1..=self.params.len()).map(|n| n.to_string()).collect();
        Ok(match listed.describe_template_status_set.first() {
            Some(Template { status_code: 0, template_content }) => {
                variables_fault(&variables(template_content, "{"), &given)
            }
            Some(Template { status_code: 1 | 2, .. }) => Some("the provider has not approved it yet".to_owned()),
            Some(_) => Some("the provider has refused it".to_owned()),
            None => Some("the provider does not know it".to_owned()),
        })
    }

    async fn sent_on(&self, day: &str) -> anyhow::Result<u64> {
        #[derive(Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Span<'a> {
            begin_time: String,
            end_time: String,
            sms_sdk_app_id: &'a str,
            limit: u32,
            offset: u32,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Statistics {
            send_status_statistics: Counts,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Counts {
            request_success_count: u64,
        }
        let span = Span {
            begin_time: format!("{day}00"),
            end_time: format!("{day}23"),
            sms_sdk_app_id: &self.sdk_app_id,
            limit: 0,
            offset: 0,
        };
        let statistics: Statistics = self.look_up("SendStatusStatistics", &span).await?;
        Ok(statistics.send_status_statistics.request_success_count)
    }
}

/// What an error code means, of a call or beside a number. The list is the provider's "error codes"; of those that are not
/// known only the kinds that refuse a request were surely not taken.
fn class(code: &str) -> Answer {
    let reason = word(code);
    match code {
        "FailedOperation.InsufficientBalanceInSmsPackage"
        | "UnauthorizedOperation.SerivceSuspendDueToArrears"
        | "UnauthorizedOperation.ServiceSuspendDueToArrears" => return Answer::NoBalance(reason),
        "LimitExceeded.DeliveryFrequencyLimit"
        | "LimitExceeded.PhoneNumberDailyLimit"
        | "LimitExceeded.PhoneNumberOneHourLimit"
        | "LimitExceeded.PhoneNumberSameContentDailyLimit"
        | "LimitExceeded.PhoneNumberThirtySecondLimit" => return Answer::NumberLimit(reason),
        "FailedOperation.ContainSensitiveWord"
        | "FailedOperation.PhoneNumberInBlacklist"
        | "InvalidParameterValue.IncorrectPhoneNumber"
        | "InvalidParameterValue.ContentLengthLimit"
        | "InvalidParameterValue.ProhibitedUseUrlInTemplateParameter"
        | "LimitExceeded.AppCountryOrRegionInBlacklist"
        | "UnsupportedOperation.ChineseMainlandTemplateToGlobalPhone"
        | "UnsupportedOperation.GlobalTemplateToChineseMainlandPhone" => return Answer::Refused(reason),
        "InternalError.SigVerificationFail"
        | "InternalError.SigFieldMissing"
        | "InternalError.RequestTimeException"
        | "InternalError.RestApiInterfaceNotExist"
        | "InternalError.JsonParseFail" => return Answer::Unusable(reason),
        "LimitExceeded.GlobalSmsSendingRateLimit" => return Answer::Passing(reason),
        _ => {}
    }
    match code.split('.').next().unwrap_or_default() {
        "RequestLimitExceeded" => Answer::Passing(reason),
        "ActionOffline"
        | "AuthFailure"
        | "FailedOperation"
        | "InvalidAction"
        | "InvalidParameter"
        | "InvalidParameterValue"
        | "InvalidRequest"
        | "IpInBlacklist"
        | "IpNotInWhitelist"
        | "LimitExceeded"
        | "MissingParameter"
        | "NoSuchProduct"
        | "NoSuchVersion"
        | "UnauthorizedOperation"
        | "UnknownParameter"
        | "UnsupportedOperation"
        | "UnsupportedProtocol"
        | "UnsupportedRegion" => Answer::Unusable(reason),
        _ => Answer::Unknown(reason),
    }
}

/// The request as it is signed.
fn canonical(host: &str, action: &str, body: &str) -> String {
    format!(
        "POST\n/\n\ncontent-type:{CONTENT_TYPE}\nhost:{host}\nx-tc-action:{}\n\n{SIGNED}\n{}",
        action.to_ascii_lowercase(),
        hex(&Sha256::digest(body.as_bytes()))
    )
}

/// The header `Authorization`; the time stamp in seconds.
fn authorization(key_id: &str, secret: &str, service: &str, timestamp: i64, signed: &str, canonical: &str) -> String {
    let date = jiff::Timestamp::from_second(timestamp).unwrap_or_default().strftime("%Y-%m-%d").to_string();
    let scope = format!("{date}/{service}/tc3_request");
    let to_sign = format!("TC3-HMAC-SHA256\n{timestamp}\n{scope}\n{}", hex(&Sha256::digest(canonical.as_bytes())));
    let of_date = hmac_sha256(format!("TC3{secret}").as_bytes(), date.as_bytes());
    let of_service = hmac_sha256(&of_date, service.as_bytes());
    let of_request = hmac_sha256(&of_service, b"tc3_request");
    let signature = hex(&hmac_sha256(&of_request, to_sign.as_bytes()));
    format!("TC3-HMAC-SHA256 Credential={key_id}/{scope}, SignedHeaders={signed}, Signature={signature}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sms::channel::tests::vectors;

    #[test]
    fn the_published_signatures_are_reproduced() {
        let Some(vectors) = vectors("tencent-tc3") else { return };
        assert_eq!(vectors.len(), 4);
        for vector in vectors {
            let text = |key: &str| vector[key].as_str().unwrap();
            let canonical_text = text("canonical");
            let signed = canonical_text.rsplit('\n').nth(1).unwrap();
            let timestamp = text("string_to_sign").lines().nth(1).unwrap().parse().unwrap();
            let service = text("string_to_sign").split('/').nth(1).unwrap();
            let key_id = text("authorization").split(['=', '/']).nth(1).unwrap();
            let got = authorization(key_id, text("secret"), service, timestamp, signed, canonical_text);
            assert_eq!(got, text("authorization"), "{}", text("name"));
            // The one that is the call we make: body and canonical request are built as well.
            if service == SERVICE {
                let body = SendSms {
                    phone_number_set: ["+8613900000000"],
                    sms_sdk_app_id: "1400006666",
                    template_id: "1110",
                    sign_name: "腾讯云",
                    template_param_set: vec!["123456".to_owned()],
                    session_context: "req-1",
                };
                let body = serde_json::to_string(&body).unwrap();
                assert_eq!(body, text("body"));
                assert_eq!(canonical("sms.tencentcloudapi.com", "SendSms", &body), canonical_text);
            }
        }
    }

    #[test]
    fn each_code_has_its_class() {
        for (code, class_is) in [
            ("FailedOperation.InsufficientBalanceInSmsPackage", "NoBalance"),
            ("LimitExceeded.PhoneNumberThirtySecondLimit", "NumberLimit"),
            ("LimitExceeded.PhoneNumberDailyLimit", "NumberLimit"),
            ("LimitExceeded.AppDailyLimit", "Unusable"),
            ("FailedOperation.PhoneNumberInBlacklist", "Refused"),
            ("InvalidParameterValue.IncorrectPhoneNumber", "Refused"),
            ("InvalidParameterValue.TemplateParameterFormatError", "Unusable"),
            ("FailedOperation.TemplateIncorrectOrUnapproved", "Unusable"),
            ("FailedOperation.SignatureIncorrectOrUnapproved", "Unusable"),
            ("AuthFailure.SignatureExpire", "Unusable"),
            ("UnauthorizedOperation.SmsSdkAppIdVerifyFail", "Unusable"),
            ("RequestLimitExceeded.IPLimitExceeded", "Passing"),
            ("InternalError.Timeout", "Unknown"),
            ("InternalError.SigVerificationFail", "Unusable"),
            ("SomethingNew", "Unknown"),
        ] {
            let got = format!("{:?}", class(code));
            assert!(got.starts_with(&format!("{class_is}(")), "{code}: {got}");
        }
    }
}
