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
    /// The subject of a mail with a code.
    CodeMailSubject: "验证码", "Your code";
    /// A mail with a code; `{code}` and `{ttl}` (minutes) are put in.
    CodeMail: "您的验证码是 {code}，{ttl} 分钟内有效。请勿告诉任何人。", "Your code is {code}. It is good for {ttl} minutes. Tell it to nobody.";
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
    /// `/metrics` from elsewhere.
    MetricsInside: "/metrics 仅供本机和内网直接访问，不经过代理", "/metrics is for this machine and private networks, asked directly and not through a proxy.";
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
    /// 1400: an empty SMS code.
    SmsCodeEmpty: "验证码不能为空", "Enter the code from the message.";
    /// 1400: an ill-formed SMS code.
    SmsCodeIllFormed: "验证码必须是 6 位数字", "The code from the message is six digits.";
    /// 1400: a mailbox.
    EmailIllFormed: "邮箱地址不正确", "That is no e-mail address.";
    /// 1400: nobody speaks codes here.
    NoVoice: "暂不支持语音验证码，请使用短信", "Codes are not spoken here. Ask for a message.";
    /// 1400: a password.
    PasswordIllFormed: "密码须为 8 个字符以上", "A password has 8 characters or more.";
    /// 1403: confirmation.
    NoMobile: "您的账号没有登记手机号，请联系其他管理员", "Your account has no mobile number. Ask another admin.";
    /// 1403: a right code for a number without an account.
    NoAccount: "该手机号尚未登记，请联系工作人员", "This number is not known here. Ask the staff.";
    /// 1403: `confirm`.
    ConfirmOwnNumber: "确认用的验证码只能发送到您自己的手机号", "A code of this kind goes to your own number alone.";
    /// 1403: passwords of admins.
    AdminPassword: "管理员密码不能这样修改，请联系其他管理员或使用命令行", "An admin's password is not changed here. Ask another admin, or use the command line.";
    /// 1409: change of number.
    MobileTaken: "该手机号已被其他账号使用", "Another account has this number.";
    /// 1429: wrong passwords.
    PasswordTries: "密码错误次数过多，请稍后再试", "Too many wrong passwords. Try again later.";
    /// 1429: a tenant's sends of a day.
    SmsDailyCap: "今日验证码发送总量已达上限，请联系工作人员", "No more codes can be sent today. Ask the staff.";
    /// 2004 for SMS codes.
    SmsCodesAway: "验证码服务暂不可用，请稍后重试", "Codes cannot be sent or checked right now. Try again later.";
    /// 4002, as the design has it.
    SmsTooFrequent: "发送过于频繁请稍后再试", "You have just asked for a code. Try again later.";
    /// 4003, as the design has it, and that failed sends count.
    SmsDailyLimit: "今日发送次数已达上限（发送失败也计入今日次数）", "This number has had all its codes of today. Those that could not be sent count as well.";
    /// 4004, as the design has it.
    SmsCodeWrong: "验证码不正确", "The code is not right.";
    /// 4005, as the design has it.
    SmsCodeExpired: "验证码已过期请重新获取", "The code has run out. Ask for a new one.";
    /// 4006, as the design has it.
    SmsCodeLocked: "错误次数过多请稍后再试", "Too many wrong codes. Try again later.";
    /// 4007.
    SmsNeedCaptcha: "请先完成人机验证，再获取验证码", "First show that you are no robot, then ask for the code again.";
    /// 4008.
    SmsSendFailed: "验证码发送失败，请重试。本次尝试已计入今日次数", "The code could not be sent. Try again. This attempt counts for today.";
    /// 4009.
    SmsIpLimit: "您所在网络获取验证码过于频繁，请稍后再试", "Too many codes were asked for from your network. Try again later.";
    /// 4010.
    SmsSceneInvalid: "不支持的验证码场景", "There is no such scene for codes.";
    /// 1429: rotation.
    RotatedJustNow: "核销码刚刚更换过，请稍后再试", "The code was changed a moment ago. Try again later.";
    /// 1400: rotation without confirmation.
    ConfirmRotation: "请确认后再更换核销码", "Confirm that the code shall be changed.";
    /// 1400: a setting.
    BadSetting: "没有这个设置项，或取值不正确", "There is no such setting, or its value does not fit.";
    /// 1400 at 415: an upload.
    NotAnOrderFile: "请上传 CSV 或 XLSX 文件（Content-Type: text/csv、application/vnd.openxmlformats-officedocument.spreadsheetml.sheet 或 application/octet-stream）", "Send a CSV or XLSX file (Content-Type: text/csv, application/vnd.openxmlformats-officedocument.spreadsheetml.sheet or application/octet-stream).";
    /// 1429: uploads.
    ImportsBusy: "正在读取其他订单文件，请稍后重试", "Other order files are being read. Try again in a moment.";
    /// 1409: an order file.
    ImportReading: "文件还在读取中，请稍候", "The file is still being read. Wait a moment.";
    /// 1409: an order file.
    ImportRefused: "文件有错误，未导入任何订单：请修改后重新上传", "Something is wrong with the file, and nothing was imported. Correct it and upload it again.";
    /// 1409: an order file.
    ImportDropped: "预览已失效，未导入任何订单：请重新上传文件", "This preview has run out, and nothing was imported. Upload the file again.";
    /// An order file.
    FileEmpty: "文件是空的", "the file is empty";
    /// An order file.
    FileUnreadable: "无法读取文件", "the file cannot be read";
    /// An order file.
    FileOldExcel: "这是旧版 Excel 文件（.xls）或加密文件：请另存为不带密码的 .xlsx，或 CSV UTF-8", "this is an old Excel file (.xls), or an encrypted one: save it as .xlsx without a password, or as CSV UTF-8";
    /// An order file.
    FileDamaged: "不是有效的 XLSX 文件，或文件已损坏：请重新导出", "this is no valid XLSX file, or it is damaged: export it again";
    /// An order file.
    FileUnpacksTooLarge: "文件内容过大（解压后超过 256 MiB，或文字超过 32 MiB，或样式等内容超过 4 MiB）：请只复制数据到新的工作簿，或另存为 CSV UTF-8", "the file holds too much (over 256 MiB unpacked, over 32 MiB of texts, or over 4 MiB of styles and the like): copy the values alone into a new workbook, or save it as CSV UTF-8";
    /// An order file.
    TooManyOrders: "订单超过 100000 行：请拆分后分别导入", "more than 100000 orders: split the file and import the parts";
    /// A line of an order file.
    RecordTooLarge: "这一行过长（超过 1 MiB 或 16384 列）：请检查是否有没有成对的引号", "this line is too long (over 1 MiB, or over 16384 columns): perhaps a quotation mark is never closed";
    /// An order file.
    ColumnMissing: "表头缺少“{zh}”（{en}）一列", "the header has no column {en} ({zh})";
    /// An order file.
    ColumnTwice: "表头有两列“{zh}”（{en}）", "the header has the column {en} ({zh}) twice";
    /// A line of an order file.
    RowTooLong: "这一行的单元格比表头多：含分隔符的内容须加引号", "this line has more cells than the header: a text with a delimiter in it must stand in quotation marks";
    /// A cell of an order file.
    CellEmpty: "不能为空", "must not be empty";
    /// A cell of an order file.
    CellGarbled: "有无法识别的字符：请将文件另存为 CSV UTF-8", "has characters that cannot be read: save the file as CSV UTF-8";
    /// A cell of an order file.
    CellRounded: "电子表格已把这个数字四舍五入（如 1.9E+18），原来的数字已丢失：请把该列设为“文本”格式，重新填写或导出", "a spreadsheet has rounded this number (like 1.9E+18) and its digits are lost: format the column as text and fill it in or export it again";
    /// A cell of an order file.
    CellIsMoment: "这里是日期或时间，不是号码：请把该列设为“文本”格式", "this is a date or a time: format the column as text";
    /// A cell of an order file.
    NameIllFormed: "姓名须为 1 到 64 个字，不能有控制字符", "a name has 1 to 64 characters, and no control characters";
    /// A cell of an order file.
    PartyIllFormed: "人数须为 1 到 100000 的整数", "must be a whole number from 1 to 100000";
    /// A cell of an order file.
    MomentIllFormed: "时间须为场馆当地时间，如 2026-08-01 09:30", "must be a date and a time of the venue's, like 2026-08-01 09:30";
    /// A cell of an order file.
    MomentSkipped: "场馆所在时区没有这个时间（夏令时切换）", "there is no such time in the venue's zone: its clocks are put forward over it";
    /// A cell of an order file.
    StatusUnknown: "状态须为：待支付、已支付、已核销、退款中、已退款、已取消（或 pending_payment、paid、consumed、refunding、refunded、cancelled）", "must be pending_payment, paid, consumed, refunding, refunded or cancelled (or 待支付, 已支付, 已核销, 退款中, 已退款, 已取消)";
    /// A cell of an order file.
    TaskNoIllFormed: "任务号不正确：只能是字母、数字、- 和 _，最多 64 位", "a task number is up to 64 letters, digits, - and _";
    /// A line of an order file.
    OrderTwice: "与第 {line} 行是同一个订单号", "the same order number as in line {line}";
    /// A line of an order file.
    IllegalStep: "订单现在是“{from}”，不能改为“{to}”", "the order is {from} and may not become {to}";
    /// A line of an order file.
    ChangedSincePreview: "预览之后这个订单有变化（现在是“{from}”）：请重新上传文件", "the order has changed since the preview (it is {from} now): upload the file again";
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
