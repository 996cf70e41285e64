-- The same tables as on SQLite; the reasons are noted there. All live in a schema of their own.
create table runs (
  key bigint generated always as identity primary key,
  id text not null unique,
  session text not null,
  agent text not null,
  prompt text not null,
  created bigint not null,
  workdir text,
  tags text not null default '[]',
  parent text,
  base bigint not null default 0,
  fingerprint text not null
);

create table definitions (
  fingerprint text primary key,
  definition text not null
);

create table entries (
  seq bigint generated always as identity primary key,
  run bigint not null references runs (key),
  frame text not null default '',
  number bigint not null,
  kind text not null check (kind in ('turn', 'tool_call', 'pause', 'answer', 'reentry', 'end')),
  turn bigint not null,
  tool text,
  at bigint not null,
  writer bigint not null,
  checksum bigint not null,
  body text not null,
  unique (run, number)
);

create index pauses on entries (run) where kind = 'pause';

-- A conversation's runs, and who needs a run that somebody wants to remove.
create index sessions on runs (session);
create index parents on runs (parent) where parent is not null;

-- Raised whenever rows are removed: readers that take only what is new begin again.
create table removals (
  count bigint not null
);
insert into removals values (0);

create table idempotency_cache (
  run bigint not null references runs (key),
  key text not null,
  function text not null,
  number bigint not null,
  attempts bigint not null default 1,
  begun bigint not null,
  kept bigint,
  value text,
  primary key (run, key)
);

-- The processes that drive runs, and since when each was last heard of, by this server's clock.
-- boot, namespace, pid and started let another process of the same machine see that one is gone.
create table processes (
  id text primary key,
  host text not null,
  boot text not null,
  namespace text not null,
  pid bigint not null,
  started text not null,
  seen_at timestamptz not null default clock_timestamp()
);

-- Which process holds which claim. The claim's advisory lock has the number `writer`.
create table drivers (
  writer bigint primary key,
  process text not null references processes (id) on delete cascade
);

create view checkpoints as
select
  r.id as execution_id,
  e.number,
  case
    when e.kind = 'end' then 'run_end'
    when e.tool is null then 'turn:' || e.turn
    else 'turn:' || e.turn || '/tool:' || e.tool
  end as node_id,
  e.turn as node_index,
  case e.kind
    when 'turn' then 'llm_call'
    when 'tool_call' then 'tool_call'
    when 'pause' then 'hitl_pause'
    when 'end' then 'run_end'
    else 'resume'
  end as step_type,
  case e.kind
    when 'pause' then 'interrupted'
    when 'end' then e.body::json ->> 'status'
    else 'completed'
  end as status,
  'agent:' || r.agent || coalesce('/tool:' || e.tool, '') as agent_path,
  to_timestamp(e.at / 1000000.0) as created_at,
  e.body
from entries as e join runs as r on r.key = e.run;

create view pending_interrupts as
select
  r.id as execution_id,
  p.number,
  p.body::json ->> 'reason' as reason,
  p.body::json -> 'context' as context,
  'turn:' || p.turn || '/tool:' || p.tool as node_id,
  'agent:' || r.agent || '/tool:' || p.tool as agent_path,
  p.at
from entries as p join runs as r on r.key = p.run
where p.kind = 'pause' and p.number = (select max(number) from entries where run = p.run);
