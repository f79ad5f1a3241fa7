-- What is to be told to other systems, and the indexes by which the feed and the exports are read.

-- The outbox of web hooks: a row for each event and receiver, written in the redemption's own transaction.
CREATE TABLE web_hook_delivery (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id   INTEGER NOT NULL REFERENCES tenant (id),
    hook        TEXT    NOT NULL, -- the receiver's name in the settings file; its address and secret stay there
    event_id    TEXT    NOT NULL UNIQUE, -- the same however often it is sent
    event       TEXT    NOT NULL, -- order.consumed, order.reversed
    order_id    INTEGER NOT NULL REFERENCES booking_order (id),
    body        TEXT    NOT NULL, -- JSON, sent and signed as it stands here
    created_at  INTEGER NOT NULL,
    attempts    INTEGER NOT NULL DEFAULT 0,
    due_at      INTEGER NOT NULL, -- not before; while a server sends it, the end of that server's claim
    last_result TEXT,             -- of the last attempt that failed
    done_at     INTEGER,          -- delivered or given up
    given_up    INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX web_hook_delivery_due ON web_hook_delivery (tenant_id, hook, done_at, due_at);
CREATE INDEX web_hook_delivery_order ON web_hook_delivery (tenant_id, hook, order_id, id);
CREATE INDEX web_hook_delivery_age ON web_hook_delivery (tenant_id, created_at);

CREATE INDEX redemption_feed ON redemption (tenant_id, id);
CREATE INDEX booking_order_export ON booking_order (tenant_id, id);
