//! What channels and networks have said, in words, with what to do about it.

use crate::text::Text;

/// What a channel's answer comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) text: Text,
    /// The class of failure (A to E), where it is one.
    pub(super) class: Option<char>,
}

/// Codes and words that a reason may hold, in lower case, the more special ones first.
const CAUSES: &[(&[&str], Text, Option<char>)] = &[
    (&["there is no channel"], Text::CauseNoChannel, None),
    (&["five times in a row"], Text::CauseResting, None),
    (&["as many messages as it takes"], Text::CauseFull, None),
    (&["no encrypted connection"], Text::CauseTls, Some('B')),
    (&["no connection"], Text::CauseNoConnection, Some('A')),
    (&["no answer", "connection broke", "system_error", "signaturenonceused"], Text::CauseUnclear, Some('E')),
    (&["amount_not_enough", "out_of_service", "insufficientbalance", "arrears"], Text::CauseBalance, Some('B')),
    (
        &["business_limit_control", "mobile_send_limit", "deliveryfrequencylimit", "limitexceeded.phonenumber"],
        Text::CauseNumberLimit,
        Some('C'),
    ),
    (
        &[
            "mobile_number_illegal",
            "mobile_in_black",
            "incorrectphonenumber",
            "phonenumberinblacklist",
            "countryorregion",
        ],
        Text::CauseNumber,
        Some('D'),
    ),
    (
        &["black_key", "content", "sensitiveword", "param_length_limit", "param_not_support_url", "prohibiteduseurl"],
        Text::CauseContent,
        Some('D'),
    ),
    (
        &["missing_parameters", "templateparam", "invalid_json_param", "template_params"],
        Text::CauseVariables,
        Some('B'),
    ),
    (&["template"], Text::CauseTemplate, Some('B')),
    (&["sms_sign", "sign_name", "signatureincorrectorunapproved", "sms_signature"], Text::CauseSignName, Some('B')),
    (&["timestamp", "signatureexpire", "requesttime"], Text::CauseClock, Some('B')),
    (
        &[
            "signature",
            "accesskey",
            "secretid",
            "sigverificationfail",
            "http 401",
            "http 403",
            "smtp 530",
            "smtp 534",
            "smtp 535",
            "smtp 538",
        ],
        Text::CauseKey,
        Some('B'),
    ),
    (&["permission", "unauthorized", "whitelist", "forbidden", "ipinblacklist"], Text::CausePermission, Some('B')),
    (
        &[
            "throttling",
            "serviceunavailable",
            "requestlimitexceeded",
            "sendingratelimit",
            "http 429",
            "http 503",
            "smtp 4",
        ],
        Text::CauseThrottled,
        Some('A'),
    ),
    (&["limit_control", "limitexceeded", "day_limit"], Text::CauseAccountCap, Some('B')),
    (&["internalerror", "http 5"], Text::CauseUnclear, Some('E')),
];

/// What a channel's reason comes to.
pub(super) fn cause(reason: &str) -> Cause {
    if reason == "taken" {
        return Cause { text: Text::CauseTaken, class: None };
    }
    let reason = reason.to_lowercase();
    let known = CAUSES.iter().find(|(words, ..)| words.iter().any(|word| reason.contains(word)));
    known.map_or(Cause { text: Text::CauseOther, class: None }, |(_, text, class)| Cause { text: *text, class: *class })
}

