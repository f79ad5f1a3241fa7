-- SMS codes: each send, and each use of a code. No code is ever written here.

CREATE TABLE sms_send (
    id          BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    tenant_id   BIGINT NOT NULL REFERENCES tenant (id),
    send_id     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE, -- the send's own id, which providers are told
    scene       VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    via         VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- sms, voice
    last_four   VARCHAR(255) NOT NULL, -- of the number; of a mailbox its host
    digest      CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- keyed digest of tenant and number, as in the code store
    address     VARCHAR(64),             -- the client's
    outcome     VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- sending, sent, unknown, not_taken, number_limit, refused
    channel     VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin,             -- that decided it
    provider_id VARCHAR(128),
    reason      VARCHAR(1000),             -- what each channel said
    at          BIGINT NOT NULL,
    receipt     VARCHAR(255),             -- what the provider said afterwards
    receipt_at  BIGINT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX sms_send_number ON sms_send (tenant_id, digest, at);
CREATE INDEX sms_send_at ON sms_send (tenant_id, at);
CREATE INDEX sms_send_provider ON sms_send (channel, at);

-- The use of a code, in the transaction of what it was used for: a code store that falls back to an older state cannot
-- bring it back to life.
CREATE TABLE sms_use (
    send_id    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    tenant_id  BIGINT NOT NULL REFERENCES tenant (id),
    scene      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    attempt    CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- the attempt that used it; its repeat is known by this
    account_id BIGINT,
    at         BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX sms_use_at ON sms_use (tenant_id, at);
