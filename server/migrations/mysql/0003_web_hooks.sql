-- What is to be told to other systems, and the indexes by which the feed and the exports are read.

-- The outbox of web hooks: a row for each event and receiver, written in the redemption's own transaction.
CREATE TABLE web_hook_delivery (
    id          BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    tenant_id   BIGINT NOT NULL REFERENCES tenant (id),
    hook        VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- the receiver's name in the settings file; its address and secret stay there
    event_id    VARCHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE, -- the same however often it is sent
    event       VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- order.consumed, order.reversed
    order_id    BIGINT NOT NULL REFERENCES booking_order (id),
    body        VARCHAR(2000) NOT NULL, -- JSON, sent and signed as it stands here
    created_at  BIGINT NOT NULL,
    attempts    BIGINT NOT NULL DEFAULT 0,
    due_at      BIGINT NOT NULL, -- not before; while a server sends it, the end of that server's claim
    last_result VARCHAR(64),             -- of the last attempt that failed
    done_at     BIGINT,          -- delivered or given up
    given_up    BIGINT NOT NULL DEFAULT 0
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX web_hook_delivery_due ON web_hook_delivery (tenant_id, hook, done_at, due_at);
CREATE INDEX web_hook_delivery_order ON web_hook_delivery (tenant_id, hook, order_id, id);
CREATE INDEX web_hook_delivery_age ON web_hook_delivery (tenant_id, created_at);

CREATE INDEX redemption_feed ON redemption (tenant_id, id);
CREATE INDEX booking_order_export ON booking_order (tenant_id, id);
