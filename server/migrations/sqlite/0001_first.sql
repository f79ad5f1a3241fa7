-- Tenants, accounts and their sessions, tasks, orders and the audit of redemptions.
-- Times are Unix milliseconds (UTC). Every row carries its tenant. No verify code is ever written here.

CREATE TABLE tenant (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
INSERT INTO tenant (id, name, created_at) VALUES (1, 'Guidepost', 0);

-- An account is a mobile number in a tenant, with roles; admins have a user name and a password besides.
CREATE TABLE account (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id     INTEGER NOT NULL REFERENCES tenant (id),
    mobile        TEXT,              -- E.164
    username      TEXT,
    password_hash TEXT,              -- argon2id, PHC string
    name          TEXT    NOT NULL,
    is_visitor    INTEGER NOT NULL DEFAULT 0,
    is_guide      INTEGER NOT NULL DEFAULT 0,
    is_admin      INTEGER NOT NULL DEFAULT 0,
    frozen_at     INTEGER,           -- a guide whom an admin has frozen
    created_at    INTEGER NOT NULL,
    UNIQUE (tenant_id, mobile),
    UNIQUE (tenant_id, username)
) STRICT;

CREATE TABLE session (
    token_hash   TEXT    PRIMARY KEY, -- SHA-256 of the token, hex
    tenant_id    INTEGER NOT NULL REFERENCES tenant (id),
    account_id   INTEGER NOT NULL REFERENCES account (id),
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,    -- the absolute end
    last_used_at INTEGER NOT NULL     -- for the idle end; written at most once a minute
) STRICT;
CREATE INDEX session_account ON session (tenant_id, account_id);

-- One-time sign-in links of the demo.
CREATE TABLE sign_in_link (
    token_hash TEXT    PRIMARY KEY,   -- SHA-256 of the token, hex
    tenant_id  INTEGER NOT NULL REFERENCES tenant (id),
    account_id INTEGER NOT NULL REFERENCES account (id),
    expires_at INTEGER NOT NULL,
    used_at    INTEGER
) STRICT;

CREATE TABLE api_key (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id  INTEGER NOT NULL REFERENCES tenant (id),
    name       TEXT    NOT NULL,
    key_hash   TEXT    NOT NULL UNIQUE, -- SHA-256 of the key, hex
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

-- A guided tour; it belongs to the day it starts on, in the venue's zone.
CREATE TABLE task (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id  INTEGER NOT NULL REFERENCES tenant (id),
    task_no    TEXT    NOT NULL,
    title      TEXT    NOT NULL,
    venue      TEXT    NOT NULL,
    starts_at  INTEGER NOT NULL,
    ends_at    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (tenant_id, task_no)
) STRICT;
CREATE INDEX task_day ON task (tenant_id, starts_at);

CREATE TABLE task_guide (
    task_id    INTEGER NOT NULL REFERENCES task (id),
    account_id INTEGER NOT NULL REFERENCES account (id),
    tenant_id  INTEGER NOT NULL REFERENCES tenant (id),
    PRIMARY KEY (task_id, account_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_guide_account ON task_guide (tenant_id, account_id);

CREATE TABLE booking_order (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id    INTEGER NOT NULL REFERENCES tenant (id),
    order_no     TEXT    NOT NULL,    -- upper case, compared bytewise
    account_id   INTEGER NOT NULL REFERENCES account (id), -- the visitor
    visitor_name TEXT    NOT NULL,
    party_size   INTEGER NOT NULL,
    visit_at     INTEGER NOT NULL,
    status       TEXT    NOT NULL,    -- the wire's word
    task_id      INTEGER REFERENCES task (id),
    consumed_at  INTEGER,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    UNIQUE (tenant_id, order_no)
) STRICT;
CREATE INDEX booking_order_task ON booking_order (tenant_id, task_id);
CREATE INDEX booking_order_account ON booking_order (tenant_id, account_id);

-- The audit: one row for each redemption that succeeded and for each refusal that concerns an order in the caller's reach.
CREATE TABLE redemption (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id          INTEGER NOT NULL REFERENCES tenant (id),
    order_id           INTEGER REFERENCES booking_order (id), -- null: a limit or a frozen operator stood before the order
    request_id         TEXT,             -- the caller's name for the attempt
    operator_id        INTEGER,          -- account; null for the system
    operator_type      TEXT    NOT NULL, -- guide, admin, system
    entry              TEXT,             -- scan, wedge, manual
    device_id          INTEGER,
    address            TEXT,             -- the client's
    status_before      TEXT,
    status_after       TEXT,
    result             INTEGER NOT NULL, -- 0, or the error's code
    at                 INTEGER NOT NULL,
    -- The order's id while this success stands, null in refusals and once reversed: one standing success an order.
    standing_order_id  INTEGER,
    -- The request id of a success, kept for ever, so that a repeat finds it: unique for the operator.
    claimed_request_id TEXT,
    reason             TEXT,             -- why an admin compensated or reversed
    -- The minute of a refusal by a limit or a frozen operator: one row an operator, result and minute.
    limited_minute     INTEGER
) STRICT;
CREATE UNIQUE INDEX redemption_standing ON redemption (tenant_id, standing_order_id);
CREATE UNIQUE INDEX redemption_claim ON redemption (tenant_id, operator_id, claimed_request_id);
CREATE UNIQUE INDEX redemption_limited ON redemption (tenant_id, operator_id, result, limited_minute);
CREATE INDEX redemption_order ON redemption (tenant_id, order_id);

-- Settings changed while the server runs; they lie over file and environment.
CREATE TABLE setting (
    tenant_id  INTEGER NOT NULL REFERENCES tenant (id),
    name       TEXT    NOT NULL,      -- as in the settings file, with dots
    value      TEXT    NOT NULL,      -- JSON
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, name)
) STRICT, WITHOUT ROWID;

-- What an admin should look at.
CREATE TABLE alert (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id  INTEGER NOT NULL REFERENCES tenant (id),
    kind       TEXT    NOT NULL,
    account_id INTEGER,               -- whom it concerns
    at         INTEGER NOT NULL
) STRICT;
CREATE INDEX alert_tenant ON alert (tenant_id, id);
