//! `POST /api/auth/sms-login` and `register`: a number that its holder has shown, by the code that was sent to it.

use super::session;
use super::store::{self, Account, Rename};
use crate::app::App;
use crate::db::{DbError, transact};
use crate::http::error::ApiError;
use crate::http::extract::{Body, ClientAddress, mobile, plain_text, request_id, sms_code};
use crate::http::session::{NamedTenant, WebClient};
use crate::sms::channel::Recipient;
use crate::sms::verify::{Typed, Used, check};
use crate::text::Text;
use axum::extract::State;
use axum::response::Response;
use std::net::IpAddr;
use wire::accounts::{RegisterRequest, SmsLoginRequest};
use wire::api::{Role, SignedIn};
use wire::{Envelope, ErrorCode, Mobile, RequestId, SmsCode, TenantId};

/// Signs in by a code of the scene `login`. A number that nobody knows gets a visitor's account, unless that is turned off.
#[utoipa::path(post, path = "/api/auth/sms-login", tag = "accounts", request_body = SmsLoginRequest,
    responses((status = 200, body = Envelope<SignedIn>)))]
pub(crate) async fn sms_login(
    State(app): State<App>,
    NamedTenant(tenant): NamedTenant,
    WebClient(web): WebClient,
    ClientAddress(address): ClientAddress,
    Body(request): Body<SmsLoginRequest>,
) -> Result<Response, ApiError> {
    let mobile = mobile(&request.mobile)?;
    let code = sms_code("code", &request.code)?;
    let request_id = request_id(request.request_id.as_deref())?;
    let new_name = app.rules(tenant).await?.auto_register.then(|| name_of(&mobile));
    let login = Login { tenant, mobile, scene: "login", code, request_id, new_name, address };
    let signed_in = app.see_through(login.run(app.clone())).await?;
    Ok(session::hand_over(&app, web, signed_in))
}

/// Makes a visitor's account by a code of the scene `register`; a number that is known is signed in.
#[utoipa::path(post, path = "/api/auth/register", tag = "accounts", request_body = RegisterRequest,
    responses((status = 200, body = Envelope<SignedIn>)))]
pub(crate) async fn register(
    State(app): State<App>,
    NamedTenant(tenant): NamedTenant,
    WebClient(web): WebClient,
    ClientAddress(address): ClientAddress,
    Body(request): Body<RegisterRequest>,
) -> Result<Response, ApiError> {
    let mobile = mobile(&request.mobile)?;
    let code = sms_code("code", &request.code)?;
    let request_id = request_id(request.request_id.as_deref())?;
    let new_name = Some(plain_text("name", &request.name, 64)?);
    let login = Login { tenant, mobile, scene: "register", code, request_id, new_name, address };
    let signed_in = app.see_through(login.run(app.clone())).await?;
    Ok(session::hand_over(&app, web, signed_in))
}

/// What somebody is called of whom the number alone is known.
fn name_of(mobile: &Mobile) -> String {
    let number = mobile.expose();
    format!("*{}", &number[number.len() - 4..])
}

struct Login {
    tenant: TenantId,
    mobile: Mobile,
    scene: &'static str,
    code: SmsCode,
    request_id: Option<RequestId>,
    /// The name of a new account; without one none is made.
    new_name: Option<String>,
    address: Option<IpAddr>,
}

/// Why a right code opens nothing.
enum Refusal {
    /// It was used before.
    Used,
    /// Nobody has this number.
    NoAccount,
}

impl Login {
    /// The code first: whether a number is known is told to its holder alone.
    async fn run(self, app: App) -> Result<SignedIn, ApiError> {
        let to = Recipient::Mobile(self.mobile.clone());
        let typed = Typed {
            tenant: self.tenant,
            to: &to,
            scene: self.scene,
            code: &self.code,
            request_id: self.request_id.as_ref(),
            address: self.address,
        };
        let used = check(&app, &typed).await?;
        match transact(|| self.commit(&app, &used)).await? {
            Ok((account, signed_in)) => {
                tracing::info!(account.id = account, scene = self.scene, "signed in by SMS code");
                Ok(signed_in)
            }
            Err(Refusal::Used) => Err(ErrorCode::SmsCodeExpired.into()),
            Err(Refusal::NoAccount) => Err(ApiError::forbidden_because(Text::NoAccount, "no_account")),
        }
    }

    /// The use of the code, the account and its session, in one transaction.
    async fn commit(&self, app: &App, used: &Used) -> Result<Result<(i64, SignedIn), Refusal>, DbError> {
        let mut tx = app.db.begin().await?;
        if !used.record(app, &mut tx).await? {
            return Ok(Err(Refusal::Used));
        }
        let account = match (store::account_in(&app.db, &mut tx, self.tenant, &self.mobile).await?, &self.new_name) {
            (Some(account), _) => account,
            (None, Some(name)) => {
                let (name_if_new, now) = ((name.as_str(), Rename::IfNew), app.clock.now_ms());
                let (tenant, roles) = (self.tenant, vec![Role::Visitor]);
                let id = store::grant(&mut tx, tenant, &self.mobile, Role::Visitor, name_if_new, now).await?;
                Account { id, tenant, name: name.clone(), roles }
            }
            (None, None) => {
                tx.commit().await?;
                return Ok(Err(Refusal::NoAccount));
            }
        };
        let signed_in = session::open(app, &mut tx, &account).await?;
        tx.commit().await?;
        Ok(Ok((account.id, signed_in)))
    }
}
