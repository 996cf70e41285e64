-- The same tables as on SQLite; the reasons are noted there. A mark goes with its row.
create table outbox (
  seq bigint primary key references entries (seq) on delete cascade,
  refused text
);

create table outbox_effects (
  run bigint not null,
  key text not null,
  begun bigint not null,
  kept bigint not null,
  refused text,
  primary key (run, key),
  foreign key (run, key) references idempotency_cache (run, key) on delete cascade
);
