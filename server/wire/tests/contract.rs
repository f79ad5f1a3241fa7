//! The shared cases and the properties that hold for every input.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use serde::Deserialize;
use wire::qr::QrPayload;
use wire::{ErrorCode, Mobile, OrderNo, RequestId, SmsCode, TaskNo, TenantId, VerifyCode, clean_digits};

/// The text of a shared file, or `None` with a message where the shared folder is absent.
fn shared(path: &str) -> Option<String> {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path);
    let text = std::fs::read_to_string(&file).ok();
    if text.is_none() {
        eprintln!("skipped: {} is not here", file.display());
    }
    text
}

#[derive(Deserialize)]
struct QrCase {
    text: String,
    expect: serde_json::Value,
    why: String,
}

#[test]
fn every_shared_qr_payload_is_read_as_expected() {
    let Some(text) = shared("cases/qr-payloads.json") else { return };
    let cases: Vec<QrCase> = serde_json::from_str(&text).unwrap();
    assert!(cases.len() > 20, "only {} cases", cases.len());
    for case in cases {
        let got = match QrPayload::parse(&case.text) {
            Ok(p) => serde_json::json!({"orderNo": p.order_no, "verifyCode": p.verify_code}),
            Err(_) => "foreign".into(),
        };
        assert_eq!(got, case.expect, "{}: {:?}", case.why, case.text);
    }
}

#[derive(Deserialize)]
struct TypedCase {
    typed: String,
    expect: String,
    why: String,
}

#[test]
fn every_shared_typed_code_is_read_as_expected() {
    let Some(text) = shared("cases/typed-codes.json") else { return };
    let cases: Vec<TypedCase> = serde_json::from_str(&text).unwrap();
    assert!(cases.len() > 10, "only {} cases", cases.len());
    for case in cases {
        let got = VerifyCode::from_typed(&case.typed).map_or("error".to_owned(), |c| c.expose().to_owned());
        assert_eq!(got, case.expect, "{}: {:?}", case.why, case.typed);
    }
}

