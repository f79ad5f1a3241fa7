//! Requests and responses of the HTTP interface. Times are Unix milliseconds (UTC).

use crate::{OrderNo, Secret, TaskNo, VerifyCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where an order stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
pub enum OrderStatus {
    /// Booked, not paid yet.
    PendingPayment,
    /// Paid: may be redeemed.
    Paid,
    /// Redeemed.
    Consumed,
    /// Money on its way back.
    Refunding,
    /// Money returned.
    Refunded,
    /// Called off.
    Cancelled,
}

impl OrderStatus {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::PendingPayment, Self::Paid, Self::Consumed, Self::Refunding, Self::Refunded, Self::Cancelled];

    /// The wire's and the database's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PendingPayment => "pending_payment",
            Self::Paid => "paid",
            Self::Consumed => "consumed",
            Self::Refunding => "refunding",
            Self::Refunded => "refunded",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }

    /// Whether a booking system may move an order from here to `next`; redemption and reversal have ways of their own.
    pub const fn may_become(self, next: Self) -> bool {
        use OrderStatus::{Cancelled, Paid, PendingPayment, Refunded, Refunding};
        matches!(
            (self, next),
            (PendingPayment, Paid | Cancelled) | (Paid, Refunding | Cancelled) | (Refunding, Refunded | Paid)
        )
    }
}

/// A word is a text and nothing else: serde would take `{"paid": null}` for it as well.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("is none of the words")]
pub struct UnknownWord;

impl TryFrom<String> for OrderStatus {
    type Error = UnknownWord;
    fn try_from(word: String) -> Result<Self, UnknownWord> {
        Self::parse(&word).ok_or(UnknownWord)
    }
}

/// What an account may be in its tenant; each route asks for its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sees their own orders.
    Visitor,
    /// Redeems the orders of their tasks.
    Guide,
    /// Runs the tenant.
    Admin,
}

/// By which way a code came to the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
pub enum Entry {
    /// Read by a camera.
    #[default]
    Scan,
    /// Typed by a hardware scanner.
    Wedge,
    /// Typed by hand.
    Manual,
}

impl TryFrom<String> for Entry {
    type Error = UnknownWord;
    fn try_from(word: String) -> Result<Self, UnknownWord> {
        [Self::Scan, Self::Wedge, Self::Manual].into_iter().find(|entry| entry.as_str() == word).ok_or(UnknownWord)
    }
}

impl Entry {
    /// The wire's and the database's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::Wedge => "wedge",
            Self::Manual => "manual",
        }
    }
}

/// `POST …/consume`: redeem this order with this code.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumeRequest {
    /// The order's number.
    #[schema(pattern = r"^[0-9A-Za-z_-]{1,64}$", example = "BK202608010001")]
    pub order_no: String,
    /// The code that its holder shows.
    #[schema(value_type = String, pattern = r"^[1-9][0-9]{5}$", example = "483921")]
    pub verify_code: Secret,
    /// The caller's name for this attempt, so that a repeat gets the first answer back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, pattern = r"^[0-9A-Za-z_-]{1,64}$", example = "r-1")]
    pub request_id: Option<String>,
    /// By which way the code came; `scan` where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
}

/// The order has been redeemed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Consumed {
    /// The order's number.
    pub order_no: OrderNo,
    /// Always `consumed`.
    pub status: OrderStatus,
    /// When it was redeemed.
    pub consumed_at: i64,
    /// Whom to let in.
    pub visitor_name: String,
    /// How many people to let in.
    pub party_size: i64,
    /// For when it was booked.
    pub visit_at: i64,
    /// Its task, if it has one.
    pub task_no: Option<TaskNo>,
    /// This answers a repeat of an attempt that had succeeded; nothing was changed.
    pub replayed: bool,
}

/// `data` of 2002 and of 1409: where the order stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderState {
    /// Where it stands.
    pub status: OrderStatus,
    /// When it was redeemed, if it was.
    pub consumed_at: Option<i64>,
    /// By whom; absent for visitors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumed_by: Option<Option<String>>,
    /// At which kiosk; absent for visitors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Option<String>>,
}

/// `data` of 1400 and 4001: the field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BadField {
    /// The field's name in the request.
    pub field: String,
}

/// `data` of the limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryAfter {
    /// Seconds until a try may succeed.
    pub retry_after: i64,
}

