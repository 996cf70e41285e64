-- What is taken from a store as it is: the columns are those of a `RunRow` and of an entry's row in
-- stores/protocol.py. The views are made of these; `moment` counts µs since 1970.
create table _runs (
  execution_id varchar, session varchar, agent varchar, status varchar, prompt varchar,
  steps bigint, created bigint, updated bigint, tags varchar, workdir varchar,
  parent varchar
);

create table _entries (
  seq bigint, execution_id varchar, agent varchar, frame varchar, number bigint, kind varchar,
  turn bigint, tool varchar, moment bigint, body varchar
);
