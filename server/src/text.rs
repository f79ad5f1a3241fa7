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
    /// Of a command line.
    pub(crate) fn of(chinese: bool) -> Self {
        if chinese { Self::Zh } else { Self::En }
    }

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
            /// The text in a language, with these put in where their names stand in braces.
            pub(crate) fn with(self, lang: Lang, values: &[(&str, &dyn std::fmt::Display)]) -> String {
                let mut text = String::new();
                let mut rest = self.say(lang);
                while let Some((before, (name, after))) =
                    rest.split_once('{').and_then(|(before, inner)| Some((before, inner.split_once('}')?)))
                {
                    text += before;
                    match values.iter().find(|(known, _)| *known == name) {
                        Some((_, value)) => text += &value.to_string(),
                        None => text += &format!("{{{name}}}"),
                    }
                    rest = after;
                }
                text + rest
            }

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
    WrongPassword: "用户名或密码不正确；连续输错五次后，十分钟内不再核对", "The user name or the password is wrong. After five wrong ones none is checked for ten minutes.";
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
    /// `sms trace`: what it is about.
    TraceOf: "号码 {to}，租户 {tenant}，{day}（{zone}）", "number {to}, tenant {tenant}, {day} ({zone})";
    /// `sms trace`, first.
    TraceRequests: "1. 今天到达服务器并进入发送的请求：{count} 次", "1. requests of today that reached the server and went on to a channel: {count}";
    /// `sms trace`, first: one send.
    TraceSend: "{time} {scene} {via}，来自 {from}：{outcome}，发送号 {id}，由服务器 {server} 发送", "{time} {scene} {via}, from {from}: {outcome}, send {id}, by server {server}";
    /// `sms trace`: a send without an address.
    TraceNoAddress: "接口密钥或 doctor sms", "an API key or doctor sms";
    /// `sms trace`, first: no send.
    TraceNothing: "今天没有发送记录：请求没有到达服务器，或在发送之前就被拒绝。号码或场景不对（4001、4010）、冷却或次数上限（4002、4003）、锁定（4006）、人机验证（4007）、网络或租户上限（4009、1429）、验证码服务不可用（2004）都不留发送记录，只在日志中", "there is no send today: no request reached the server, or it was refused before it came to one. A wrong number or scene (4001, 4010), cool-down and limits (4002, 4003), a lock (4006), a captcha (4007), an address's or the tenant's limit (4009, 1429) and an unreachable code store (2004) leave no send, only a line in the log";
    /// `sms trace`, second.
    TraceCodes: "2. 验证码存储（不显示验证码本身）", "2. the code store (never which code)";
    /// `sms trace`, second: the codes are in another process.
    TraceElsewhere: "无法从这里查看：验证码在服务器进程的内存中（`code_store.url` 为 memory:）；请看第 1 项和日志", "cannot be looked at from here: codes are in the server's memory (`code_store.url` is memory:); go by 1. and the log";
    /// `sms trace`, second: the store is away.
    TraceCodesAway: "验证码存储无法访问：{why}。", "the code store is away: {why}";
    /// `sms trace`, second: a server with other settings.
    TraceOtherSpace: "服务器 {server} 的 `code_store.prefix` 与本设置不同：它发出的验证码在这里查不到，在用本设置的服务器上也会被判为过期", "server {server} has another `code_store.prefix` than these settings: its codes are not seen here, and count as expired on servers with these settings";
    /// `sms trace`, second: a scene.
    TraceScene: "{scene}：{code}；{wait}；{tries}；本小时 {hour}/{hourly} 次，今天 {day}/{daily} 次", "{scene}: {code}; {wait}; {tries}; {hour} of {hourly} sends in this hour, {day} of {daily} today";
    /// `sms trace`, second.
    TraceAlive: "验证码有效，还有 {left}", "a code is alive, for {left} more";
    /// `sms trace`, second.
    TraceNoCode: "没有有效的验证码", "no code is alive";
    /// `sms trace`, second.
    TraceCoolDown: "{left} 后可再次发送", "the next send in {left}";
    /// `sms trace`, second.
    TraceNoCoolDown: "没有冷却", "no cool-down";
    /// `sms trace`, second.
    TraceTries: "还可试 {tries} 次", "{tries} tries left";
    /// `sms trace`, second.
    TraceLocked: "已锁定，还有 {left}", "locked for {left} more";
    /// `sms trace`, second.
    TraceUntouched: "其他场景没有任何记录", "nothing is known of the other scenes";
    /// `sms trace`, second: where all that was asked about is untouched.
    TraceUnknown: "所查的场景都没有任何记录", "nothing is known of any scene asked about";
    /// `sms trace`, third.
    TraceAnswers: "3. 通道的答复", "3. what the channels answered";
    /// `sms trace`, third: a channel's answer.
    TraceAnswer: "{time} {channel}：{answer}", "{time} {channel}: {answer}";
    /// `sms trace`, third: the provider's own id.
    TraceProviderId: "，通道侧编号 {id}", ", the provider's id {id}";
    /// `sms trace`, fourth.
    TraceReceipts: "4. 回执", "4. receipts";
    /// `sms trace`, fourth.
    TraceReceipt: "{time} {channel}：{receipt}", "{time} {channel}: {receipt}";
    /// `sms trace`: there is nothing under a heading.
    TraceNone: "没有", "none";
    /// A receipt.
    ReceiptDelivered: "已送达手机", "on the phone";
    /// A receipt.
    ReceiptWaiting: "运营商还没有结果，过一两分钟再查", "the network does not say yet; ask again in a minute or two";
    /// A receipt.
    ReceiptFailed: "没有送达：{why}（{code}）", "not delivered: {why} ({code})";
    /// A receipt that could not be asked for.
    ReceiptAway: "查询不到：{why}", "it could not be asked for: {why}";
    /// A channel without receipts.
    ReceiptNever: "这种通道没有回执：请用发送号 {id} 到网关那里查询", "a channel of this kind keeps no receipts: ask the gateway about send {id}";
    /// A receipt that cannot be asked for.
    ReceiptGone: "通道已不在设置中，无法查询：请在服务商控制台按发送号 {id} 或号码查找", "the channel has left the settings: look for send {id} or the number in the provider's console";
    /// Why a message was not delivered.
    ReceiptOff: "手机长时间关机或不在服务区", "the number was switched off or out of reach for a long time";
    /// Why a message was not delivered.
    ReceiptStopped: "号码已停机、挂起或暂时不能接收", "the number is suspended or cannot receive";
    /// Why a message was not delivered.
    ReceiptNoNumber: "空号或号码无效", "there is no such number";
    /// Why a message was not delivered.
    ReceiptBlocked: "被运营商拒收，或号码在黑名单中", "the network refused it, or the number is on a list of those who want none";
    /// Why a message was not delivered.
    ReceiptLimit: "号码超过了运营商的接收上限", "the number has had more than the network lets through";
    /// Why a message was not delivered.
    ReceiptTerminal: "手机本身的问题（如短信已满）", "the phone itself could not take it (its memory is full, for one)";
    /// Why a message was not delivered.
    ReceiptOther: "运营商给出的原因，请按代码在服务商的回执代码表中查找", "for a reason of the network's; look the code up in the provider's list of receipts";
    /// `sms trace`, fifth.
    TracePhone: "5. 手机：看骚扰拦截、垃圾短信箱和按发送号码设置的屏蔽；是否收到的是较早的一条（只有最新一条有效）", "5. the phone: look at its spam box, its interception of unknown senders and its blocked numbers; and whether it is an older message (the newest alone counts)";
    /// `sms trace`: the conclusion.
    TraceEnd: "结论：{text}", "so: {text}";
    /// `sms trace`: a conclusion.
    EndPrefix: "该号码不在允许的号段内（`sms.allowed_prefixes`），每次请求都会被拒绝（4001）", "this number begins with none of `sms.allowed_prefixes`: each request is refused with 4001";
    /// `sms trace`: a conclusion.
    EndAway: "验证码存储无法访问，现在不能发送也不能校验：运行 guidepost-server doctor，按提示处理", "the code store is away, and nothing can be sent or checked now: run guidepost-server doctor and do what it says";
    /// `sms trace`: a conclusion.
    EndLocked: "场景 {scene} 因多次输错被锁定，{left} 后解锁；在那之前不会再发送，正确的验证码也不被接受", "{scene} is locked by wrong codes for {left} more: until then nothing is sent and the right code is refused too";
    /// `sms trace`: a conclusion.
    EndNothing: "请求没有到达或在发送前被拒绝：请用户再试一次并看屏幕上的提示，同时在日志中按号码后四位查找", "no request got as far as a send: have the person try once more and read what the screen says, and look for the last four digits in the log";
    /// `sms trace`: a conclusion.
    EndUsed: "{time} 的验证码已在 {used} 使用：短信收到了", "the code of {time} was used at {used}: the message did arrive";
    /// `sms trace`: a conclusion.
    EndSending: "{time} 的发送没有结束记录：正在进行，或服务器在中途停止；请稍后再试", "the send of {time} has no end: it is going on, or the server stopped in the middle; try again in a while";
    /// `sms trace`: a conclusion.
    EndNotTaken: "没有通道接收：{answer}", "no channel took it: {answer}";
    /// `sms trace`: a conclusion.
    EndNumberLimit: "服务商对该号码的上限已到（通常每小时 5 条、每天 10 条），请稍后或明天再试，换通道也无用", "the provider has had enough of this number (5 an hour and 10 a day as a rule): wait, another channel would be no way out";
    /// `sms trace`: a conclusion.
    EndRefused: "服务商拒绝了号码或内容：{answer}", "the provider refuses the number or the content: {answer}";
    /// `sms trace`: a conclusion.
    EndUnknown: "{channel} 没有明确答复，短信可能已发出：等一两分钟，没有收到就重新发送", "{channel} gave no clear answer and the message may have gone out: wait a minute or two, then send again";
    /// `sms trace`: a conclusion.
    EndFailed: "服务商说{why}", "the provider says: {why}";
    /// `sms trace`: a conclusion.
    EndDelivered: "服务商说 {time} 的短信已送达手机：看手机的拦截箱", "the provider says that the message of {time} is on the phone: look into its spam box";
    /// `sms trace`: a conclusion.
    EndTaken: "{channel} 已接收 {time} 的短信，还没有送达结果：等一两分钟再查，再看手机的拦截箱", "{channel} has taken the message of {time} and it is not known whether it arrived: ask again in a minute or two, then look into the phone's spam box";
    /// `sms trace`: there is a fault.
    TraceFault: "有问题需要处理，办法见“结论”一行", "something is wrong; the last line says what to do";
    /// A send's outcome.
    OutcomeSending: "没有结束记录", "without an end";
    /// A send's outcome.
    OutcomeSent: "通道已接收", "taken by a channel";
    /// A send's outcome.
    OutcomeUnknown: "结果不明", "unknown end";
    /// A send's outcome.
    OutcomeNotTaken: "没有通道接收", "no channel took it";
    /// A send's outcome.
    OutcomeNumberLimit: "服务商的号码上限", "the provider's limit for the number";
    /// A send's outcome.
    OutcomeRefused: "被服务商拒绝", "refused by the provider";
    /// What a channel said.
    CauseTaken: "已接收", "taken";
    /// What a channel said.
    CauseNoConnection: "连接不上：检查通道地址、证书、防火墙和对方是否在运行", "no connection: check the channel's address, its certificate, the firewall, and whether they run";
    /// What a channel said.
    CauseTls: "无法建立加密连接：检查证书（自有 CA 请写入通道的 `ca`）和地址中的主机名", "no encrypted connection: check the certificate (a CA of your own goes into the channel's `ca`) and the host in the address";
    /// What a channel said.
    CauseThrottled: "对方暂时忙或限流：稍后再试，必要时降低通道的 `rate`", "they are busy or throttle: try again in a while, and lower the channel's `rate` if it goes on";
    /// What a channel said.
    CauseBalance: "余额或套餐用完：请充值", "there is no money or no message left in the package: top it up";
    /// What a channel said.
    CauseTemplate: "模板不存在或未审核通过：在服务商控制台核对该场景的模板号", "the template is not there or not approved: check the scene's template in the provider's console";
    /// What a channel said.
    CauseVariables: "模板变量不符：核对通道的 `params` 与模板内容", "the template takes other variables: compare the channel's `params` with the template's text";
    /// What a channel said.
    CauseSignName: "短信签名不符或未审核通过：核对通道的 `sign_name`", "the signature is wrong or not approved: check the channel's `sign_name`";
    /// What a channel said.
    CauseKey: "密钥或密码不对：核对通道的 `key_id` 和 `secret`", "key or password are wrong: check the channel's `key_id` and `secret`";
    /// What a channel said.
    CauseClock: "本机时间与服务商相差太多：请开启 NTP 校时", "this machine's clock is too far from the provider's: set it by NTP";
    /// What a channel said.
    CausePermission: "该密钥没有发送短信的权限，或本机地址不在服务商的白名单中", "this key may not send messages, or this machine's address is not on the provider's list";
    /// What a channel said.
    CauseAccountCap: "本账号在服务商处的发送上限已到：在控制台提高上限", "the account's own limit at the provider is reached: raise it in their console";
    /// What a channel said.
    CauseNumberLimit: "服务商对该号码的上限：稍后或明天再试", "the provider's limit for this number: wait, or try tomorrow";
    /// What a channel said.
    CauseNumber: "号码不正确或在服务商的黑名单中", "the number is wrong or on the provider's black list";
    /// What a channel said.
    CauseContent: "内容被拒绝（敏感词等）：修改模板", "the content is refused (a forbidden word, for one): change the template";
    /// What a channel said.
    CauseUnclear: "没有明确答复，可能已经发出，不会再发一次", "no clear answer: it may have gone out, and is not sent again";
    /// What a channel said.
    CauseResting: "该通道连续失败五次，休息 30 秒", "the channel has failed five times in a row and rests for 30 s";
    /// What a channel said.
    CauseFull: "该通道已达到 `rate`，没有空位", "the channel is at its `rate` and had no place";
    /// What a channel said.
    CauseNoChannel: "没有可用的通道：请在设置中加入 [[sms.channels]]", "there is no channel for it: add [[sms.channels]] to the settings";
    /// What a channel said.
    CauseOther: "按代码在服务商的错误码表中查找", "look the code up in the provider's list of errors";
    /// `doctor sms`: what will be done.
    TrialPlan: "将向 {to} 真实发送 {count} 条消息（按条计费）；同一通道两条之间相隔 {pause} 秒。服务商通常限制同一号码每分钟 1 条、每小时 5 条、每天 10 条", "real messages will go out to {to}, {count} in all, and be charged; {pause} s lie between two by the same channel. Providers take 1 a minute, 5 an hour and 10 a day for one number as a rule";
    /// `doctor sms`: a channel that is tried.
    TrialChannel: "  {channel}：{scenes}", "  {channel}: {scenes}";
    /// `doctor sms`: a channel that is not.
    TrialLeftOut: "  {channel}：不试，{why}", "  {channel}: not tried, {why}";
    /// `doctor sms`: why not.
    TrialNeedsMail: "发往邮箱的通道需要 --send-to-mail 邮箱", "a channel to mailboxes needs --send-to-mail ADDRESS";
    /// `doctor sms`: why not.
    TrialNeedsMobile: "发往手机的通道需要 --send-to 号码", "a channel to phones needs --send-to NUMBER";
    /// `doctor sms`: a channel that speaks.
    TrialVoice: "语音", "by voice";
    /// `doctor sms`: more than a provider takes in an hour.
    TrialTooMany: "  注意：每个通道 {count} 条超过通常的每小时 5 条，后面的会被服务商拒绝；可用 --scene 分批", "  note: {count} by one channel are more than the usual 5 an hour, and the provider will refuse the last ones; try some at a time with --scene";
    /// `doctor sms`: the question.
    TrialAsk: "确定发送吗？[y/N] ", "Send them? [y/N] ";
    /// `doctor sms`: a number that gets no codes.
    TrialPrefix: "这个号码的号段不发送验证码：见 sms.allowed_prefixes", "numbers that begin so get no codes: see sms.allowed_prefixes";
    /// `doctor sms`: refused.
    TrialNoTerminal: "没有终端可以询问：确定要发送请加 --yes", "there is no terminal to ask on: add --yes if they are to be sent";
    /// `doctor sms`: the answer was no.
    TrialNothingSent: "没有发送任何消息", "nothing was sent";
    /// `doctor sms`: nothing to try.
    TrialNoChannel: "没有可试的通道：请在设置中加入 [[sms.channels]]", "there is no channel to try: add [[sms.channels]] to the settings";
    /// `doctor sms`: one try.
    TrialTaken: "通过  {channel} {scene} 模板 {template}：已接收{id}，发送号 {send}", "taken  {channel} {scene} template {template}: taken{id}, send {send}";
    /// `doctor sms`: one try.
    TrialFailed: "失败  {channel} {scene} 模板 {template}：{class}{why}（{reason}），发送号 {send}", "failed {channel} {scene} template {template}: {class}{why} ({reason}), send {send}";
    /// `doctor sms`: one try that was left out.
    TrialSkipped: "未试  {channel} {scene}：服务商已拒绝再向该号码发送，明天再试", "left   {channel} {scene}: the provider takes no more for this number; try it tomorrow";
    /// `doctor sms`: class of a failure.
    TrialClass: "{class} 类，", "class {class}, ";
    /// `doctor sms`: the scene's own name is the template.
    TrialOwnTemplate: "（场景名）", "(the scene's name)";
    /// `doctor sms`: the text of a mail.
    TrialMailTemplate: "（邮件正文）", "(the mail's text)";
    /// `doctor sms`: while waiting.
    TrialReceipts: "等待回执，最多 {seconds} 秒", "waiting for receipts, {seconds} s at most";
    /// `doctor sms`: one receipt.
    TrialReceipt: "回执  {channel} {scene}：{receipt}", "receipt {channel} {scene}: {receipt}";
    /// `doctor sms`: the end.
    TrialDone: "{taken} 条已接收，{failed} 条失败。请在手机上逐条核对：每个场景的文字，以及验证码是否在其中（变量名不符时短信里是空的）", "{taken} taken, {failed} failed. Now look at each message on the phone: the scene's words, and whether the code stands in them (with a wrong variable it is empty)";
    /// `doctor sms`: there is a fault.
    TrialFault: "有通道或场景不能使用", "a channel or scene cannot be used";
    /// A command line: what the codes are for.
    UnknownScene: "没有场景 {scene}；有：{known}", "there is no scene {scene}; there are {known}";
    /// A span of time.
    Seconds: "{s} 秒", "{s} s";
    /// A span of time.
    MinutesSeconds: "{m} 分 {s} 秒", "{m} min {s} s";
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