/// `GET …/verify-code`: the visitor's code.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifyCodeView {
    /// The order's number.
    pub order_no: OrderNo,
    /// The code that is alive now.
    pub verify_code: VerifyCode,
    /// The server's time, the only clock that counts.
    pub server_time: i64,
    /// When the code runs out, grace left out.
    pub expire_time: i64,
}

/// An order as its visitor sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnOrder {
    /// The order's number.
    pub order_no: OrderNo,
    /// The name it was booked for.
    pub visitor_name: String,
    /// How many people.
    pub party_size: i64,
    /// For when it was booked.
    pub visit_at: i64,
    /// Where it stands.
    pub status: OrderStatus,
    /// When it was redeemed, if it was.
    pub consumed_at: Option<i64>,
    /// The tour's title, if it belongs to one.
    pub title: Option<String>,
    /// The tour's place, if it belongs to one.
    pub venue: Option<String>,
}

/// A guided tour, with how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskView {
    /// The task's number.
    pub task_no: TaskNo,
    /// Its title.
    pub title: String,
    /// Its place.
    pub venue: String,
    /// When it starts; it belongs to the day it starts on.
    pub starts_at: i64,
    /// When it ends.
    pub ends_at: i64,
    /// Its orders.
    pub total: i64,
    /// Those still to be redeemed.
    pub paid: i64,
    /// Those redeemed.
    pub consumed: i64,
}

/// An order as the task's guide sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskOrder {
    /// The order's number.
    pub order_no: OrderNo,
    /// Family name and `*`.
    pub visitor_name: String,
    /// How many people.
    pub party_size: i64,
    /// For when it was booked.
    pub visit_at: i64,
    /// Where it stands.
    pub status: OrderStatus,
    /// When it was redeemed, if it was.
    pub consumed_at: Option<i64>,
}

/// `POST /api/auth/login`: user name and password.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LoginRequest {
    /// An admin's user name.
    pub username: String,
    /// The password.
    pub password: Secret,
}

/// `POST /api/auth/sign-in-link`: the token of a one-time sign-in link.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SignInLinkRequest {
    /// What stood in the link's fragment.
    pub token: Secret,
}

/// A new session.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedIn {
    /// The bearer token; absent where the session is a browser's cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// When the session ends at the latest.
    pub expires_at: i64,
    /// What the account may be.
    pub roles: Vec<Role>,
    /// The account's name.
    pub name: String,
}

/// `GET /api/auth/me`: who is signed in.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Me {
    /// The account's name.
    pub name: String,
    /// What the account may be.
    pub roles: Vec<Role>,
    /// When the session ends at the latest.
    pub expires_at: i64,
}

/// `GET /api/info`: what a kiosk or a page wants to know before anyone has signed in.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    /// The server's version.
    pub version: String,
    /// The oldest kiosk that may work with it.
    pub min_app_version: String,
    /// The server's time.
    pub server_time: i64,
    /// The venue's zone (IANA name); all screens show times in it.
    pub timezone: String,
    /// The tenant's name, where the caller named one or there is only one.
    pub tenant: Option<String>,
    /// Whether SMS codes can be spoken by a call as well (`via` = `voice`).
    #[serde(default)]
    pub voice: bool,
}

/// `PUT /open-api/orders/{orderNo}`: create an order or change it by its life.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PutOrder {
    /// The visitor's mobile number.
    #[schema(value_type = String, pattern = r"^(\+86)?1[3-9][0-9]{9}$", example = "13800000001")]
    pub mobile: Secret,
    /// The name it was booked for.
    #[schema(min_length = 1, max_length = 64, example = "张伟")]
    pub visitor_name: String,
    /// How many people.
    #[schema(minimum = 1, maximum = 100_000, example = 4)]
    pub party_size: i64,
    /// For when it was booked.
    #[schema(minimum = 0, maximum = 253_402_300_799_999_i64, example = 1_785_546_000_000_i64)]
    pub visit_at: i64,
    /// Where it stands.
    pub status: OrderStatus,
    /// Omitted: stays; `null`: none; an unknown one is an error.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schema(value_type = Option<String>, pattern = r"^[0-9A-Za-z_-]{1,64}$", example = "T1")]
    pub task_no: Option<Option<String>>,
}

/// Tells a field that is `null` from one that is missing.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(deserializer).map(Some)
}

/// The order as it stands after a `PUT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineOrder {
    /// The order's number.
    pub order_no: OrderNo,
    /// Where it stands.
    pub status: OrderStatus,
    /// Its task, if it has one.
    pub task_no: Option<TaskNo>,
}

