-- Readers that take only what is new go by the transaction that wrote a row. By `seq` they would miss
-- rows: of two writers the one with the lower `seq` may commit later. Of transactions it is known
-- which is the oldest that is still at work, and nothing is added before it.
alter table entries add column xid bigint not null default pg_current_xact_id()::text::bigint;

create index places on entries (xid);
