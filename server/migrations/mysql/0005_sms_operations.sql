-- What an alert is about, and the daily comparison with the providers' counts of SMS.

ALTER TABLE alert ADD COLUMN data VARCHAR(4000); -- JSON: channel, counts, networks; nothing personal

-- A day's count of one channel against its provider's. A channel is the server's, so there is no tenant.
CREATE TABLE sms_reconciliation (
    channel    VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    day        CHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- YYYYMMDD, as providers count days (UTC+8)
    created_at BIGINT NOT NULL, -- when the provider was first asked
    attempts   BIGINT NOT NULL, -- how often
    due_at     BIGINT NOT NULL, -- not again before; while a server asks, the end of its claim
    ours       BIGINT,
    theirs     BIGINT,          -- null where the provider has not told in a day
    done_at    BIGINT,
    PRIMARY KEY (channel, day)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