/// `PUT /open-api/tasks/{taskNo}`: create a task or change it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PutTask {
    /// Its title.
    #[schema(min_length = 1, max_length = 128, example = "晨光古城徒步")]
    pub title: String,
    /// Its place.
    #[schema(min_length = 1, max_length = 128, example = "东门广场")]
    pub venue: String,
    /// When it starts.
    #[schema(minimum = 0, maximum = 253_402_300_799_999_i64, example = 1_785_546_000_000_i64)]
    pub starts_at: i64,
    /// When it ends.
    #[schema(minimum = 0, maximum = 253_402_300_799_999_i64, example = 1_785_553_200_000_i64)]
    pub ends_at: i64,
    /// The guides assigned to it, each one known.
    pub guide_mobiles: Vec<Secret>,
}

/// The task as it stands after a `PUT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineTask {
    /// The task's number.
    pub task_no: TaskNo,
    /// How many guides are assigned to it.
    pub guides: i64,
}

/// `POST /open-api/guides`: make a guide, or give a known one another name.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PostGuide {
    /// The guide's mobile number.
    #[schema(value_type = String, pattern = r"^(\+86)?1[3-9][0-9]{9}$", example = "13900000001")]
    pub mobile: Secret,
    /// The guide's name.
    #[schema(min_length = 1, max_length = 64, example = "林悦")]
    pub name: String,
}

/// The guide that was made or renamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MachineGuide {
    /// The guide's name.
    pub name: String,
}

/// `POST …/verify-code/rotate`: kill the code and make another.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RotateRequest {
    /// The order's number.
    #[schema(pattern = r"^[0-9A-Za-z_-]{1,64}$", example = "BK202608010001")]
    pub order_no: String,
    /// Must be `true`: the person was asked twice.
    pub confirm: bool,
}

/// `POST …/consume-by-code`: redeem whatever order of the caller's has this code.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumeByCodeRequest {
    /// The code that its holder shows.
    #[schema(value_type = String, pattern = r"^[1-9][0-9]{5}$", example = "483921")]
    pub verify_code: Secret,
    /// Look in this task; in all of today's where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, pattern = r"^[0-9A-Za-z_-]{1,64}$", example = "T1")]
    pub task_no: Option<String>,
    /// The caller's name for this attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, pattern = r"^[0-9A-Za-z_-]{1,64}$", example = "r-2")]
    pub request_id: Option<String>,
}

/// `data` of 2006: the orders that have the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Candidates {
    /// The orders.
    pub candidates: Vec<Candidate>,
}

/// An order that has the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// The order's number.
    pub order_no: OrderNo,
    /// Family name and `*`.
    pub visitor_name: String,
    /// How many people.
    pub party_size: i64,
}

/// `POST …/compensate` and `…/reverse`: what an admin confirms by SMS.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ConfirmedRequest {
    /// Why; it goes into the audit.
    #[schema(min_length = 1, max_length = 200)]
    pub reason: String,
    /// An SMS code of the scene `confirm`.
    #[schema(value_type = String, pattern = r"^[0-9]{6}$")]
    pub code: Secret,
}

/// What an admin should look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertKind {
    /// A guide was frozen after repeated failures.
    GuideFrozen,
    /// A guide was frozen by an admin.
    GuideFrozenByAdmin,
    /// A guide was unfrozen.
    GuideUnfrozen,
    /// An admin has failed repeatedly.
    AdminFailures,
    /// The tenant has had many wrong codes.
    ConsumeFailures,
    /// A web hook's receiver has not taken an event for a day.
    WebHookGivenUp,
    /// A channel for SMS codes cannot be used, or none has taken a message.
    SmsChannelDown,
    /// A provider of SMS says that there is no money left.
    SmsNoBalance,
    /// A tenant has had all its SMS codes of the day.
    SmsDailyCap,
    /// Few of the SMS codes that were sent have been used.
    SmsPassRate,
    /// Many numbers were sent SMS codes that nobody used.
    SmsPumping,
    /// Our count of a day's SMS is not the provider's, or the provider does not tell its own.
    SmsReconciliation,
}

impl AlertKind {
    /// The wire's and the database's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GuideFrozen => "guide_frozen",
            Self::GuideFrozenByAdmin => "guide_frozen_by_admin",
            Self::GuideUnfrozen => "guide_unfrozen",
            Self::AdminFailures => "admin_failures",
            Self::ConsumeFailures => "consume_failures",
            Self::WebHookGivenUp => "web_hook_given_up",
            Self::SmsChannelDown => "sms_channel_down",
            Self::SmsNoBalance => "sms_no_balance",
            Self::SmsDailyCap => "sms_daily_cap",
            Self::SmsPassRate => "sms_pass_rate",
            Self::SmsPumping => "sms_pumping",
            Self::SmsReconciliation => "sms_reconciliation",
        }
    }
}

