//! What is asked of the two providers, and what their answers come to.

use super::stub::{Kind, Reply, Stub};
use super::{Desk, NUMBER, message};
use crate::sms::channel::{Message, Outcome, Receipt, Recipient, Via};
use serde_json::{Value, json};
use wire::Mobile;

async fn with_backup(kind: Kind, template: &str) -> (Stub, Stub, Desk) {
    let (provider, backup) = (Stub::open(kind).await, Stub::open(Kind::Gateway).await);
    let desk = Desk::open(&json!([provider.channel("cloud", template), backup.channel("backup", "B")])).await;
    (provider, backup, desk)
}

fn number_status(code: &str) -> Value {
    json!({"Response": {"RequestId": "r", "SendStatusSet": [{"SerialNo": "", "Code": code, "Message": "m"}]}})
}

#[tokio::test]
async fn aliyun_is_asked_with_sign_template_and_the_sends_own_id() {
    let (provider, backup, desk) = with_backup(Kind::Aliyun, "SMS_154950909").await;
    let report = desk.send().await;
    assert_eq!((report.outcome, report.provider_id.as_deref()), (Outcome::Sent, Some("900619746936498440^0")));
    let asked = &provider.received()[0];
    assert_eq!((asked.method.as_str(), asked.headers["x-acs-action"].as_str()), ("POST", "SendSms"));
    for (name, value) in [
        ("PhoneNumbers", NUMBER),
        ("SignName", "城市博物馆"),
        ("TemplateCode", "SMS_154950909"),
        ("TemplateParam", r#"{"code":"048392"}"#),
        ("OutId", "send-1"),
    ] {
        assert_eq!(asked.parameter(name).as_deref(), Some(value));
    }
    // A number of another country has its prefix, without the plus sign.
    let abroad = Recipient::Mobile(Mobile::parse("+85251234567").unwrap());
    desk.channels.send(&Message { to: abroad, ..message() }).await;
    assert_eq!(provider.received()[1].parameter("PhoneNumbers").as_deref(), Some("85251234567"));
    assert_eq!(backup.count(), 0);
}

#[tokio::test]
async fn tencent_is_asked_with_what_its_template_takes() {
    let provider = Stub::open(Kind::Tencent).await;
    let mut channel = provider.channel("cloud", "1110");
    channel["params"] = json!(["code", "ttl"]);
    let desk = Desk::open(&json!([channel])).await;
    let report = desk.send().await;
    assert_eq!((report.outcome, report.provider_id.as_deref()), (Outcome::Sent, Some("5000:1")));
    assert_eq!(
        provider.received()[0].json(),
        json!({
            "PhoneNumberSet": ["+8613800138000"], "SmsSdkAppId": "1400006666", "TemplateId": "1110",
            "SignName": "城市博物馆", "TemplateParamSet": ["048392", "5"], "SessionContext": "send-1",
        })
    );
}

/// Every class of every kind of answer: what comes of the message, and how often each channel was asked.
#[tokio::test]
async fn each_failure_is_dealt_with_by_its_class() {
    let aliyun = |status: u16, code: &str| (Kind::Aliyun, status, json!({"Code": code, "Message": "m"}).to_string());
    let item = |code: &str| (Kind::Tencent, 200, number_status(code).to_string());
    let call = |code: &str| {
        (
            Kind::Tencent,
            200,
            json!({"Response": {"Error": {"Code": code, "Message": "m"}, "RequestId": "r"}}).to_string(),
        )
    };
    let bare = |kind, status: u16| (kind, status, "<html>".to_owned());
    // Twice by the provider, then by the other channel; once by each; by the provider alone.
    let (passing, unusable) = ((Outcome::Sent, 2, 1), (Outcome::Sent, 1, 1));
    let only = |outcome| (outcome, 1, 0);
    for ((kind, status, body), (outcome, asked, backed), alert) in [
        (aliyun(400, "Throttling.User"), passing, None),
        (aliyun(200, "isv.AMOUNT_NOT_ENOUGH"), unusable, Some("sms_no_balance")),
        (aliyun(200, "isv.SMS_TEMPLATE_ILLEGAL"), unusable, Some("sms_channel_down")),
        (aliyun(400, "SignatureDoesNotMatch"), unusable, Some("sms_channel_down")),
        (aliyun(400, "InvalidTimeStamp.Expired"), unusable, Some("sms_channel_down")),
        (aliyun(200, "isv.BUSINESS_LIMIT_CONTROL"), only(Outcome::NumberLimit), None),
        (aliyun(200, "isv.MOBILE_NUMBER_ILLEGAL"), only(Outcome::Refused), None),
        (aliyun(200, "isp.SYSTEM_ERROR"), only(Outcome::Unknown), None),
        (bare(Kind::Aliyun, 502), only(Outcome::Unknown), None),
        (bare(Kind::Aliyun, 200), only(Outcome::Unknown), None),
        (bare(Kind::Aliyun, 403), unusable, Some("sms_channel_down")),
        (call("RequestLimitExceeded"), passing, None),
        (call("AuthFailure.SignatureExpire"), unusable, Some("sms_channel_down")),
        (call("InternalError"), only(Outcome::Unknown), None),
        (item("FailedOperation.InsufficientBalanceInSmsPackage"), unusable, Some("sms_no_balance")),
        (item("FailedOperation.TemplateIncorrectOrUnapproved"), unusable, Some("sms_channel_down")),
        (item("LimitExceeded.PhoneNumberThirtySecondLimit"), only(Outcome::NumberLimit), None),
        (item("FailedOperation.PhoneNumberInBlacklist"), only(Outcome::Refused), None),
        (item("InternalError.Timeout"), only(Outcome::Unknown), None),
        (bare(Kind::Tencent, 500), only(Outcome::Unknown), None),
        (
            (Kind::Tencent, 200, json!({"Response": {"RequestId": "r", "SendStatusSet": []}}).to_string()),
            only(Outcome::Unknown),
            None,
        ),
    ] {
        let template = if kind == Kind::Aliyun { "SMS_1" } else { "1110" };
        let (provider, backup, desk) = with_backup(kind, template).await;
        provider.answer([Reply::Say(status, body.clone()), Reply::Say(status, body.clone())]);
        let report = desk.send().await;
        let came_to = (report.outcome, provider.count(), backup.count());
        assert_eq!(came_to, (outcome, asked, backed), "{body}: {report:?}");
        assert_eq!(desk.alerts().await, Vec::from_iter(alert), "{body}");
    }
}

#[tokio::test]
async fn a_provider_that_holds_or_cuts_the_line_is_asked_once() {
    for kind in [Kind::Aliyun, Kind::Tencent] {
        for reply in [Reply::Hold, Reply::Cut] {
            let template = if kind == Kind::Aliyun { "SMS_1" } else { "1110" };
            let (provider, backup, desk) = with_backup(kind, template).await;
            provider.answer([reply]);
            assert_eq!(desk.send().await.outcome, Outcome::Unknown);
            assert_eq!((provider.count(), backup.count()), (1, 0));
        }
    }
}

#[tokio::test]
async fn aliyun_calls_for_a_spoken_code() {
    let provider = Stub::open(Kind::Aliyun).await;
    let mut channel = provider.channel("voice", "TTS_1");
    channel.as_object_mut().unwrap().remove("sign_name");
    channel["voice"] = json!(true);
    channel["show_number"] = json!("02100000000");
    let desk = Desk::open(&json!([channel])).await;
    provider.say(200, json!({"Code": "OK", "CallId": "116012854210^10"}));
    let report = desk.channels.send(&Message { via: Via::Voice, ..message() }).await;
    assert_eq!((report.outcome, report.provider_id.as_deref()), (Outcome::Sent, Some("116012854210^10")));
    let asked = &provider.received()[0];
    assert_eq!(asked.headers["x-acs-action"], "SingleCallByTts");
    for (name, value) in [
        ("CalledNumber", NUMBER),
        ("CalledShowNumber", "02100000000"),
        ("TtsCode", "TTS_1"),
        ("TtsParam", r#"{"code":"048392"}"#),
        ("OutId", "send-1"),
    ] {
        assert_eq!(asked.parameter(name).as_deref(), Some(value));
    }
}

#[tokio::test]
async fn receipts_are_asked_for_by_number_and_the_providers_id() {
    let mobile = Mobile::parse(NUMBER).unwrap();
    let at = i64::try_from(super::START).unwrap();
    let aliyun = |status: i64, code: &str| json!({"Code": "OK", "TotalCount": "1", "SmsSendDetailDTOs": {"SmsSendDetailDTO": [{"SendStatus": status, "ErrCode": code}]}});
    let (provider, _backup, desk) = with_backup(Kind::Aliyun, "SMS_1").await;
    for (answer, receipt) in [
        (aliyun(3, "DELIVERED"), Some(Receipt::Delivered)),
        (aliyun(2, "MOBILE_NOT_ON_SERVICE"), Some(Receipt::Failed("MOBILE_NOT_ON_SERVICE".to_owned()))),
        (aliyun(1, ""), Some(Receipt::Waiting)),
        (
            json!({"Code": "OK", "TotalCount": "0", "SmsSendDetailDTOs": {"SmsSendDetailDTO": []}}),
            Some(Receipt::Waiting),
        ),
        (json!({"Code": "isv.OUT_OF_SERVICE"}), None),
    ] {
        provider.say(200, answer);
        let got = desk.channels.receipt("cloud", &mobile, "900^0", "send-1", at).await;
        assert_eq!(got.ok(), receipt);
    }
    // After an unknown end there is no id of theirs, and of all the number's messages the one that bears ours counts.
    let of = |status: i64, id: &str| json!({"SendStatus": status, "ErrCode": "", "OutId": id});
    for (ours, receipt) in [("send-1", Receipt::Delivered), ("send-9", Receipt::Waiting)] {
        let list = [of(2, "send-0"), of(3, ours), of(2, "")];
        provider.say(200, json!({"Code": "OK", "SmsSendDetailDTOs": {"SmsSendDetailDTO": list}}));
        assert_eq!(desk.channels.receipt("cloud", &mobile, "", "send-1", at).await.unwrap(), receipt);
        assert_eq!(provider.received().last().unwrap().parameter("BizId"), None);
    }
    let asked = &provider.received()[0];
    assert_eq!(asked.headers["x-acs-action"], "QuerySendDetails");
    for (name, value) in [("BizId", "900^0"), ("PhoneNumber", NUMBER), ("SendDate", "20260801")] {
        assert_eq!(asked.parameter(name).as_deref(), Some(value));
    }

    let tencent = |serial: &str, context: &str, status: &str| {
        json!({"Response": {"RequestId": "r", "PullSmsSendStatusSet": [
            {"SerialNo": "other", "SessionContext": "other", "ReportStatus": "FAIL", "Description": "x"},
            {"SerialNo": serial, "SessionContext": context, "ReportStatus": status, "Description": "DELIVRD"},
        ]}})
    };
    let (provider, _backup, desk) = with_backup(Kind::Tencent, "1110").await;
    for (answer, receipt) in [
        (tencent("5000:1", "", "SUCCESS"), Some(Receipt::Delivered)),
        // After an unknown end there is no id of theirs, and ours is found.
        (tencent("?", "send-1", "FAIL"), Some(Receipt::Failed("DELIVRD".to_owned()))),
        (tencent("?", "?", "SUCCESS"), Some(Receipt::Waiting)),
        (json!({"Response": {"Error": {"Code": "AuthFailure", "Message": "m"}, "RequestId": "r"}}), None),
    ] {
        provider.say(200, answer);
        let got = desk.channels.receipt("cloud", &mobile, "5000:1", "send-1", at).await;
        assert_eq!(got.ok(), receipt);
    }
    let asked = &provider.received()[0];
    assert_eq!(asked.headers["x-tc-action"], "PullSmsSendStatusByPhoneNumber");
    assert_eq!(asked.json()["PhoneNumber"], "+8613800138000");
    desk.channels.receipt("backup", &mobile, "1", "send-1", at).await.unwrap_err();
}

#[tokio::test]
async fn a_template_that_cannot_be_used_is_found_before_it_is_needed() {
    let aliyun = |status: i64, text: &str| json!({"Code": "OK", "TemplateStatus": status, "TemplateContent": text});
    let (provider, _backup, desk) = with_backup(Kind::Aliyun, "SMS_1").await;
    let carrier = &desk.channels.channels[0].carrier;
    for (answer, fault) in [
        (aliyun(1, "您的验证码是${code}，请勿告诉他人。"), None),
        // What the seed of many a lost day is: a message with nothing where the code should be.
        (aliyun(1, "您的验证码是${captcha}"), Some("it has the variables captcha, and `params` gives code")),
        (
            aliyun(1, "您的验证码是${code}，${ttl}分钟内有效"),
            Some("it has the variables code, ttl, and `params` gives code"),
        ),
        (aliyun(1, "您好"), Some("it has the variables none, and `params` gives code")),
        (aliyun(0, "您的验证码是${code}"), Some("the provider has not approved it yet")),
        (aliyun(2, "您的验证码是${code}"), Some("the provider has refused it or withdrawn it")),
        (json!({"Code": "isv.SMS_TEMPLATE_ILLEGAL", "Message": "m"}), Some("isv.SMS_TEMPLATE_ILLEGAL")),
    ] {
        provider.say(200, &answer);
        assert_eq!(carrier.template_fault("SMS_1").await.unwrap().as_deref(), fault, "{answer}");
    }
    provider.say(502, "<html>");
    carrier.template_fault("SMS_1").await.unwrap_err();
    assert_eq!(provider.received()[0].headers["x-acs-action"], "QuerySmsTemplate");

    let tencent = |status: i64, text: &str| {
        json!({"Response": {"RequestId": "r", "DescribeTemplateStatusSet": [
            {"TemplateId": 1110, "StatusCode": status, "TemplateContent": text, "TemplateName": "n"}
        ]}})
    };
    let (provider, _backup, desk) = with_backup(Kind::Tencent, "1110").await;
    let carrier = &desk.channels.channels[0].carrier;
    for (answer, fault) in [
        (tencent(0, "您的验证码是{1}"), None),
        (tencent(0, "您的验证码是{1}，{2}分钟内有效"), Some("it has the variables 1, 2, and `params` gives 1")),
        (tencent(1, "您的验证码是{1}"), Some("the provider has not approved it yet")),
        (tencent(-1, "您的验证码是{1}"), Some("the provider has refused it")),
        (
            json!({"Response": {"RequestId": "r", "DescribeTemplateStatusSet": []}}),
            Some("the provider does not know it"),
        ),
    ] {
        provider.say(200, &answer);
        assert_eq!(carrier.template_fault("1110").await.unwrap().as_deref(), fault, "{answer}");
    }
    provider.say(200, json!({"Response": {"Error": {"Code": "AuthFailure", "Message": "m"}, "RequestId": "r"}}));
    carrier.template_fault("1110").await.unwrap_err();
    assert_eq!(provider.received()[0].json(), json!({"International": 0, "TemplateIdSet": [1110]}));
}

#[tokio::test]
async fn the_providers_count_of_a_day_is_asked_for() {
    let (provider, _backup, desk) = with_backup(Kind::Aliyun, "SMS_1").await;
    let day = |count: u64| json!({"Code": "OK", "Data": {"TotalSize": 1, "TargetList": [{"TotalCount": count, "SendDate": "20260801"}]}});
    provider.say(200, day(40));
    provider.say(200, day(2));
    assert_eq!(desk.channels.sent_on("cloud", "20260801").await.unwrap(), 42);
    let asked = &provider.received()[0];
    assert_eq!(asked.headers["x-acs-action"], "QuerySendStatistics");
    assert_eq!(asked.parameter("StartDate").as_deref(), Some("20260801"));

    let (provider, _backup, desk) = with_backup(Kind::Tencent, "1110").await;
    let counts = json!({"FeeCount": 50, "RequestCount": 48, "RequestSuccessCount": 42});
    provider.say(200, json!({"Response": {"RequestId": "r", "SendStatusStatistics": counts}}));
    assert_eq!(desk.channels.sent_on("cloud", "20260801").await.unwrap(), 42);
    assert_eq!(provider.received()[0].json()["EndTime"], "2026080123");
    desk.channels.sent_on("backup", "20260801").await.unwrap_err();
}
