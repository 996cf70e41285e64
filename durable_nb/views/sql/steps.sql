-- A row a step, in the words of core/nodes.py. Tokens are those of the reply that the row brought.
select
  execution_id,
  number,
  case
    when kind = 'end' then 'run_end'
    else 'turn:' || turn || coalesce('/tool:' || tool, '')
  end as node_id,
  turn as node_index,
  case kind
    when 'turn' then 'llm_call'
    when 'tool_call' then 'tool_call'
    when 'pause' then 'hitl_pause'
    when 'end' then 'run_end'
    else 'resume'
  end as step_type,
  case kind
    when 'pause' then 'interrupted'
    when 'end' then body ->> '$.status'
    else 'completed'
  end as status,
  'agent:' || agent || coalesce('/tool:' || tool, '') as agent_path,
  make_timestamptz(moment) as created_at,
  tool,
  (body ->> '$.usage[0]')::bigint as input_tokens,
  (body ->> '$.usage[1]')::bigint as output_tokens,
  case kind when 'end' then body ->> '$.output' end as output,
  case kind when 'end' then body ->> '$.error' end as error
from _entries
