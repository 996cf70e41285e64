-- A run: what is known of it once and for all. `id` is the execution_id.
create table runs (
  key integer primary key,
  id text not null unique,
  session text not null,
  agent text not null,
  prompt text not null,
  created integer not null,
  workdir text,
  tags text not null default '[]',
  parent text,
  base integer not null default 0,
  fingerprint text not null
);

-- The text behind a fingerprint is kept once, so that listing many runs reads little.
create table definitions (
  fingerprint text primary key,
  definition text not null
);

-- The log. `seq` is for readers who take what is new; `number` orders a run and decides claims.
create table entries (
  seq integer primary key,
  run integer not null references runs (key),
  frame text not null default '',
  number integer not null,
  kind text not null check (kind in ('turn', 'tool_call', 'pause', 'answer', 'reentry', 'end')),
  turn integer not null,
  tool text,
  at integer not null,
  writer integer not null,
  checksum integer not null,
  body text not null,
  unique (run, number)
);

-- Finding who waits for a person must not read the runs that do not.
create index pauses on entries (run) where kind = 'pause';

-- A conversation's runs, and who needs a run that somebody wants to remove.
create index sessions on runs (session);
create index parents on runs (parent) where parent is not null;

-- Raised whenever rows are removed: readers that take only what is new begin again.
create table removals (
  count integer not null
);
insert into removals values (0);

-- What @idempotent functions did. `kept` is null while a call is begun and has left no result.
create table idempotency_cache (
  run integer not null references runs (key),
  key text not null,
  function text not null,
  number integer not null,
  attempts integer not null default 1,
  begun integer not null,
  kept integer,
  value text,
  primary key (run, key)
);

-- What people read: a row a step, in the words of the documentation.
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
    when 'end' then iif(json_valid(e.body), json_extract(e.body, '$.status'), 'damaged')
    else 'completed'
  end as status,
  'agent:' || r.agent || coalesce('/tool:' || e.tool, '') as agent_path,
  strftime('%Y-%m-%dT%H:%M:%S', e.at / 1000000, 'unixepoch')
    || printf('.%06dZ', e.at % 1000000) as created_at,
  e.body
from entries as e join runs as r on r.key = e.run;

-- A pause waits while it is its run's newest entry: an answer or an end comes after it.
create view pending_interrupts as
select
  r.id as execution_id,
  p.number,
  iif(json_valid(p.body), json_extract(p.body, '$.reason'), 'damaged') as reason,
  iif(json_valid(p.body), json_extract(p.body, '$.context'), null) as context,
  'turn:' || p.turn || '/tool:' || p.tool as node_id,
  'agent:' || r.agent || '/tool:' || p.tool as agent_path,
  p.at
from entries as p join runs as r on r.key = p.run
where p.kind = 'pause' and p.number = (select max(number) from entries where run = p.run);
