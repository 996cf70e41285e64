-- What a plane has of the log. An entry without a mark waits, so that nothing is written for it when
-- it is appended. `refused` says why the plane did not take a row; it is null where it did.
create table outbox (
  seq integer primary key references entries (seq),
  refused text
);

-- The same for what @idempotent functions did: such a row changes, and a mark is of one state of it.
-- `kept` is 0 while the call had left no result.
create table outbox_effects (
  run integer not null,
  key text not null,
  begun integer not null,
  kept integer not null,
  refused text,
  primary key (run, key),
  foreign key (run, key) references idempotency_cache (run, key)
);
