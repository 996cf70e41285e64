-- A row a conversation, the one with the newest run first: a run and its follow-ups. Of the runs, the
-- newer one has the smaller rowid, as they were taken in the order in which the store lists them.
select
  session,
  arg_min(execution_id, _runs.rowid) as newest,
  arg_min(status, _runs.rowid) as status,
  arg_min(agent, _runs.rowid) as agent,
  arg_max(prompt, _runs.rowid) as prompt,
  count(*) as runs,
  make_timestamptz(arg_max(created, _runs.rowid)) as created_at,
  make_timestamptz(arg_min(updated, _runs.rowid)) as updated_at
from _runs
group by session
order by min(_runs.rowid)
