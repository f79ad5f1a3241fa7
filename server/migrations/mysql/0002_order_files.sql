-- Order files on their way in: a file is read into rows here, looked at as a whole, and applied in one transaction.
-- Rows go once their import has been applied, refused or left alone; the import itself stays, as a record.

CREATE TABLE order_import (
    id          BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    tenant_id   BIGINT NOT NULL REFERENCES tenant (id),
    account_id  BIGINT,              -- the admin; null: the command line
    state       VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin    NOT NULL,     -- reading, previewed, refused, applied, dropped
    has_task    BIGINT NOT NULL DEFAULT 0, -- the file has a column for tasks
    expected    BIGINT NOT NULL DEFAULT 0, -- lines, estimated before they are read
    done        BIGINT NOT NULL DEFAULT 0, -- lines that have been read
    new_orders  BIGINT NOT NULL DEFAULT 0,
    changed     BIGINT NOT NULL DEFAULT 0,
    unchanged   BIGINT NOT NULL DEFAULT 0,
    new_tasks   BIGINT NOT NULL DEFAULT 0,
    fault_count BIGINT NOT NULL DEFAULT 0,
    created_at  BIGINT NOT NULL,
    touched_at  BIGINT NOT NULL,     -- the last sign of life while it is read
    applied_at  BIGINT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX order_import_state ON order_import (state, touched_at);

-- What is wrong with a file: the first hundred faults, in both languages.
CREATE TABLE order_import_fault (
    import_id BIGINT NOT NULL REFERENCES order_import (id),
    n         BIGINT NOT NULL,
    tenant_id BIGINT NOT NULL REFERENCES tenant (id),
    line      BIGINT,                -- null: the file as a whole
    field     VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin,                   -- a column's name
    zh        VARCHAR(255)    NOT NULL,
    en        VARCHAR(255)    NOT NULL,
    PRIMARY KEY (import_id, n)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- One line of a file. Without a foreign key to its import: a hundred thousand lookups that protect nothing.
CREATE TABLE order_import_row (
    import_id      BIGINT NOT NULL,
    line           BIGINT NOT NULL,  -- as a spreadsheet shows it
    tenant_id      BIGINT NOT NULL,
    order_no       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin    NOT NULL,
    mobile         VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin    NOT NULL,  -- E.164
    visitor_name   VARCHAR(64)    NOT NULL,
    party_size     BIGINT NOT NULL,
    visit_at       BIGINT NOT NULL,
    status         VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin    NOT NULL,
    task_no        VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    action         VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin    NOT NULL,  -- new, change, same
    order_id       BIGINT,           -- the order that stood there when the line was read,
    old_status     VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin,              -- its status,
    old_account_id BIGINT,           -- and its visitor: it is changed only if it still has both
    -- What the application need not look for again among a hundred thousand lines:
    new_visitor    BIGINT NOT NULL DEFAULT 0, -- the number had no account of a visitor's,
    new_owner      BIGINT NOT NULL DEFAULT 0, -- the order belonged to another one,
    new_task       BIGINT NOT NULL DEFAULT 0, -- or to another task
    PRIMARY KEY (import_id, line)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX order_import_row_order ON order_import_row (import_id, order_no);
