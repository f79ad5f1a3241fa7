-- Order files on their way in: a file is read into rows here, looked at as a whole, and applied in one transaction.
-- Rows go once their import has been applied, refused or left alone; the import itself stays, as a record.

CREATE TABLE order_import (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id   INTEGER NOT NULL REFERENCES tenant (id),
    account_id  INTEGER,              -- the admin; null: the command line
    state       TEXT    NOT NULL,     -- reading, previewed, refused, applied, dropped
    has_task    INTEGER NOT NULL DEFAULT 0, -- the file has a column for tasks
    expected    INTEGER NOT NULL DEFAULT 0, -- lines, estimated before they are read
    done        INTEGER NOT NULL DEFAULT 0, -- lines that have been read
    new_orders  INTEGER NOT NULL DEFAULT 0,
    changed     INTEGER NOT NULL DEFAULT 0,
    unchanged   INTEGER NOT NULL DEFAULT 0,
    new_tasks   INTEGER NOT NULL DEFAULT 0,
    fault_count INTEGER NOT NULL DEFAULT 0,
    created_at  INTEGER NOT NULL,
    touched_at  INTEGER NOT NULL,     -- the last sign of life while it is read
    applied_at  INTEGER
) STRICT;
CREATE INDEX order_import_state ON order_import (state, touched_at);

-- What is wrong with a file: the first hundred faults, in both languages.
CREATE TABLE order_import_fault (
    import_id INTEGER NOT NULL REFERENCES order_import (id),
    n         INTEGER NOT NULL,
    tenant_id INTEGER NOT NULL REFERENCES tenant (id),
    line      INTEGER,                -- null: the file as a whole
    field     TEXT,                   -- a column's name
    zh        TEXT    NOT NULL,
    en        TEXT    NOT NULL,
    PRIMARY KEY (import_id, n)
) STRICT, WITHOUT ROWID;

-- One line of a file. Without a foreign key to its import: a hundred thousand lookups that protect nothing.
CREATE TABLE order_import_row (
    import_id      INTEGER NOT NULL,
    line           INTEGER NOT NULL,  -- as a spreadsheet shows it
    tenant_id      INTEGER NOT NULL,
    order_no       TEXT    NOT NULL,
    mobile         TEXT    NOT NULL,  -- E.164
    visitor_name   TEXT    NOT NULL,
    party_size     INTEGER NOT NULL,
    visit_at       INTEGER NOT NULL,
    status         TEXT    NOT NULL,
    task_no        TEXT,
    action         TEXT    NOT NULL,  -- new, change, same
    order_id       INTEGER,           -- the order that stood there when the line was read,
    old_status     TEXT,              -- its status,
    old_account_id INTEGER,           -- and its visitor: it is changed only if it still has both
    -- What the application need not look for again among a hundred thousand lines:
    new_visitor    INTEGER NOT NULL DEFAULT 0, -- the number had no account of a visitor's,
    new_owner      INTEGER NOT NULL DEFAULT 0, -- the order belonged to another one,
    new_task       INTEGER NOT NULL DEFAULT 0, -- or to another task
    PRIMARY KEY (import_id, line)
) STRICT, WITHOUT ROWID;
CREATE INDEX order_import_row_order ON order_import_row (import_id, order_no);
