-- SMS codes: each send, and each use of a code. No code is ever written here.

CREATE TABLE sms_send (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id   INTEGER NOT NULL REFERENCES tenant (id),
    send_id     TEXT    NOT NULL UNIQUE, -- the send's own id, which providers are told
    scene       TEXT    NOT NULL,
    via         TEXT    NOT NULL, -- sms, voice
    last_four   TEXT    NOT NULL, -- of the number; of a mailbox its host
    digest      TEXT    NOT NULL, -- keyed digest of tenant and number, as in the code store
    address     TEXT,             -- the client's
    outcome     TEXT    NOT NULL, -- sending, sent, unknown, not_taken, number_limit, refused
    channel     TEXT,             -- that decided it
    provider_id TEXT,
    reason      TEXT,             -- what each channel said
    at          INTEGER NOT NULL,
    receipt     TEXT,             -- what the provider said afterwards
    receipt_at  INTEGER
) STRICT;
CREATE INDEX sms_send_number ON sms_send (tenant_id, digest, at);
CREATE INDEX sms_send_at ON sms_send (tenant_id, at);
CREATE INDEX sms_send_provider ON sms_send (channel, at);

-- The use of a code, in the transaction of what it was used for: a code store that falls back to an older state cannot
-- bring it back to life.
CREATE TABLE sms_use (
    send_id    TEXT    NOT NULL PRIMARY KEY,
    tenant_id  INTEGER NOT NULL REFERENCES tenant (id),
    scene      TEXT    NOT NULL,
    attempt    TEXT    NOT NULL, -- the attempt that used it; its repeat is known by this
    account_id INTEGER,
    at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sms_use_at ON sms_use (tenant_id, at);
