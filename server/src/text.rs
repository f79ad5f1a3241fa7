//! What people read in answers, in zh-CN and en; the one place for the server's texts.

/// A language that answers come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Lang {
    /// Simplified Chinese, the default.
    #[default]
    Zh,
    /// English.
    En,
}

impl Lang {
    /// The caller's choice by `Accept-Language` (RFC 9110, 12.5.4): the language of ours with the highest weight.
    pub(crate) fn from_accept(header: &str) -> Self {
        let weight = |want: &str| {
            header
                .split(',')
                .filter_map(|item| {
                    let (range, params) = item.split_once(';').unwrap_or((item, ""));
                    let range = range.trim();
                    let primary = range.split('-').next().unwrap_or("");
                    let q = params.trim().strip_prefix("q=").map_or(Some(1.0), |q| q.trim().parse::<f32>().ok())?;
                    (primary.eq_ignore_ascii_case(want)).then_some(q)
                })
                .fold(0.0, f32::max)
        };
        if weight("en") > weight("zh") { Self::En } else { Self::Zh }
    }
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident: $zh:literal, $en:literal;)*) => {
        /// A text for people.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Text { $($(#[$doc])* $name,)* }

        impl Text {
            /// The text in a language.
            pub(crate) const fn say(self, lang: Lang) -> &'static str {
                match (self, lang) {
                    $((Self::$name, Lang::Zh) => $zh, (Self::$name, Lang::En) => $en,)*
                }
            }
        }
    };
}

texts! {
    /// 1400 without a better text.
    BadRequest: "请求有误，请检查后重试", "The request is not right. Check it and try again.";
    /// 1400: a field is missing, ill-typed or out of range.
    BadField: "请求中有一项缺失或不正确", "A field of the request is missing or not right.";
    /// 1400: no JSON.
    BadJson: "请求内容不是有效的 JSON", "The body is not valid JSON.";
    /// 1400 at 413.
    TooLarge: "请求内容过大", "The body is too large.";
    /// 1400 at 408.
    TooSlow: "请求内容没有及时传完，请重试", "The body did not arrive in time. Try again.";
    /// 4001.
    MobileInvalid: "手机号格式不正确", "That is no mobile number.";
    /// 1400 at 415.
    NotJson: "请求内容须为 JSON（Content-Type: application/json）", "The body must be JSON (Content-Type: application/json).";
    /// 1400 at 405.
    WrongMethod: "该地址不支持此请求方法", "This address does not take that method.";
    /// 1400: an empty verify code.
    CodeEmpty: "核销码不能为空", "Enter the verify code.";
    /// 1400: an ill-formed verify code.
    CodeIllFormed: "核销码必须是首位非 0 的 6 位数字", "A verify code is six digits, the first of them not 0.";
    /// 1400: an ill-formed order number.
    OrderNoIllFormed: "订单号不正确：只能是字母、数字、- 和 _，最多 64 位", "An order number is up to 64 letters, digits, - and _.";
    /// 1400: several tenants and none named.
    TenantMissing: "请用 tenant-id 指明租户", "Name the tenant in the header tenant-id.";
    /// 1400: a task that is not known.
    TaskUnknown: "没有这个任务号", "There is no task with that number.";
    /// 1400: a guide that is not known.
    GuideUnknown: "有讲解员尚未登记，请先登记", "A guide is not known yet. Add the guide first.";
    /// 1401.
    NotSignedIn: "请先登录", "Sign in first.";
    /// 1401: one text for unknown name and wrong password.
    WrongPassword: "用户名或密码不正确", "The user name or the password is wrong.";
    /// 1401: a sign-in link that is used up, run out or made up.
    LinkUsed: "登录链接无效或已使用，请索取新的链接", "This sign-in link has been used or has run out. Ask for a new one.";
    /// 1401: no or a wrong API key.
    WrongApiKey: "API 密钥无效", "The API key is not valid.";
    /// 1403: the role may not.
    Forbidden: "您没有权限进行此操作", "You may not do this.";
    /// 1403: a write from another site.
    OtherOrigin: "请求来自其他网站，已拒绝", "The request came from another site and was refused.";
    /// 1403: another tenant than the session's.
    OtherTenant: "租户与登录信息不符", "The tenant is not the one you are signed in to.";
    /// 1404.
    NotFound: "没有找到", "There is nothing here.";
    /// 1409: the request id is taken.
    RequestIdTaken: "requestId 已用于其他核销，请换一个", "The requestId belongs to another redemption. Use a new one.";
    /// 1409: an illegal status change.
    IllegalChange: "订单当前状态不允许这样变更", "An order in this status may not be changed so.";
    /// 1429.
    TooMany: "操作过于频繁，请稍后重试", "Too many attempts. Try again later.";
    /// 1500.
    Internal: "系统出错了，请稍后重试", "Something went wrong on our side. Try again later.";
    /// 1503.
    Unavailable: "系统暂时无法确认结果，请稍后重试", "The system cannot confirm this right now. Try again.";
    /// 2001.
    NoSuchOrder: "没有找到该订单", "There is no such order.";
    /// 2002.
    NotPaid: "订单当前状态不允许核销", "The order's status does not allow it to be redeemed.";
    /// 2003.
    CodeInvalid: "核销码无效，请让游客刷新后重试", "The code is not valid now. Ask the visitor to refresh it.";
    /// 2004.
    CodesAway: "核销码服务暂不可用，请稍后重试", "The code service is not available. Try again later.";
    /// 2005.
    TooFrequent: "核销尝试过于频繁，请稍后重试", "Too many attempts to redeem. Try again later.";
    /// 2006.
    CodeAmbiguous: "有多个订单使用此核销码，请选择订单", "More than one order has this code. Pick the order.";
    /// 2007.
    Frozen: "账号已被冻结，请联系管理员", "Your account is frozen. Ask an admin.";
    /// 1503: compensation and reversal.
    NoConfirmation: "此操作需要短信确认，短信功能尚未启用", "This needs a confirmation by SMS, which is not set up yet.";
    /// 1429: rotation.
    RotatedJustNow: "核销码刚刚更换过，请稍后再试", "The code was changed a moment ago. Try again later.";
    /// 1400: rotation without confirmation.
    ConfirmRotation: "请确认后再更换核销码", "Confirm that the code shall be changed.";
    /// 1400: a setting.
    BadSetting: "没有这个设置项，或取值不正确", "There is no such setting, or its value does not fit.";
    /// The visitor's page has not been built.
    PagesNotBuilt: "页面尚未构建：请运行 npm run build 后重新构建服务端。接口已可使用。", "The pages have not been built: run npm run build and build the server again. The API is at work.";
}

#[cfg(test)]
mod tests {
    use super::Lang;

    #[test]
    fn the_language_with_the_highest_weight_wins_and_chinese_is_the_default() {
        for (header, want) in [
            ("", Lang::Zh),
            ("en", Lang::En),
            ("en-GB,en;q=0.9,zh;q=0.5", Lang::En),
            ("zh-CN,zh;q=0.9,en;q=0.8", Lang::Zh),
            ("en;q=0.2, zh-TW", Lang::Zh),
            ("fr, en;q=0.1", Lang::En),
            ("fr", Lang::Zh),
            ("en;q=0", Lang::Zh),
            ("en;q=x,,;;q=\u{1}", Lang::Zh),
        ] {
            assert_eq!(Lang::from_accept(header), want, "{header:?}");
        }
    }
}
