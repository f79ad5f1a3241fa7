-- Tenants, accounts and their sessions, tasks, orders and the audit of redemptions.
-- Times are Unix milliseconds (UTC). Every row carries its tenant. No verify code is ever written here.

CREATE TABLE tenant (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name       VARCHAR(64) NOT NULL,
    created_at BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT INTO tenant (id, name, created_at) VALUES (1, 'Guidepost', 0);

-- An account is a mobile number in a tenant, with roles; admins have a user name and a password besides.
CREATE TABLE account (
    id            BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    tenant_id     BIGINT NOT NULL REFERENCES tenant (id),
    mobile        VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin,              -- E.164
    username      VARCHAR(64),
    password_hash VARCHAR(255),              -- argon2id, PHC string
    name          VARCHAR(64) NOT NULL,
    is_visitor    BIGINT NOT NULL DEFAULT 0,
    is_guide      BIGINT NOT NULL DEFAULT 0,
    is_admin      BIGINT NOT NULL DEFAULT 0,
    frozen_at     BIGINT,           -- a guide whom an admin has frozen
    created_at    BIGINT NOT NULL,
    UNIQUE (tenant_id, mobile),
    UNIQUE (tenant_id, username)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE session (
    token_hash   CHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, -- SHA-256 of the token, hex
    tenant_id    BIGINT NOT NULL REFERENCES tenant (id),
    account_id   BIGINT NOT NULL REFERENCES account (id),
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,    -- the absolute end
    last_used_at BIGINT NOT NULL     -- for the idle end; written at most once a minute
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX session_account ON session (tenant_id, account_id);

-- One-time sign-in links of the demo.
CREATE TABLE sign_in_link (
    token_hash CHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,   -- SHA-256 of the token, hex
    tenant_id  BIGINT NOT NULL REFERENCES tenant (id),
    account_id BIGINT NOT NULL REFERENCES account (id),
    expires_at BIGINT NOT NULL,
    used_at    BIGINT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE api_key (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    tenant_id  BIGINT NOT NULL REFERENCES tenant (id),
    name       VARCHAR(64) NOT NULL,
    key_hash   CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE, -- SHA-256 of the key, hex
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- A guided tour; it belongs to the day it starts on, in the venue's zone.
CREATE TABLE task (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    tenant_id  BIGINT NOT NULL REFERENCES tenant (id),
    task_no    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    title      VARCHAR(128) NOT NULL,
    venue      VARCHAR(128) NOT NULL,
    starts_at  BIGINT NOT NULL,
    ends_at    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (tenant_id, task_no)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX task_day ON task (tenant_id, starts_at);

CREATE TABLE task_guide (
    task_id    BIGINT NOT NULL REFERENCES task (id),
    account_id BIGINT NOT NULL REFERENCES account (id),
    tenant_id  BIGINT NOT NULL REFERENCES tenant (id),
    PRIMARY KEY (task_id, account_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX task_guide_account ON task_guide (tenant_id, account_id);

CREATE TABLE booking_order (
    id           BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    tenant_id    BIGINT NOT NULL REFERENCES tenant (id),
    order_no     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,    -- upper case, compared bytewise
    account_id   BIGINT NOT NULL REFERENCES account (id), -- the visitor
    visitor_name VARCHAR(64) NOT NULL,
    party_size   BIGINT NOT NULL,
    visit_at     BIGINT NOT NULL,
    status       VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,    -- the wire's word
    task_id      BIGINT REFERENCES task (id),
    consumed_at  BIGINT,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    UNIQUE (tenant_id, order_no)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX booking_order_task ON booking_order (tenant_id, task_id);
CREATE INDEX booking_order_account ON booking_order (tenant_id, account_id);

-- The audit: one row for each redemption that succeeded and for each refusal that concerns an order in the caller's reach.
CREATE TABLE redemption (
    id                 BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    tenant_id          BIGINT NOT NULL REFERENCES tenant (id),
    order_id           BIGINT REFERENCES booking_order (id), -- null: a limit or a frozen operator stood before the order
    request_id         VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,             -- the caller's name for the attempt
    operator_id        BIGINT,          -- account; null for the system
    operator_type      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- guide, admin, system
    entry              VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin,             -- scan, wedge, manual
    device_id          BIGINT,
    address            VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,             -- the client's
    status_before      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin,
    status_after       VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin,
    result             BIGINT NOT NULL, -- 0, or the error's code
    at                 BIGINT NOT NULL,
    -- The order's id while this success stands, null in refusals and once reversed: one standing success an order.
    standing_order_id  BIGINT,
    -- The request id of a success, kept for ever, so that a repeat finds it: unique for the operator.
    claimed_request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    reason             VARCHAR(255),             -- why an admin compensated or reversed
    -- The minute of a refusal by a limit or a frozen operator: one row an operator, result and minute.
    limited_minute     BIGINT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE UNIQUE INDEX redemption_standing ON redemption (tenant_id, standing_order_id);
CREATE UNIQUE INDEX redemption_claim ON redemption (tenant_id, operator_id, claimed_request_id);
CREATE UNIQUE INDEX redemption_limited ON redemption (tenant_id, operator_id, result, limited_minute);
CREATE INDEX redemption_order ON redemption (tenant_id, order_id);

-- Settings changed while the server runs; they lie over file and environment.
CREATE TABLE setting (
    tenant_id  BIGINT NOT NULL REFERENCES tenant (id),
    name       VARCHAR(64) NOT NULL,      -- as in the settings file, with dots
    value      VARCHAR(255) NOT NULL,      -- JSON
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, name)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What an admin should look at.
CREATE TABLE alert (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    tenant_id  BIGINT NOT NULL REFERENCES tenant (id),
    kind       VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    account_id BIGINT,               -- whom it concerns
    at         BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX alert_tenant ON alert (tenant_id, id);
