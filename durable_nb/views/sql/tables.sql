-- What is taken from a store as it is: the columns are those of stores/protocol.py (`RunRow`, and the
-- rows of `Readable`). The views are made of these; `moment` and other times count µs since 1970.
create table _runs (
  execution_id varchar, session varchar, agent varchar, status varchar, prompt varchar,
  steps bigint, created bigint, updated bigint, tags varchar, workdir varchar,
  parent varchar
);

create table _entries (
  place bigint, execution_id varchar, agent varchar, frame varchar, number bigint, kind varchar,
  turn bigint, tool varchar, moment bigint, body varchar
);

create table _effects (
  execution_id varchar, function varchar, key varchar, number bigint, newest bigint,
  attempts bigint, begun bigint, kept bigint, value varchar
);
