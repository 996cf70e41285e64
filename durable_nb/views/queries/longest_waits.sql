-- The approvals that have been waited for longest, with what they are about.
-- $limit = 20
select
  execution_id,
  number as pause,
  agent,
  reason,
  context,
  created_at as waits_since,
  round(epoch(now() - created_at) / 3600, 2) as hours
from pending
order by created_at, execution_id
limit $limit
