-- The guard's tables in PostgreSQL 12 or later. The database's encoding has to
-- be UTF8. Text is compared byte by byte: no two ids are equal, and an upgrade
-- of the system's collations does not touch the index.

-- Ids that have been processed. expires_at null: for ever.
CREATE TABLE IF NOT EXISTS "babelqueue_idempotency" (
    message_id text COLLATE "C" PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NULL
);

-- For the collection of expired rows. On a large table that is in use already,
-- create it beforehand with CREATE INDEX CONCURRENTLY.
CREATE INDEX IF NOT EXISTS "babelqueue_idempotency_expires_at_idx"
    ON "babelqueue_idempotency" (expires_at);

-- Deliveries in progress. Few rows, gone when their delivery ends.
CREATE TABLE IF NOT EXISTS "babelqueue_lease" (
    message_id text COLLATE "C" PRIMARY KEY,
    token text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);

-- Single steps of handlers that have been begun.
CREATE TABLE IF NOT EXISTS "babelqueue_once" (
    message_id text COLLATE "C" NOT NULL,
    step text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NULL,
    PRIMARY KEY (message_id, step)
);

CREATE INDEX IF NOT EXISTS "babelqueue_once_expires_at_idx"
    ON "babelqueue_once" (expires_at);