/// An alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AlertView {
    /// Its number, growing.
    pub id: i64,
    /// `guide_frozen`, `guide_frozen_by_admin`, `guide_unfrozen`, `admin_failures`, `consume_failures`, `web_hook_given_up`, `sms_channel_down`, `sms_no_balance`, `sms_daily_cap`, `sms_pass_rate`, `sms_pumping` or `sms_reconciliation`.
    pub kind: String,
    /// Whom it concerns.
    pub name: Option<String>,
    /// What there is to know of it, by its kind: counts, networks, a channel; `null` for most kinds.
    #[schema(value_type = Option<Object>)]
    pub data: Option<serde_json::Value>,
    /// When it was raised.
    pub at: i64,
}

/// A guide as an admin sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GuideView {
    /// The account's number.
    pub id: i64,
    /// The guide's name.
    pub name: String,
    /// The last four digits of the mobile number.
    pub mobile: String,
    /// `null`, `failures`, `admin`, or `unknown` while the code store is away.
    pub frozen: Option<String>,
    /// Seconds until a freeze by failures ends.
    pub frozen_for: Option<i64>,
}

/// A row of the audit as an admin sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedemptionView {
    /// The row's number, growing.
    pub id: i64,
    /// The order; `null` where a limit stood before it.
    pub order_no: Option<OrderNo>,
    /// The caller's name for the attempt.
    pub request_id: Option<String>,
    /// 0, or the error's code.
    pub result: i64,
    /// Where the order stood before.
    pub status_before: Option<String>,
    /// Where it stood afterwards.
    pub status_after: Option<String>,
    /// Who.
    pub operator: Option<String>,
    /// `guide`, `admin` or `system`.
    pub operator_type: String,
    /// By which way the code came.
    pub entry: Option<String>,
    /// At which kiosk.
    pub device: Option<String>,
    /// From which address.
    pub address: Option<String>,
    /// When.
    pub at: i64,
}

/// `GET /open-api/redemptions`: the audit as a feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RedemptionFeed {
    /// The rows after the cursor, in order.
    pub items: Vec<RedemptionView>,
    /// What to pass as `after` next time; the cursor itself where nothing is new.
    pub next: i64,
}

/// A page of a list that is read by keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// The rows, the newest first.
    pub items: Vec<T>,
    /// What to pass as `before` for the next page; `null` at the end.
    pub next: Option<i64>,
}

/// Settings that can be changed while the server runs: a flat map from the names in the settings file to their values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = Object)]
pub struct SettingsMap(pub std::collections::BTreeMap<String, serde_json::Value>);

/// Where an order file stands on its way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportState {
    /// It is being read.
    Reading,
    /// It has been read and could be applied; nothing has been changed.
    Previewed,
    /// Something is wrong with it; nothing has been changed, and it cannot be applied.
    Refused,
    /// It has been applied.
    Applied,
    /// It was not applied in time, or its reading was cut off; nothing has been changed.
    Dropped,
}

impl ImportState {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Reading, Self::Previewed, Self::Refused, Self::Applied, Self::Dropped];

    /// The wire's and the database's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Previewed => "previewed",
            Self::Refused => "refused",
            Self::Applied => "applied",
            Self::Dropped => "dropped",
        }
    }

    /// The state with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }
}

/// An order file: what it would do, or has done, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderImport {
    /// Its number.
    pub id: i64,
    /// Where it stands.
    pub state: ImportState,
    /// Orders that have been read so far.
    pub done: i64,
    /// Orders in the file; an estimate while it is read.
    pub rows: i64,
    /// Orders that are new.
    pub new: i64,
    /// Orders that are known and change.
    pub changed: i64,
    /// Orders that stay as they are.
    pub unchanged: i64,
    /// Tasks that are not known and become drafts without guides.
    pub new_tasks: i64,
    /// How many faults there are.
    pub fault_count: i64,
    /// The first hundred of them.
    pub faults: Vec<ImportFault>,
}

/// What is wrong with an order file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportFault {
    /// The line, as a spreadsheet numbers it; `null`: the file as a whole.
    pub line: Option<i64>,
    /// The column's name; `null`: the line as a whole.
    pub field: Option<String>,
    /// What is wrong, in the caller's language.
    pub message: String,
}
