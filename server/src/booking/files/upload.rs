//! `POST /admin-api/order-imports`: a file is read and shown; `POST …/{id}` applies it, `GET …/{id}` says how far it is.

use super::apply::{NotApplied, apply};
use super::{stage, store};
use crate::app::App;
use crate::http::error::{Answer, ApiError, ApiResult, lang_of};
use crate::http::extract::{PathPart, Query};
use crate::http::session::Admin;
use crate::text::{Lang, Text};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use futures::StreamExt;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{Seek, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::Instrument;
use wire::api::{ImportState, OrderImport};
use wire::{Envelope, ErrorCode, TenantId};

/// Files over this are refused, bytes.
const FILE_LIMIT: usize = 20 << 20;
/// A file that takes longer to arrive is refused.
const FILE_TIME: Duration = Duration::from_secs(300);
/// Bytes of a file that are written at once.
const WRITTEN_AT_ONCE: usize = 256 << 10;
/// Files that may arrive at the same time, of all tenants: each takes up to [`FILE_LIMIT`] of the disk, and little memory.
const ARRIVING: usize = 32;
/// Files of one tenant that may arrive at the same time: nobody's slow line keeps the others out.
const ARRIVING_OF_ONE: usize = 4;
/// After so long a place may be free again.
const BUSY_FOR: Duration = Duration::from_secs(5);

/// The files that are arriving, by tenant.
#[derive(Debug, Default)]
pub(crate) struct Arrivals(Mutex<HashMap<TenantId, usize>>);

impl Arrivals {
    fn lock(&self) -> MutexGuard<'_, HashMap<TenantId, usize>> {
        // Nobody panics while holding it, and if they did, the numbers would be right.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among the files that are arriving.
struct Arriving {
    app: App,
    tenant: TenantId,
}

impl Arriving {
    fn begin(app: &App, tenant: TenantId) -> Result<Self, ApiError> {
        let mut arriving = app.arrivals.lock();
        let own = arriving.get(&tenant).copied().unwrap_or(0);
        if own >= ARRIVING_OF_ONE || arriving.values().sum::<usize>() >= ARRIVING {
            return Err(busy());
        }
        arriving.insert(tenant, own + 1);
        Ok(Self { app: app.clone(), tenant })
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        let mut arriving = self.app.arrivals.lock();
        if let Entry::Occupied(mut own) = arriving.entry(self.tenant) {
            *own.get_mut() -= 1;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

fn busy() -> ApiError {
    ApiError::retry_after(ErrorCode::TooManyRequests, BUSY_FOR).saying(Text::ImportsBusy)
}
/// What a file may call itself; what it is, its first bytes tell.
const CONTENT_TYPES: [&str; 3] =
    ["text/csv", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "application/octet-stream"];

impl From<NotApplied> for ApiError {
    fn from(error: NotApplied) -> Self {
        match error {
            NotApplied::Codes(away) => away.into(),
            NotApplied::Db(error) => error.into(),
        }
    }
}

/// Reads an order file and says what it would do; nothing is changed yet. With `background` the answer comes at once, in
/// state `reading`.
#[utoipa::path(post, path = "/admin-api/order-imports", tag = "admin",
    params(("background" = Option<bool>, Query, description = "answer at once; ask for the import to see how far it is")),
    request_body(content(
        (Vec<u8> = "text/csv"),
        (Vec<u8> = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        (Vec<u8> = "application/octet-stream"),
    )),
    responses((status = 200, body = Envelope<OrderImport>)))]
pub(super) async fn upload_orders(
    State(app): State<App>,
    Admin(session): Admin,
    query: Query,
    request: Request,
) -> ApiResult<OrderImport> {
    let lang = lang_of(request.headers());
    let background = match query.optional("background")? {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(ApiError::bad_field("background", Text::BadField)),
    };
    check_headers(request.headers())?;
    let arriving = Arriving::begin(&app, session.tenant)?;
    let file = receive(request).await?;
    // Not before the whole file is here: who is slow to send it keeps nobody from being read.
    let place = app.uploads.clone().try_acquire_owned().map_err(|_| busy())?;
    drop(arriving);
    let import = stage::begin(&app, session.tenant, Some(session.account_id)).await?;
    let tenant = session.tenant;
    let reader = app.clone();
    let staging = async move {
        let staged = stage::stage(&reader, tenant, import, file, &|_, _| {}).await;
        drop(place);
        if let Err(error) = &staged {
            tracing::error!(import.id = import, %error, "an order file could not be staged");
        }
        staged
    };
    // Whoever hangs up leaves a preview or a refusal, and nothing half-read.
    if background {
        app.tasks.spawn(staging.in_current_span());
    } else {
        app.see_through(async { Ok(staging.await?) }).await?;
    }
    view(&app, tenant, import, lang).await
}

fn check_headers(headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
    let mime = text(header::CONTENT_TYPE).and_then(|v| v.split(';').next()).map(str::trim).unwrap_or_default();
    if !CONTENT_TYPES.iter().any(|known| known.eq_ignore_ascii_case(mime)) {
        return Err(ApiError::no_order_file());
    }
    // Refused before it is sent, where the caller says how much is to come.
    let declared = text(header::CONTENT_LENGTH).and_then(|v| v.parse::<u64>().ok());
    if declared.is_some_and(|length| length > FILE_LIMIT as u64) { Err(ApiError::too_large()) } else { Ok(()) }
}

/// Keeps the file in a file without a name, as it arrives: readers of workbooks must be able to go back.
async fn receive(request: Request) -> Result<File, ApiError> {
    let mut body = request.into_body().into_data_stream();
    let mut file = in_file(tempfile::tempfile).await?;
    let receiving = async {
        let (mut length, mut piece_of_file) = (0, Vec::with_capacity(WRITTEN_AT_ONCE));
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|_| ApiError::bad_request(Text::BadRequest))?;
            length += piece.len();
            if length > FILE_LIMIT {
                return Err(ApiError::too_large());
            }
            piece_of_file.extend_from_slice(&piece);
            if piece_of_file.len() >= WRITTEN_AT_ONCE {
                let full = std::mem::replace(&mut piece_of_file, Vec::with_capacity(WRITTEN_AT_ONCE));
                file = in_file(move || file.write_all(&full).map(|()| file)).await?;
            }
        }
        in_file(move || {
            file.write_all(&piece_of_file)?;
            file.rewind()?;
            Ok(file)
        })
        .await
    };
    tokio::time::timeout(FILE_TIME, receiving).await.map_err(|_| ApiError::too_slow())?
}

/// Work on a file, on a thread that may wait for the disk.
async fn in_file<T: Send + 'static>(work: impl FnOnce() -> std::io::Result<T> + Send + 'static) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|_| ErrorCode::Internal)?;
    done.map_err(|error| {
        tracing::error!(%error, "an order file cannot be kept in the folder for temporary files");
        ErrorCode::Unavailable.into()
    })
}