#[test]
fn nothing_is_forgiven_inside_a_qr() {
    for text in [
        "TBV:BK1:４８３９２１",
        "TBV:BK1:483 921",
        "TBV:BK1: 483921 5",
        "TBV:BK1:483921:1",
        "TBV:B\u{200b}K1:483921",
        "TBV::483921",
        "TBV:\u{200b}BK1:483921",
        r#"{"type":"TEAM_BOOKING_VERIFY","orderNo":7,"verifyCode":"483921"}"#,
        r#"{"type":"TEAM_BOOKING_VERIFY","orderNo":"BK1","verifyCode":" 483921"}"#,
        r#"{"type":"team_booking_verify","orderNo":"BK1","verifyCode":"483921"}"#,
        r#"{"type":"TEAM_BOOKING_VERIFY","orderNo":"BK1","orderNo":"BK2","verifyCode":"483921"}"#,
        r#"["TEAM_BOOKING_VERIFY","BK1","483921"]"#,
        r#"{"type":"TEAM_BOOKING_VERIFY","orderNo":"BK1","verifyCode":"483921"} x"#,
        "]Q3]Q3TBV:BK1:483921",
    ] {
        assert!(QrPayload::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn what_hardware_scanners_add_is_dropped() {
    for text in [
        "]Q3TBV:BK1:483921\r\n",
        "]Q4\\000026TBV:BK1:483921",
        "\\000026{\"type\":\"TEAM_BOOKING_VERIFY\",\"orderNo\":\"BK1\",\"verifyCode\":\"483921\"}",
        "\u{2}TBV:BK1:483921\u{3}",
        "TBV:\u{1d}BK1:\u{1d}483921",
        "Tbv: bk1 :483921",
    ] {
        let payload = QrPayload::parse(text).unwrap_or_else(|_| panic!("{text:?}"));
        assert_eq!((payload.order_no.as_str(), payload.verify_code.expose()), ("BK1", "483921"));
    }
}

#[test]
fn mobile_numbers_become_e164() {
    let ok = |text: &str| Mobile::parse(text).map(|m| m.expose().to_owned()).ok();
    assert_eq!(ok("13800138000").as_deref(), Some("+8613800138000"));
    assert_eq!(ok(" 138 0013 8000\u{200b}").as_deref(), Some("+8613800138000"));
    assert_eq!(ok("１３８００１３８０００").as_deref(), Some("+8613800138000"));
    assert_eq!(ok("+85291234567").as_deref(), Some("+85291234567"));
    for bad in
        ["", "12800138000", "1380013800", "138001380001", "+8612345678901", "+0123456789", "86138", "138-0013-8000"]
    {
        assert_eq!(ok(bad), None, "{bad:?}");
    }
}

#[test]
fn what_is_secret_prints_stars() {
    let code = VerifyCode::from_typed("483921").unwrap();
    let mobile = Mobile::parse("13800138000").unwrap();
    let secret = wire::Secret::new("hunter2");
    assert_eq!(format!("{code:?} {mobile:?} {mobile} {secret:?}"), "****** ***8000 ***8000 ***");
}

#[test]
fn an_error_code_is_found_by_its_number() {
    for code in ErrorCode::ALL {
        assert_eq!(ErrorCode::from_code(code.code()), Some(*code));
    }
    assert_eq!(ErrorCode::from_code(0), None);
}

fn order_no() -> impl Strategy<Value = OrderNo> {
    "[0-9A-Za-z_-]{1,64}".prop_map(|text| OrderNo::parse(&text).unwrap())
}

#[test]
fn an_sms_code_keeps_its_leading_zeros_and_prints_stars() {
    for (number, code) in [(0, Some("000000")), (48_392, Some("048392")), (999_999, Some("999999")), (1_000_000, None)]
    {
        assert_eq!(SmsCode::from_number(number).as_ref().map(SmsCode::expose), code);
    }
    for (typed, code) in [
        ("048392", Some("048392")),
        (" 04 83\u{200b}92\n", Some("048392")),
        ("０４８３９２", Some("048392")),
        ("", None),
        ("48392", None),
        ("0483921", None),
        ("04839a", None),
        ("048-392", None),
        ("٠٤٨٣٩٢", None),
    ] {
        assert_eq!(SmsCode::from_typed(typed).ok().as_ref().map(SmsCode::expose), code, "{typed:?}");
    }
    assert!(SmsCode::from_exact(" 048392").is_err());
    assert_eq!(format!("{:?}", SmsCode::from_number(48_392).unwrap()), "******");
}

fn verify_code() -> impl Strategy<Value = VerifyCode> {
    (VerifyCode::MIN..=VerifyCode::MAX).prop_map(|n| VerifyCode::from_number(n).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = (QrPayload::parse(&text), OrderNo::parse(&text), TaskNo::parse(&text), RequestId::parse(&text));
        let _ = (Mobile::parse(&text), VerifyCode::from_typed(&text), TenantId::parse(&text), clean_digits(&text));
    }

    #[test]
    fn no_text_near_a_payload_panics_or_passes_unchecked(
        text in r#"[\u{feff} ]?(\]Q[0-9])?(\\[0-9]{6})?(TBV:|tbv:|\{"type":"TEAM_BOOKING_VERIFY","orderNo":")?\PC{0,80}"#
    ) {
        if let Ok(payload) = QrPayload::parse(&text) {
            prop_assert_eq!(OrderNo::parse(payload.order_no.as_str()).unwrap(), payload.order_no.clone());
            prop_assert!(VerifyCode::from_exact(payload.verify_code.expose()).is_ok());
        }
    }

    #[test]
    fn payloads_come_back_as_they_went(order_no in order_no(), verify_code in verify_code()) {
        let payload = QrPayload { order_no, verify_code };
        prop_assert_eq!(QrPayload::parse(&payload.to_json()).unwrap(), payload.clone());
        prop_assert_eq!(QrPayload::parse(&payload.to_compact()).unwrap(), payload.clone());
        prop_assert_eq!(QrPayload::parse(&payload.to_compact().to_lowercase()).unwrap(), payload);
    }

    #[test]
    fn cleaning_twice_is_cleaning_once(text in any::<String>()) {
        let once = clean_digits(&text);
        prop_assert_eq!(clean_digits(&once), once);
    }

    #[test]
    fn typed_codes_come_back_however_they_are_spaced(code in verify_code(), at in 0usize..7, wide in any::<bool>()) {
        let mut typed: Vec<char> = code.expose().chars().collect();
        if wide {
            for c in &mut typed { *c = char::from_u32('０' as u32 + *c as u32 - '0' as u32).unwrap(); }
        }
        typed.insert(at, '\u{200b}');
        typed.insert(at, ' ');
        let typed: String = typed.into_iter().collect();
        prop_assert_eq!(VerifyCode::from_typed(&typed).unwrap(), code);
    }
}
