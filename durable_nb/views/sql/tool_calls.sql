-- A row a call that a model asked for. It begins at its `ToolCall`, or, where a fork enters a call
-- again, at the `Reentry` that opens the fork: its arguments stand in a run that the fork goes on from.
with recursive place_in_run as (
  select
    * exclude (body),
    if(kind in ('tool_call', 'answer', 'reentry', 'pause'), body, null) as body,
    min(number) over (partition by execution_id) as first_number,
    lead(kind) over later as next,
    lead(moment) over later as next_moment
  from _entries
  window later as (partition by execution_id, frame order by number)
),
entry as (
  select
    *,
    kind = 'tool_call' or (kind = 'reentry' and tool is not null and number = first_number) as opens,
    max(number) filter (
      kind = 'tool_call' or (kind = 'reentry' and number = first_number)
    ) over (partition by execution_id, frame order by number) as step
  from place_in_run
),
line as (
  select
    execution_id, step, parent as ancestor, (body ->> '$.of')::bigint as upto
  from entry join _runs using (execution_id)
  where opens and kind = 'reentry' and parent is not null
  union all
  select
    line.execution_id, step, parent, least(upto, began.number - 1)
  from line
  join _runs on _runs.execution_id = ancestor
  join (select execution_id, min(number) as number from _entries group by all) as began
    on began.execution_id = ancestor
  where parent is not null
),
origin as (
  select line.execution_id, step, arg_max(body, number) as body
  from line join _entries as e
    on e.execution_id = ancestor and e.kind = 'tool_call' and e.number <= upto
  group by all
),
during as (
  select
    execution_id,
    frame,
    step,
    count(*) filter (kind in ('tool_call', 'reentry')) as attempts,
    coalesce(bool_or(
      kind = 'answer' and (body ->> '$.approved') = 'false' and (body ->> '$.outcome') is null
    ), false) as refused,
    coalesce(arg_max(kind = 'pause' and (body ->> '$.asks') is null, number), false) as waits,
    arg_max(coalesce(next, ''), number) as next,
    sum(next_moment - moment) filter (
      kind <> 'pause' and next in ('pause', 'tool_call', 'turn', 'end')
    ) as worked
  from entry
  where kind in ('tool_call', 'pause', 'answer', 'reentry') and tool is not null
  group by all
),
edits as (
  select execution_id, step, json_group_object(key, value)::varchar as edited
  from (
    select execution_id, step, key, arg_max(value, number) as value
    from (
      select
        execution_id,
        step,
        number,
        unnest(json_keys(body, '$.edited')) as key,
        json_extract(
          body, '/edited/' || replace(replace(key, '~', '~0'), '/', '~1')
        ) as value
      from entry
      where kind in ('answer', 'reentry') and tool is not null and (body -> '$.edited') is not null
    )
    group by all order by min(number), key
  )
  group by all
),
said as (
  select
    execution_id, frame, place, number, kind, turn, agent, moment,
    unnest(json_extract(body, '$.messages[*]')) as message
  from _entries
  where contains(body, '"tool_call')  -- what else they say is of no matter here, and much
    and (kind in ('turn', 'tool_call') or (kind = 'end' and (body ->> '$.status') <> 'failed'))
),
result as (
  select
    execution_id, frame, number, message ->> '$.tool_call_id' as call_id,
    coalesce(message ->> '$.content', '') as content
  from said
  where (message ->> '$.role') = 'tool'
),
asked as (
  select
    *,
    unnest(json_extract(message, '$.tool_calls[*]')) as body,
    generate_subscripts(json_extract(message, '$.tool_calls[*]'), 1) as position,
    body ->> '$.id' as call_id
  from said
  where (message ->> '$.role') = 'assistant' and (message -> '$.tool_calls') is not null
),
begun as (
  select
    e.execution_id, e.frame, e.place, e.number, e.turn, e.agent, e.tool, e.moment,
    coalesce(origin.body, e.body) ->> '$.call_id' as call_id,
    (coalesce(origin.body, e.body) -> '$.arguments')::varchar as arguments
  from entry as e left join origin on origin.execution_id = e.execution_id and origin.step = e.number
  where opens
),
called as (
  select
    begun.* exclude (place), coalesce(asked.place, begun.place) as place,
    coalesce(position, 0) as position, edited, content, begun.moment as started, worked,
    attempts, refused, waits, during.next
  from begun
  join during on (during.execution_id, during.frame, during.step)
    = (begun.execution_id, begun.frame, begun.number)
  left join edits on (edits.execution_id, edits.step) = (begun.execution_id, begun.number)
  left join asked on (asked.execution_id, asked.frame, asked.call_id)
    = (begun.execution_id, begun.frame, begun.call_id)
  left join result on (result.execution_id, result.frame, result.call_id)
    = (begun.execution_id, begun.frame, begun.call_id)
  union all by name
  select
    asked.execution_id, asked.frame, asked.place, result.number,
    asked.turn - if(asked.kind = 'tool_call', 0, 1) as turn, asked.agent,
    asked.body ->> '$.tool' as tool, asked.call_id,
    (asked.body -> '$.arguments')::varchar as arguments, position, content, 0 as attempts
  from asked
  anti join begun using (execution_id, frame, call_id)
  left join result using (execution_id, frame, call_id)
)
select
  execution_id,
  number,
  turn,
  'turn:' || turn || '/tool:' || tool as node_id,
  tool,
  call_id,
  arguments,
  edited,
  content as result,
  case
    when attempts = 0 and coalesce(starts_with(content, '[not run: '), true) then 'not run'
    when content is null and waits then if(next = '', 'paused', 'not run')
    when content is null then if(next = '' and status = 'running', 'in flight', 'in doubt')
    when refused then 'refused'
    when attempts > 1 and starts_with(content, '[in doubt: ') then 'in doubt'
    when regexp_matches(content, '^(\[approved [^\n]*\]\n)*Error: ') then 'error'
    else 'done'
  end as outcome,
  attempts,
  make_timestamptz(started) as started_at,
  if(content is null, null, worked / 1e6) as duration,
  'agent:' || agent || '/tool:' || tool as agent_path
from called
left join _runs using (execution_id, agent)
order by place, position, number
