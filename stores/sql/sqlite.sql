-- The guard's tables in SQLite 3.24 or later. Times are milliseconds since
-- 1970-01-01T00:00:00Z.

-- Ids that have been processed. expires_at null: for ever.
CREATE TABLE IF NOT EXISTS "babelqueue_idempotency" (
    message_id TEXT NOT NULL PRIMARY KEY,
    created_at INTEGER NOT NULL
        DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
    expires_at INTEGER NULL
) WITHOUT ROWID;

-- For the collection of expired rows.
CREATE INDEX IF NOT EXISTS "babelqueue_idempotency_expires_at_idx"
    ON "babelqueue_idempotency" (expires_at);

-- Deliveries in progress. Few rows, gone when their delivery ends.
CREATE TABLE IF NOT EXISTS "babelqueue_lease" (
    message_id TEXT NOT NULL PRIMARY KEY,
    token TEXT NOT NULL,
    created_at INTEGER NOT NULL
        DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Single steps of handlers that have been begun.
CREATE TABLE IF NOT EXISTS "babelqueue_once" (
    message_id TEXT NOT NULL,
    step TEXT NOT NULL,
    created_at INTEGER NOT NULL
        DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
    expires_at INTEGER NULL,
    PRIMARY KEY (message_id, step)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS "babelqueue_once_expires_at_idx"
    ON "babelqueue_once" (expires_at);
