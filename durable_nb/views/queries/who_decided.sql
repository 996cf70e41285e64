-- Who decided how often, which way, and how long runs waited for them.
select
  "by",
  source,
  count(*) as decisions,
  count(*) filter (approved) as approved,
  count(*) filter (outcome = 'rejected') as rejected,
  count(*) filter (edited is not null) as with_edits,
  round(median(waited), 1) as median_wait_seconds,
  max(decided_at) as newest
from decisions
group by all
order by decisions desc, "by"
