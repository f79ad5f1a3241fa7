//! Tasks: a guide's list of a day, a task's orders, and `PUT /open-api/tasks/{taskNo}`.

use super::orders::LAST_MOMENT;
use super::store;
use crate::accounts::store::account_by_mobile;
use crate::app::App;
use crate::db::{DbError, transact};
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::{Body, PathPart, Query, mobile as mobile_of, plain_text, task_no};
use crate::http::session::{Guide, Machine};
use crate::text::Text;
use axum::extract::State;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};
use std::collections::BTreeSet;
use std::ops::Range;
use wire::api::{MachineTask, PutTask, Role, TaskOrder, TaskView};
use wire::{Envelope, ErrorCode, TaskNo, TenantId};

/// The guide's own tasks of a day in the venue's zone; today where none is named.
#[utoipa::path(get, path = "/app-api/team/guide-task/list", tag = "guide",
    params(("date" = Option<String>, Query, format = Date, description = "a day, YYYY-MM-DD, in the venue's zone; today where it is missing")),
    responses((status = 200, body = Envelope<Vec<TaskView>>)))]
pub(crate) async fn task_list(State(app): State<App>, Guide(session): Guide, query: Query) -> ApiResult<Vec<TaskView>> {
    let day = day_of(&app, date_of(&query)?)?;
    Ok(Answer(store::tasks_of_guide(&app.db, session.tenant, session.account_id, day).await?))
}

/// The query's `date`, YYYY-MM-DD.
pub(super) fn date_of(query: &Query) -> Result<Option<Date>, ApiError> {
    let bad_date = || ApiError::bad_field("date", Text::BadField);
    // jiff reads other forms of ISO 8601 as well; the contract has this one.
    let parse = |text: &str| if text.len() == 10 { text.parse().ok() } else { None };
    query.optional("date")?.map(|text| parse(text).ok_or_else(bad_date)).transpose()
}

/// From the first moment of a day in the venue's zone to the next day's (Unix ms); today where none is named.
pub(crate) fn day_of(app: &App, date: Option<Date>) -> Result<Range<i64>, ApiError> {
    let now = Timestamp::from_millisecond(app.clock.now_ms()).map_err(|_| ErrorCode::Internal)?;
    let date = date.unwrap_or_else(|| now.to_zoned_datetime(app.zone.clone()).date());
    let start = |date: Date| Some(date.to_zoned_datetime(app.zone.clone()).ok()?.timestamp().as_millisecond());
    let range = || Some(start(date)?..start(date.checked_add(1.day()).ok()?)?);
    range().ok_or_else(|| ApiError::bad_field("date", Text::BadField))
}

/// The id of a task, if the guide is assigned to it.
pub(crate) async fn own_task(
    app: &App,
    tenant: TenantId,
    guide: i64,
    task_no: &TaskNo,
) -> Result<Option<i64>, ApiError> {
    Ok(store::task_of_guide(&app.db, tenant, guide, task_no).await?)
}

/// The orders of one of the guide's own tasks.
#[utoipa::path(get, path = "/app-api/team/guide-task/{taskNo}/orders", tag = "guide",
    params(("taskNo" = String, Path, example = "T1", pattern = "^[0-9A-Za-z_-]{1,64}$", description = "the task's number")),
    responses((status = 200, body = Envelope<Vec<TaskOrder>>)))]
pub(crate) async fn task_orders(
    State(app): State<App>,
    Guide(session): Guide,
    PathPart(number): PathPart,
) -> ApiResult<Vec<TaskOrder>> {
    let number = task_no("taskNo", &number)?;
    let task =
        store::task_of_guide(&app.db, session.tenant, session.account_id, &number).await?.ok_or(ErrorCode::NotFound)?;
    Ok(Answer(store::orders_of_task(&app.db, session.tenant, task).await?))
}

/// A task as it shall be.
#[derive(Debug, Clone)]
pub(crate) struct NewTask {
    pub(crate) task_no: TaskNo,
    pub(crate) title: String,
    pub(crate) venue: String,
    pub(crate) starts_at: i64,
    pub(crate) ends_at: i64,
    /// Account ids.
    pub(crate) guides: BTreeSet<i64>,
}

/// Creates a task or changes it; the guides named are its guides from then on.
#[utoipa::path(put, path = "/open-api/tasks/{taskNo}", tag = "machine", request_body = PutTask,
    params(("taskNo" = String, Path, example = "T1", pattern = "^[0-9A-Za-z_-]{1,64}$", description = "the task's number")),
    responses((status = 200, body = Envelope<MachineTask>)))]
pub(crate) async fn put_task(
    State(app): State<App>,
    machine: Machine,
    PathPart(number): PathPart,
    Body(request): Body<PutTask>,
) -> ApiResult<MachineTask> {
    let bad = |field| ApiError::bad_field(field, Text::BadField);
    let moment = |field, t: i64| Some(t).filter(|t| (0..=LAST_MOMENT).contains(t)).ok_or_else(|| bad(field));
    let mut guides = BTreeSet::new();
    for mobile in &request.guide_mobiles {
        let mobile = mobile_of(mobile)?;
        let guide = account_by_mobile(&app.db, machine.tenant, &mobile).await?;
        let guide = guide.filter(|account| account.roles.contains(&Role::Guide));
        guides.insert(guide.ok_or_else(|| ApiError::bad_field("guideMobiles", Text::GuideUnknown))?.id);
    }
    let task = NewTask {
        task_no: task_no("taskNo", &number)?,
        title: plain_text("title", &request.title, 128)?,
        venue: plain_text("venue", &request.venue, 128)?,
        starts_at: moment("startsAt", request.starts_at)?,
        ends_at: moment("endsAt", request.ends_at)
            .and_then(|end| if end >= request.starts_at { Ok(end) } else { Err(bad("endsAt")) })?,
        guides,
    };
    put(&app, machine.tenant, &task).await?;
    Ok(Answer(MachineTask { task_no: task.task_no, guides: i64::try_from(task.guides.len()).unwrap_or(i64::MAX) }))
}

/// Creates or changes, in one transaction.
pub(crate) async fn put(app: &App, tenant: TenantId, task: &NewTask) -> Result<(), ApiError> {
    let id = transact(|| put_once(app, tenant, task)).await?;
    tracing::info!(task.id = id, "a task was put");
    Ok(())
}

async fn put_once(app: &App, tenant: TenantId, task: &NewTask) -> Result<i64, DbError> {
    let mut tx = app.db.begin().await?;
    let now = app.clock.now_ms();
    let id = match store::task_id(&mut tx, tenant, &task.task_no).await? {
        None => store::insert_task(&mut tx, tenant, task, now).await?,
        Some(id) => {
            store::update_task(&mut tx, tenant, id, task, now).await?;
            id
        }
    };
    store::assign_guides(&mut tx, tenant, id, &task.guides).await?;
    tx.commit().await?;
    Ok(id)
}
