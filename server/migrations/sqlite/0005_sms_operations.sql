-- What an alert is about, and the daily comparison with the providers' counts of SMS.

ALTER TABLE alert ADD COLUMN data TEXT; -- JSON: channel, counts, networks; nothing personal

-- A day's count of one channel against its provider's. A channel is the server's, so there is no tenant.
CREATE TABLE sms_reconciliation (
    channel    TEXT    NOT NULL,
    day        TEXT    NOT NULL, -- YYYYMMDD, as providers count days (UTC+8)
    created_at INTEGER NOT NULL, -- when the provider was first asked
    attempts   INTEGER NOT NULL, -- how often
    due_at     INTEGER NOT NULL, -- not again before; while a server asks, the end of its claim
    ours       INTEGER,
    theirs     INTEGER,          -- null where the provider has not told in a day
    done_at    INTEGER,
    PRIMARY KEY (channel, day)
) STRICT, WITHOUT ROWID;
