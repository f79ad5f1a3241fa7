//! What the screen and the shell say to each other; the TypeScript side is generated from here.

use serde::{Deserialize, Serialize};
#[cfg(test)]
use utoipa::OpenApi;
use utoipa::ToSchema;
#[cfg(test)]
use wire::accounts::{CaptchaChallenge, SmsSent};
use wire::api::{Entry, OrderStatus};
#[cfg(test)]
use wire::api::{TaskOrder, TaskView};
use wire::{OrderNo, TaskNo};

/// What the screen wants to know when it starts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KioskInfo {
    /// The app's version.
    pub version: String,
    /// Where the server is, as a person would say it (host and port).
    pub server: String,
    /// The server runs inside this app, with made-up bookings.
    pub demo: bool,
    /// Who is signed in.
    pub guide: Option<String>,
    /// Why somebody has to sign in again, where there is more to say than that nobody is signed in.
    pub why: Option<WhySignIn>,
    /// The venue's zone (IANA name); all times are shown in it.
    pub timezone: String,
    /// The server's time minus this machine's, in milliseconds.
    pub clock_offset: i64,
    /// Whether codes for signing in can be spoken by a call as well.
    pub voice: bool,
    /// The kiosk's settings.
    pub settings: Settings,
    /// In the demo: the visitors' pages, one click away.
    pub visitor_pages: Vec<VisitorPage>,
}

/// A visitor's page of the demo.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VisitorPage {
    /// The visitor's name.
    pub name: String,
    /// The order that the page shows.
    pub order_no: OrderNo,
}

/// What this kiosk remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Settings {
    /// `zh-CN` or `en`.
    pub locale: Locale,
    /// The preview is shown as in a mirror; decoding is on the frame as it is.
    pub mirrored: bool,
    /// A click at the decode and a tone for each answer.
    pub sound: bool,
    /// The source chosen last.
    pub source: Option<SourceChoice>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { locale: Locale::ZhCn, mirrored: true, sound: true, source: None }
    }
}

/// The language of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) enum Locale {
    /// Simplified Chinese.
    #[serde(rename = "zh-CN")]
    ZhCn,
    /// English.
    #[serde(rename = "en")]
    En,
}

/// Where frames come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum SourceChoice {
    /// A camera.
    #[serde(rename_all = "camelCase")]
    Camera {
        /// Its index in the system's list.
        index: u32,
        /// Its name, to find it again when the index has changed.
        name: String,
    },
    /// The pictures of a folder, or one picture, in order; for demonstrations and tests.
    #[serde(rename_all = "camelCase")]
    Pictures {
        /// The folder or file.
        path: String,
    },
}

/// How the source is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceHealth {
    /// Its name as a person knows it: the camera's, or the folder's.
    pub name: String,
    /// What it does or what is wrong with it.
    pub state: SourceState,
}

/// What a source does or what is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SourceState {
    /// Being opened.
    Opening,
    /// Frames come.
    Live,
    /// No camera is there.
    NoCamera,
    /// It was unplugged; opened again by itself when it is back.
    Lost,
    /// Another program has it.
    Busy,
    /// The system does not let this user open it.
    NoPermission,
    /// It is open and sends nothing.
    Stalled,
    /// It sends frames that cannot be read.
    BrokenFrames,
    /// It offers no format that we read.
    Unsupported,
    /// The folder or file is not there or holds no picture.
    NoPictures,
}

/// What happens, in the order in which it happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum KioskEvent {
    /// One of our codes was read or typed, and is on its way to the server.
    #[serde(rename_all = "camelCase")]
    Reading {
        /// The last digits of the order's number.
        order_tail: String,
        /// By which way it came.
        entry: Entry,
    },
    /// The answer to the last `Reading`, or to a code that is not ours.
    #[serde(rename_all = "camelCase")]
    Outcome {
        /// The answer.
        outcome: Outcome,
    },
    /// The source's health has changed.
    #[serde(rename_all = "camelCase")]
    Source {
        /// How it is now.
        health: SourceHealth,
    },
    /// What is away has changed.
    #[serde(rename_all = "camelCase")]
    Link {
        /// What cannot be reached; `null` when all is well.
        away: Option<Away>,
    },
    /// Somebody signed in, or the session has ended.
    #[serde(rename_all = "camelCase")]
    Session {
        /// Who is signed in.
        guide: Option<String>,
        /// Why somebody has to sign in again; `null` where somebody is signed in, or has signed out.
        why: Option<WhySignIn>,
    },
    /// It is known now how long the session will be kept.
    #[serde(rename_all = "camelCase")]
    Kept {
        /// How long; `null` where nobody is signed in, or the session was never meant to outlive the app.
        kept: Option<Kept>,
    },
}

/// How long the session of this kiosk is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kept {
    /// In the system's keyring: a restart finds it.
    Keyring,
    /// In the kernel's keyring: gone when the computer is started anew.
    UntilReboot,
    /// Nowhere: gone with the app.
    Memory,
}