async fn view(app: &App, tenant: TenantId, import: i64, lang: Lang) -> ApiResult<OrderImport> {
    let view = store::view(&app.db, tenant, import, lang).await?;
    Ok(Answer(view.ok_or(ErrorCode::NotFound)?))
}

/// An import: how far reading is, what it would do, has done, or what is wrong with it.
#[utoipa::path(get, path = "/admin-api/order-imports/{id}", tag = "admin",
    params(("id" = i64, Path, description = "the import's number")), responses((status = 200, body = Envelope<OrderImport>)))]
pub(super) async fn get_import(
    State(app): State<App>,
    Admin(session): Admin,
    headers: HeaderMap,
    PathPart(id): PathPart,
) -> ApiResult<OrderImport> {
    let (tenant, import) = (session.tenant, import_id(&id)?);
    store::drop_if_left(&app.db, tenant, import, app.clock.now_ms()).await?;
    view(&app, tenant, import, lang_of(&headers)).await
}

fn import_id(text: &str) -> Result<i64, ApiError> {
    text.parse().map_err(|_| ApiError::bad_field("id", Text::BadField))
}

/// Applies a preview, whole or not at all. Asked for again it answers what was done, and changes nothing. Where an order
/// has changed since the preview it is refused: 1409, with the faults.
#[utoipa::path(post, path = "/admin-api/order-imports/{id}", tag = "admin",
    params(("id" = i64, Path, description = "the import's number")), responses(
        (status = 200, body = Envelope<OrderImport>),
        (status = 409, description = "nothing was applied; the faults say why", body = Envelope<OrderImport>),
    ))]
pub(super) async fn apply_import(
    State(app): State<App>,
    Admin(session): Admin,
    headers: HeaderMap,
    PathPart(id): PathPart,
) -> ApiResult<OrderImport> {
    let (tenant, import, lang) = (session.tenant, import_id(&id)?, lang_of(&headers));
    let applying = app.clone();
    let applied = app.see_through(async move { Ok(apply(&applying, tenant, import).await?) }).await?;
    let Answer(now) = view(&app, tenant, import, lang).await?;
    let text = match (applied, now.state) {
        (_, ImportState::Applied) => return Ok(Answer(now)),
        (_, ImportState::Reading | ImportState::Previewed) => Text::ImportReading,
        (_, ImportState::Refused) => Text::ImportRefused,
        (_, ImportState::Dropped) => Text::ImportDropped,
    };
    Err(ApiError::conflict(text).with(now))
}