/// Why a message that was taken did not arrive, by the network's code. Those of the mainland's gateways have no common
/// list; these are the ones that are the same everywhere, and the providers' own names.
pub(super) fn not_delivered(code: &str) -> Text {
    let code = code.to_uppercase();
    let has = |words: &[&str]| words.iter().any(|word| code.contains(word));
    if has(&["EXPIRED", "POWER_OFF", "SHUTDOWN", "ABSENT"]) {
        Text::ReceiptOff
    } else if has(&["NOT_ON_SERVICE", "UNDELIV", "DB:0102"]) {
        Text::ReceiptStopped
    } else if has(&["EMPTY", "CB:0001", "CB:0053", "DB:0101", "ILLEGAL"]) {
        Text::ReceiptNoNumber
    } else if has(&["BLACK", "REJECT"]) {
        Text::ReceiptBlocked
    } else if has(&["SEND_LIMIT"]) {
        Text::ReceiptLimit
    } else if has(&["TERMINAL"]) {
        Text::ReceiptTerminal
    } else {
        Text::ReceiptOther
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_channels_say_is_told_with_its_class() {
        for (reason, text, class) in [
            ("taken", Text::CauseTaken, None),
            ("no connection, twice", Text::CauseNoConnection, Some('A')),
            ("no encrypted connection with log-in can be made", Text::CauseTls, Some('B')),
            ("no answer in time", Text::CauseUnclear, Some('E')),
            ("HTTP 401", Text::CauseKey, Some('B')),
            ("HTTP 503, twice", Text::CauseThrottled, Some('A')),
            ("HTTP 500", Text::CauseUnclear, Some('E')),
            ("HTTP 404", Text::CauseOther, None),
            ("SMTP 535", Text::CauseKey, Some('B')),
            ("SMTP 451, twice", Text::CauseThrottled, Some('A')),
            ("isv.AMOUNT_NOT_ENOUGH", Text::CauseBalance, Some('B')),
            ("isv.SMS_TEMPLATE_ILLEGAL", Text::CauseTemplate, Some('B')),
            ("isv.TEMPLATE_MISSING_PARAMETERS", Text::CauseVariables, Some('B')),
            ("isv.SMS_SIGNATURE_ILLEGAL", Text::CauseSignName, Some('B')),
            ("isv.BUSINESS_LIMIT_CONTROL", Text::CauseNumberLimit, Some('C')),
            ("isv.DAY_LIMIT_CONTROL", Text::CauseAccountCap, Some('B')),
            ("isv.MOBILE_NUMBER_ILLEGAL", Text::CauseNumber, Some('D')),
            ("isp.RAM_PERMISSION_DENY", Text::CausePermission, Some('B')),
            ("isp.SYSTEM_ERROR", Text::CauseUnclear, Some('E')),
            ("SignatureDoesNotMatch", Text::CauseKey, Some('B')),
            ("SignatureNonceUsed", Text::CauseUnclear, Some('E')),
            ("InvalidTimeStamp.Expired", Text::CauseClock, Some('B')),
            ("Throttling.User", Text::CauseThrottled, Some('A')),
            ("FailedOperation.InsufficientBalanceInSmsPackage", Text::CauseBalance, Some('B')),
            ("FailedOperation.SignatureIncorrectOrUnapproved", Text::CauseSignName, Some('B')),
            ("FailedOperation.TemplateIncorrectOrUnapproved", Text::CauseTemplate, Some('B')),
            ("InvalidParameterValue.TemplateParameterFormatError", Text::CauseVariables, Some('B')),
            ("FailedOperation.ContainSensitiveWord", Text::CauseContent, Some('D')),
            ("LimitExceeded.PhoneNumberDailyLimit", Text::CauseNumberLimit, Some('C')),
            ("LimitExceeded.AppDailyLimit", Text::CauseAccountCap, Some('B')),
            ("AuthFailure.SignatureFailure", Text::CauseKey, Some('B')),
            ("AuthFailure.SignatureExpire", Text::CauseClock, Some('B')),
            ("RequestLimitExceeded", Text::CauseThrottled, Some('A')),
            ("InternalError.Timeout", Text::CauseUnclear, Some('E')),
            ("something new", Text::CauseOther, None),
        ] {
            assert_eq!(cause(reason), Cause { text, class }, "{reason}");
        }
    }

    #[test]
    fn receipts_are_told_in_words() {
        for (code, text) in [
            ("EXPIRED", Text::ReceiptOff),
            ("MOBILE_NOT_ON_SERVICE", Text::ReceiptStopped),
            ("UNDELIV", Text::ReceiptStopped),
            ("DB:0101", Text::ReceiptNoNumber),
            ("MOBILE_IN_BLACK", Text::ReceiptBlocked),
            ("REJECTD", Text::ReceiptBlocked),
            ("MOBILE_SEND_LIMIT", Text::ReceiptLimit),
            ("MOBILE_TERMINAL_ERROR", Text::ReceiptTerminal),
            ("MK:9999", Text::ReceiptOther),
        ] {
            assert_eq!(not_delivered(code), text, "{code}");
        }
    }
}