/// Why somebody has to sign in again who did not sign out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WhySignIn {
    /// The server does not know the session any more: its time was up, or it was taken back.
    Ended,
    /// The place that may hold a session is locked or missing.
    NoKeyring,
}

/// What cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Away {
    /// No answer at all.
    Network,
    /// An answer, but the server cannot do its work (its database is away, or it has a fault).
    Server,
    /// The code service is away; nothing is redeemed without it.
    CodeService,
}

/// The one big answer to a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// Let them in.
    #[serde(rename_all = "camelCase")]
    Admitted {
        /// The order's number.
        order_no: OrderNo,
        /// Whom.
        visitor_name: String,
        /// How many people.
        party_size: i64,
        /// For when it was booked.
        visit_at: i64,
        /// Its task.
        task_no: Option<TaskNo>,
        /// When it was redeemed.
        consumed_at: i64,
        /// This kiosk had redeemed it a moment ago; shown as that success.
        moment_ago: bool,
    },
    /// It has been used.
    #[serde(rename_all = "camelCase")]
    AlreadyRedeemed {
        /// The order's number.
        order_no: OrderNo,
        /// When.
        consumed_at: Option<i64>,
        /// By whom.
        consumed_by: Option<String>,
        /// At which kiosk.
        device: Option<String>,
    },
    /// The order is neither paid nor redeemed.
    #[serde(rename_all = "camelCase")]
    WrongStatus {
        /// The order's number.
        order_no: OrderNo,
        /// Where it stands.
        status: OrderStatus,
    },
    /// No such code now: the visitor should refresh.
    #[serde(rename_all = "camelCase")]
    NotValid {
        /// The order's number.
        order_no: OrderNo,
    },
    /// Not an order of the guide's tasks.
    #[serde(rename_all = "camelCase")]
    NotYours {
        /// The order's number.
        order_no: OrderNo,
    },
    /// Not one of our codes.
    Foreign,
    /// A limit.
    #[serde(rename_all = "camelCase")]
    TooMany {
        /// Seconds until a try may succeed.
        retry_after: i64,
    },
    /// The guide is frozen.
    Frozen,
    /// Nobody knows: something is away. The attempt is repeated with the same request id by itself.
    #[serde(rename_all = "camelCase")]
    CannotCheck {
        /// The order's number.
        order_no: OrderNo,
        /// What cannot be reached.
        away: Away,
    },
    /// Nobody is signed in any more.
    SignedOut,
}

/// Why a command could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum CommandError {
    /// A field is wrong.
    #[error("the field {field} is wrong")]
    #[serde(rename_all = "camelCase")]
    BadField {
        /// `orderNo`, `verifyCode`, `link`, `path`, `mobile`, `code`, `requestId`.
        field: String,
        /// Empty, or ill-formed.
        empty: bool,
    },
    /// Something cannot be reached.
    #[error("not reachable")]
    #[serde(rename_all = "camelCase")]
    Away {
        /// What.
        away: Away,
    },
    /// No connection came about, so the request surely never left: no message is on its way.
    #[error("nothing was sent")]
    Unsent,
    /// Nobody is signed in.
    #[error("nobody is signed in")]
    SignedOut,
    /// One attempt is on its way already.
    #[error("an attempt is on its way")]
    InFlight,
    /// The server says no, in words for people.
    #[error("{message}")]
    #[serde(rename_all = "camelCase")]
    Refused {
        /// The error's number; `null` for one that this version of the kiosk does not know.
        code: Option<i32>,
        /// Its words, in the language of the screen.
        message: String,
        /// What comes with this number: seconds to wait, tries that are left.
        data: serde_json::Value,
    },
    /// A fault of this app; its log has more.
    #[error("internal")]
    Internal,
}

/// The types of this file as an OpenAPI document without paths, for the TypeScript generator.
#[cfg(test)]
#[derive(OpenApi)]
#[openapi(
    info(title = "What the kiosk's screen and shell say to each other", version = "1", description = ""),
    components(schemas(
        KioskInfo,
        VisitorPage,
        Settings,
        Locale,
        SourceChoice,
        SourceHealth,
        SourceState,
        KioskEvent,
        Kept,
        WhySignIn,
        Away,
        Outcome,
        CommandError,
        TaskView,
        TaskOrder,
        SmsSent,
        CaptchaChallenge
    ))
)]
pub(crate) struct HostTypes;

#[cfg(test)]
mod tests {
    use super::*;

    /// The page's types are generated from this file: `GUIDEPOST_WRITE_TYPES=1` writes it anew, `npm run types` the types.
    #[test]
    fn the_pages_types_are_made_from_these() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("ui/kiosk/host-types.json");
        let now = HostTypes::openapi().to_pretty_json().unwrap() + "\n";
        if std::env::var("GUIDEPOST_WRITE_TYPES").is_ok_and(|value| value == "1") {
            std::fs::write(&file, &now).unwrap();
        }
        let committed = std::fs::read_to_string(&file).unwrap();
        assert!(
            committed.trim_end() == now.trim_end(),
            "{} is old: run this test with GUIDEPOST_WRITE_TYPES=1, then `npm run types`",
            file.display()
        );
    }
}
