-- Every read that a running orchestrator repeats is a function that pins its plan, as commit_1 does: a plan made while its tables were small would read
-- them whole once they have grown.

-- Facts for runs, without owning their shards. Lists are as in commit_1.
CREATE FUNCTION "wovyr"."post_1"(messages integer, tenants text, runs text, shards integer[], ids text, facts text) RETURNS void LANGUAGE plpgsql AS $$
declare
  sep constant text := E'\x1f';
  a_tenants text[] := string_to_array(tenants, sep);
  a_runs text[] := string_to_array(runs, sep);
  a_ids text[] := string_to_array(ids, sep);
  a_facts text[] := string_to_array(facts, sep);
begin
  if cardinality(a_tenants) <> messages + 1 or cardinality(a_runs) <> messages + 1 or cardinality(a_ids) <> messages + 1
    or cardinality(a_facts) <> messages + 1 then
    raise exception 'a text of a message holds U+001F' using errcode = '22021';
  end if;
  insert into wovyr.inbox (shard, tenant, run, message, fact)
  select m.shard, m.tenant, m.run, m.id, m.fact
  from unnest(shards, a_tenants, a_runs, a_ids, a_facts) with ordinality m(shard, tenant, run, id, fact, place)
  where m.place <= messages on conflict do nothing;
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."drop_1"(messages integer, tenants text, runs text, ids text) RETURNS void LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
begin
  delete from wovyr.inbox w using (
    select found.tid
    from unnest(string_to_array(tenants, E'\x1f'), string_to_array(runs, E'\x1f'), string_to_array(ids, E'\x1f')) m(tenant, run, id)
    cross join lateral (
      select r.ctid as tid from wovyr.inbox r where r.tenant = m.tenant and r.run = m.run and r.message = m.id offset 0
    ) found
    offset 0
  ) t where w.ctid = t.tid;
end
$$;
--> statement-breakpoint
-- The lock is described in 0001_commit.sql. Lists of texts as in commit_1.
CREATE FUNCTION "wovyr"."publish_1"(
  asked_tenant text, asked_id text, asked_name text, asked_key text, asked_topic text, asked_digest text, asked_fact text, asked_at bigint,
  OUT known boolean, OUT first_digest text, OUT placed double precision, OUT published double precision, OUT reached integer, OUT runs text, OUT shards text
) LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  place bigint;
  stored tid;
begin
  if asked_key is not null then
    perform wovyr.check_isolation_1();
    perform pg_advisory_xact_lock(1471238, wovyr.topic_slot_1(asked_tenant, asked_topic));
  end if;
  known := false;
  loop
    insert into wovyr.publications as p (at, tenant, id, name, key, topic, digest, fact)
    values (asked_at, asked_tenant, asked_id, asked_name, asked_key, asked_topic, asked_digest, asked_fact)
    on conflict (tenant, id) do nothing returning p.position, p.ctid into place, stored;
    exit when found;
    -- None when it expired just now. The order keeps it to the primary key: while the table is small, any index of the tenant costs the same.
    select true, p.digest, p.position::double precision, p.at::double precision, p.reached into known, first_digest, placed, published, reached
    from wovyr.publications p where p.tenant = asked_tenant and p.id >= asked_id and p.id <= asked_id order by p.id limit 1;
    if found then
      return;
    end if;
    known := false;
  end loop;
  first_digest := asked_digest;
  placed := place;
  published := asked_at;
  with receivers as (
    select distinct w.run, w.shard from wovyr.waits w where w.tenant = asked_tenant and w.topic = asked_topic
  ), posted as (
    insert into wovyr.inbox as m (shard, tenant, run, message, fact)
    select r.shard, asked_tenant, r.run, 'publication:' || asked_id, wovyr.positioned_1(asked_fact, place) from receivers r order by r.run
    on conflict do nothing returning m.run, m.shard
  )
  select string_agg(p.run || E'\x1f', '' order by p.run), array_agg(p.shard order by p.run)::text, count(*) into runs, shards, reached from posted p;
  if publish_1.reached > 0 then
    update wovyr.publications p set reached = publish_1.reached where p.ctid = stored;
  end if;
end
$$;
--> statement-breakpoint
-- Removes the oldest of those that are older than `before`; says how many.
CREATE FUNCTION "wovyr"."expire_publications_1"(before bigint, most integer) RETURNS integer LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  gone integer;
begin
  delete from wovyr.publications p where p.ctid = any (array(select o.ctid from wovyr.publications o where o.at < before order by o.at limit most));
  get diagnostics gone = row_count;
  return gone;
end
$$;
--> statement-breakpoint
-- Writes a run with its whole history: 'done', 'run-exists', 'id-taken' or 'key-taken'. Lists of texts as in commit_1.
CREATE FUNCTION "wovyr"."import_1"(
  asked_tenant text, asked_run text, asked_shard integer, asked_tail integer, asked_busy boolean, asked_created bigint, asked_closed bigint, asked_id text,
  asked_workflow text, asked_version text, asked_status text, asked_parent text, asked_correlation text, asked_origin text, asked_attributes text,
  asked_slot text, asked_digest text, turns integer, seqs integer[], counts integer[], ats bigint[], nodes text, events text,
  messages integer, message_ids text, message_facts text
) RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  sep constant text := E'\x1f';
  a_nodes text[] := string_to_array(nodes, sep);
  a_events text[] := string_to_array(events, sep);
  a_ids text[] := string_to_array(message_ids, sep);
  a_facts text[] := string_to_array(message_facts, sep);
begin
  if (turns > 0 and (cardinality(a_nodes) <> turns + 1 or cardinality(a_events) <> turns + 1))
    or (messages > 0 and (cardinality(a_ids) <> messages + 1 or cardinality(a_facts) <> messages + 1)) then
    raise exception 'a text of an imported run holds U+001F' using errcode = '22021';
  end if;
  if asked_slot is not null and exists (select from wovyr.start_keys k where k.tenant = asked_tenant and k.slot = asked_slot) then
    return 'key-taken';
  end if;
  loop
    insert into wovyr.instances
      (created_at, closed_at, shard, tail, busy, tenant, run, id, workflow, version, status, nonce, parent, correlation_id, origin)
    values (asked_created, asked_closed, asked_shard, asked_tail, asked_busy, asked_tenant, asked_run, asked_id, asked_workflow, asked_version,
      asked_status, '', asked_parent, asked_correlation, asked_origin)
    on conflict do nothing;
    exit when found;
    if exists (select from wovyr.instances i where i.tenant = asked_tenant and i.run = asked_run) then
      return 'run-exists';
    end if;
    if exists (select from wovyr.instances i where i.tenant = asked_tenant and i.id = asked_id and i.closed_at is null) then
      return 'id-taken';
    end if;
    -- Whoever was in the way has closed just now.
  end loop;
  if asked_slot is not null then
    insert into wovyr.start_keys (at, tenant, slot, run, digest) values (asked_created, asked_tenant, asked_slot, asked_run, asked_digest)
    on conflict do nothing;
    if not found then
      -- Somebody took it since it was looked for: this writes nothing.
      delete from wovyr.instances i where i.tenant = asked_tenant and i.run = asked_run;
      return 'key-taken';
    end if;
  end if;
  insert into wovyr.history (at, seq, count, tenant, run, node, events)
  select t.at, t.seq, t.count, asked_tenant, asked_run, t.node, t.events
  from unnest(ats, seqs, counts, a_nodes, a_events) with ordinality t(at, seq, count, node, events, place) where t.place <= turns;
  if asked_attributes is not null then
    insert into wovyr.instance_attributes (tenant, run, attributes) values (asked_tenant, asked_run, asked_attributes::jsonb);
  end if;
  insert into wovyr.inbox (shard, tenant, run, message, fact)
  select asked_shard, asked_tenant, asked_run, m.id, m.fact
  from unnest(a_ids, a_facts) with ordinality m(id, fact, place) where m.place <= messages order by m.place
  on conflict do nothing;
  return 'done';
end
$$;
--> statement-breakpoint
-- The run that takes the place of one that a turn of the same statement closed: nothing of that statement is kept without it.
CREATE FUNCTION "wovyr"."succeed_1"(
  asked_tenant text, asked_run text, asked_shard integer, asked_tail integer, asked_busy boolean, asked_created bigint, asked_closed bigint, asked_id text,
  asked_workflow text, asked_version text, asked_status text, asked_parent text, asked_correlation text, asked_origin text, asked_attributes text,
  asked_slot text, asked_digest text, turns integer, seqs integer[], counts integer[], ats bigint[], nodes text, events text,
  messages integer, message_ids text, message_facts text
) RETURNS text LANGUAGE plpgsql AS $$
declare
  outcome text := wovyr.import_1(
    asked_tenant, asked_run, asked_shard, asked_tail, asked_busy, asked_created, asked_closed, asked_id, asked_workflow, asked_version, asked_status,
    asked_parent, asked_correlation, asked_origin, asked_attributes, asked_slot, asked_digest, turns, seqs, counts, ats, nodes, events, messages,
    message_ids, message_facts
  );
begin
  if outcome <> 'done' then
    raise exception 'the run that was to go on was not written: %', outcome using errcode = '23505';
  end if;
  return outcome;
end
$$;
--> statement-breakpoint
-- Removes closed runs with all that belongs to them; says how many. A start key has the time of its run's creation, and is found by it. `coalesce` keeps the
-- planner from the indexes of open and of closed runs.
CREATE FUNCTION "wovyr"."delete_1"(tenants text, runs text) RETURNS integer LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_material = off SET plan_cache_mode = force_generic_plan AS $$
declare
  gone_tenants text[];
  gone_runs text[];
  gone_ats bigint[];
  each_table text;
begin
  with removed as (
    delete from wovyr.instances i using (
      select found.tid from unnest(string_to_array(tenants, E'\x1f'), string_to_array(runs, E'\x1f')) k(tenant, run)
      cross join lateral (
        select r.ctid as tid from wovyr.instances r where r.tenant = k.tenant and r.run = k.run and coalesce(r.closed_at, -1) <> -1 offset 0
      ) found
      offset 0
    ) t where i.ctid = t.tid and coalesce(i.closed_at, -1) <> -1 returning i.tenant, i.run, i.created_at
  )
  select array_agg(r.tenant), array_agg(r.run), array_agg(r.created_at) into gone_tenants, gone_runs, gone_ats from removed r;
  if gone_runs is null then
    return 0;
  end if;
  foreach each_table in array array[
    'history', 'instance_attributes', 'inbox', 'timers', 'waits', 'dead_letters', 'heartbeats', 'step_outcomes', 'strikes'
  ] loop
    execute format('delete from wovyr.%1$I w using (
      select found.tid from unnest($1, $2) k(tenant, run)
      cross join lateral (select r.ctid as tid from wovyr.%1$I r where r.tenant = k.tenant and r.run = k.run offset 0) found
      offset 0
    ) t where w.ctid = t.tid', each_table) using gone_tenants, gone_runs;
  end loop;
  delete from wovyr.start_keys w using (
    select found.tid from unnest(gone_tenants, gone_runs, gone_ats) k(tenant, run, at)
    cross join lateral (select r.ctid as tid, r.tenant, r.run from wovyr.start_keys r where r.at = k.at offset 0) found
    where found.tenant = k.tenant and found.run = k.run
    offset 0
  ) t where w.ctid = t.tid;
  return cardinality(gone_runs);
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."drop_dead_letters_1"(tenants text, runs text, effects text) RETURNS void LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
begin
  delete from wovyr.dead_letters w using (
    select found.tid
    from unnest(string_to_array(tenants, E'\x1f'), string_to_array(runs, E'\x1f'), string_to_array(effects, E'\x1f')) k(tenant, run, effect)
    cross join lateral (
      select r.ctid as tid from wovyr.dead_letters r where r.tenant = k.tenant and r.run = k.run and r.effect = k.effect offset 0
    ) found
    offset 0
  ) t where w.ctid = t.tid;
end
$$;
--> statement-breakpoint
-- Upserts in the order of their keys, so that two who save at once do not block each other for ever.
CREATE FUNCTION "wovyr"."save_heartbeats_1"(
  beats integer, tenants text, runs text, effects text, attempts integer[], ats bigint[], details text
) RETURNS void LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  sep constant text := E'\x1f';
  a_tenants text[] := string_to_array(tenants, sep);
  a_runs text[] := string_to_array(runs, sep);
  a_effects text[] := string_to_array(effects, sep);
  a_details text[] := string_to_array(details, sep);
begin
  if cardinality(a_tenants) <> beats + 1 or cardinality(a_runs) <> beats + 1 or cardinality(a_effects) <> beats + 1
    or cardinality(a_details) <> beats + 1 then
    raise exception 'a text of a heartbeat holds U+001F' using errcode = '22021';
  end if;
  insert into wovyr.heartbeats as h (at, attempt, tenant, run, effect, details)
  select b.at, b.attempt, b.tenant, b.run, b.effect, b.details
  from unnest(ats, attempts, a_tenants, a_runs, a_effects, a_details) with ordinality b(at, attempt, tenant, run, effect, details, place)
  cross join lateral (
    select from wovyr.instances i where i.tenant = b.tenant and i.run = b.run and coalesce(i.closed_at, -1) = -1 offset 0
  ) alive
  where b.place <= beats order by b.tenant, b.run, b.effect
  on conflict (tenant, run, effect) do update set at = excluded.at, attempt = excluded.attempt, details = excluded.details
  where (h.attempt, h.at) < (excluded.attempt, excluded.at);
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."drop_heartbeats_1"(tenants text, runs text, effects text) RETURNS void LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
begin
  delete from wovyr.heartbeats w using (
    select found.tid
    from unnest(string_to_array(tenants, E'\x1f'), string_to_array(runs, E'\x1f'), string_to_array(effects, E'\x1f')) k(tenant, run, effect)
    cross join lateral (
      select r.ctid as tid from wovyr.heartbeats r where r.tenant = k.tenant and r.run = k.run and r.effect = k.effect offset 0
    ) found
    offset 0
  ) t where w.ctid = t.tid;
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."heartbeats_1"(asked_tenant text, asked_run text)
RETURNS TABLE (effect text, attempt integer, at double precision, details text) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
begin
  return query
  select h.effect, h.attempt, h.at::double precision, h.details from wovyr.heartbeats h
  where h.tenant = asked_tenant and h.run = asked_run order by h.effect;
end
$$;
--> statement-breakpoint
-- The first outcome of an effect wins; the winner is returned.
CREATE FUNCTION "wovyr"."save_step_outcome_1"(
  asked_tenant text, asked_run text, asked_effect text, asked_at bigint, asked_outcome text, OUT won boolean, OUT winner text
) LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
begin
  loop
    insert into wovyr.step_outcomes (tenant, run, effect, at, outcome)
    values (asked_tenant, asked_run, asked_effect, asked_at, asked_outcome) on conflict (tenant, run, effect) do nothing;
    if found then
      won := true;
      winner := asked_outcome;
      return;
    end if;
    select false, s.outcome into won, winner from wovyr.step_outcomes s
    where s.tenant = asked_tenant and s.run = asked_run and s.effect = asked_effect;
    exit when found;
  end loop;
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."step_outcomes_1"(asked_tenant text, asked_run text)
RETURNS TABLE (effect text, at double precision, outcome text) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
begin
  return query
  select s.effect, s.at::double precision, s.outcome from wovyr.step_outcomes s
  where s.tenant = asked_tenant and s.run = asked_run order by s.effect;
end
$$;
--> statement-breakpoint
-- Looks at `most` outcomes from the time `since` on (and those of the same time as the last), and removes those of runs that are closed or gone. Says from
-- which time to go on; null: there are no more.
CREATE FUNCTION "wovyr"."expire_step_outcomes_1"(since bigint, before bigint, most integer) RETURNS double precision LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  last bigint;
begin
  select s.at into last from wovyr.step_outcomes s where s.at >= since and s.at < before order by s.at offset most - 1 limit 1;
  delete from wovyr.step_outcomes w using (
    select s.ctid as tid from wovyr.step_outcomes s
    where s.at >= since and s.at < before and (last is null or s.at <= last)
      and (select coalesce(i.closed_at, -1) = -1 from wovyr.instances i where i.tenant = s.tenant and i.run = s.run) is not true
    offset 0
  ) t where w.ctid = t.tid;
  return last + 1;
end
$$;
--> statement-breakpoint
-- An instance as one text: its fields joined by U+001F, nulls as empty texts.
CREATE FUNCTION "wovyr"."instance_1"(i "wovyr"."instances", attributes jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  select i.tenant || E'\x1f' || i.run || E'\x1f' || i.id || E'\x1f' || i.shard::text || E'\x1f' || i.workflow || E'\x1f' || i.version || E'\x1f'
    || i.status || E'\x1f' || case when i.busy then '1' else '' end || E'\x1f' || i.tail::text || E'\x1f' || i.nonce || E'\x1f'
    || i.created_at::text || E'\x1f' || coalesce(i.closed_at::text, '') || E'\x1f' || coalesce(i.parent, '') || E'\x1f'
    || coalesce(i.correlation_id, '') || E'\x1f' || coalesce(i.origin, '') || E'\x1f' || coalesce(attributes::text, '')
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."get_1"(asked_tenant text, asked_run text) RETURNS text LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
begin
  return (
    select wovyr.instance_1(i, (select a.attributes from wovyr.instance_attributes a where a.tenant = i.tenant and a.run = i.run))
    from wovyr.instances i
    where i.tenant = asked_tenant and i.run = asked_run
  );
end
$$;
--> statement-breakpoint
-- The open instance of an id, else its newest closed run.
CREATE FUNCTION "wovyr"."find_1"(asked_tenant text, asked_id text) RETURNS text LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  found_run text;
begin
  select i.run into found_run from wovyr.instances i where i.tenant = asked_tenant and i.id = asked_id and i.closed_at is null;
  if not found then
    select i.run into found_run from wovyr.instances i
    where i.tenant = asked_tenant and i.id = asked_id and i.closed_at is not null order by i.run desc limit 1;
  end if;
  if not found then
    return null;
  end if;
  return wovyr.get_1(asked_tenant, found_run);
end
$$;
--> statement-breakpoint
-- Rows and histories of many runs, a row per turn; `instance` comes with the first turn of a run.
CREATE FUNCTION "wovyr"."load_1"(tenants text, runs text)
RETURNS TABLE (instance text, seq integer, count integer, at double precision, node text, events text) LANGUAGE plpgsql STABLE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_material = off
SET plan_cache_mode = force_generic_plan AS $$
begin
  return query
  select case when h.seq is null or h.seq = 1 then i.instance end, h.seq, h.count, h.at::double precision, h.node, h.events
  from unnest(string_to_array(tenants, E'\x1f'), string_to_array(runs, E'\x1f')) with ordinality k(tenant, run, place)
  cross join lateral (
    select wovyr.instance_1(i, (select a.attributes from wovyr.instance_attributes a where a.tenant = i.tenant and a.run = i.run)) as instance
    from wovyr.instances i where i.tenant = k.tenant and i.run = k.run offset 0
  ) i
  left join lateral (select h.* from wovyr.history h where h.tenant = k.tenant and h.run = k.run offset 0) h on true
  order by k.place, h.seq;
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."history_1"(asked_tenant text, asked_run text, from_seq integer, most integer)
RETURNS TABLE (seq integer, count integer, at double precision, node text, events text) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  first integer;
begin
  select h.seq into first from wovyr.history h
  where h.tenant = asked_tenant and h.run = asked_run and h.seq <= from_seq order by h.seq desc limit 1;
  return query
  select h.seq, h.count, h.at::double precision, h.node, h.events from wovyr.history h
  where h.tenant = asked_tenant and h.run = asked_run and h.seq >= coalesce(first, 0) and h.seq + h.count > from_seq
  order by h.seq limit most;
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."last_turn_1"(asked_tenant text, asked_run text)
RETURNS TABLE (seq integer, count integer, at double precision, node text, events text) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
begin
  return query
  select h.seq, h.count, h.at::double precision, h.node, h.events from wovyr.history h
  where h.tenant = asked_tenant and h.run = asked_run order by h.seq desc limit 1;
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."start_key_1"(asked_tenant text, asked_slot text) RETURNS TABLE (run text, digest text) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
begin
  return query select k.run, k.digest from wovyr.start_keys k where k.tenant = asked_tenant and k.slot = asked_slot;
end
$$;
--> statement-breakpoint
-- The three lists below merge many shards: each round takes the first few rows of every shard and keeps those up to the least end of a shard that has
-- more, so a round reads about twice what it returns.
CREATE FUNCTION "wovyr"."timers_1"(asked_shards integer[], until double precision, most integer)
RETURNS TABLE (tenant text, run text, shard integer, effect text, due double precision) LANGUAGE plpgsql STABLE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan AS $$
declare
  few integer := greatest(1, least(most, 32 + 2 * most / greatest(1, cardinality(asked_shards))));
  missing integer := most;
  got integer;
  after_due bigint := -9223372036854775808;
  after_run text := '';
  after_effect text := '';
  last_due bigint;
  last_run text;
  last_effect text;
begin
  while missing > 0 loop
    select e.due, e.run, e.effect into last_due, last_run, last_effect
    from unnest(asked_shards) s(id) cross join lateral (
      select t.due, t.run, t.effect from wovyr.timers t
      where t.shard = s.id and t.due <= until::bigint and (t.due, t.run, t.effect) > (after_due, after_run, after_effect)
      order by t.due, t.run, t.effect offset few - 1 limit 1
    ) e order by e.due, e.run, e.effect limit 1;
    return query
    select t.tenant, t.run, t.shard, t.effect, t.due::double precision
    from unnest(asked_shards) s(id) cross join lateral (
      select t.* from wovyr.timers t
      where t.shard = s.id and t.due <= until::bigint and (t.due, t.run, t.effect) > (after_due, after_run, after_effect)
      order by t.due, t.run, t.effect limit few
    ) t
    where last_due is null or (t.due, t.run, t.effect) <= (last_due, last_run, last_effect)
    order by t.due, t.run, t.effect limit missing;
    get diagnostics got = row_count;
    missing := missing - got;
    exit when last_due is null;
    after_due := last_due;
    after_run := last_run;
    after_effect := last_effect;
  end loop;
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."inbox_1"(asked_shards integer[], after_position bigint, most integer)
RETURNS TABLE (tenant text, run text, shard integer, message text, fact text, "position" double precision) LANGUAGE plpgsql STABLE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan AS $$
declare
  few integer := greatest(1, least(most, 32 + 2 * most / greatest(1, cardinality(asked_shards))));
  missing integer := most;
  got integer;
  reached bigint := after_position;
  last bigint;
begin
  while missing > 0 loop
    select min(e.position) into last
    from unnest(asked_shards) s(id) cross join lateral (
      select m.position from wovyr.inbox m where m.shard = s.id and m.position > reached order by m.position offset few - 1 limit 1
    ) e;
    return query
    select m.tenant, m.run, m.shard, m.message, m.fact, m.position::double precision
    from unnest(asked_shards) s(id) cross join lateral (
      select m.* from wovyr.inbox m where m.shard = s.id and m.position > reached order by m.position limit few
    ) m
    where last is null or m.position <= last
    order by m.position limit missing;
    get diagnostics got = row_count;
    missing := missing - got;
    exit when last is null;
    reached := last;
  end loop;
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."dead_letter_1"(asked_tenant text, asked_run text, asked_effect text)
RETURNS TABLE (tenant text, run text, effect text, at double precision, kind text, workflow text, id text, name text, attempts integer, failure text)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
begin
  return query
  select d.tenant, d.run, d.effect, d.at::double precision, d.kind, d.workflow, d.id, d.name, d.attempts, d.failure from wovyr.dead_letters d
  where d.tenant = asked_tenant and d.run = asked_run and d.effect = asked_effect;
end
$$;
--> statement-breakpoint
-- Newest first. A filter that is null admits all.
CREATE FUNCTION "wovyr"."dead_letters_1"(
  asked_tenant text, asked_workflow text, asked_kind text, asked_id text, asked_name text, before_at bigint, before_run text, before_effect text, most integer
) RETURNS TABLE (tenant text, run text, effect text, at double precision, kind text, workflow text, id text, name text, attempts integer, failure text)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET plan_cache_mode = force_generic_plan AS $$
begin
  return query
  select d.tenant, d.run, d.effect, d.at::double precision, d.kind, d.workflow, d.id, d.name, d.attempts, d.failure from wovyr.dead_letters d
  where d.tenant = asked_tenant and (d.at, d.run, d.effect) < (before_at, before_run, before_effect)
    and (asked_workflow is null or d.workflow = asked_workflow) and (asked_kind is null or d.kind = asked_kind)
    and (asked_id is null or d.id = asked_id) and (asked_name is null or d.name = asked_name)
  order by d.at desc, d.run desc, d.effect desc limit most;
end
$$;
--> statement-breakpoint
-- The messages of one run.
CREATE FUNCTION "wovyr"."inbox_of_1"(asked_tenant text, asked_run text, after bigint, most integer)
RETURNS TABLE (tenant text, run text, shard integer, message text, fact text, "position" double precision) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
begin
  return query
  select m.tenant, m.run, m.shard, m.message, m.fact, m.position::double precision
  from (select i.* from wovyr.inbox i where i.tenant = asked_tenant and i.run = asked_run offset 0) m
  where m.position > after order by m.position limit most;
end
$$;
--> statement-breakpoint
-- Runs that closed before a time, by tenant and run: of each tenant those up to `last_run`, from one tenant to the next by index.
CREATE FUNCTION "wovyr"."closed_1"(before bigint, last_run text, after_tenant text, after_run text, most integer)
RETURNS TABLE (instance text) LANGUAGE plpgsql STABLE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan AS $$
declare
  missing integer := most;
  got integer;
  here text := after_tenant;
  reached text := after_run;
begin
  while missing > 0 and here is not null loop
    return query
    select wovyr.instance_1(i, (select a.attributes from wovyr.instance_attributes a where a.tenant = i.tenant and a.run = i.run))
    from (
      select r.* from wovyr.instances r where r.tenant = here and r.run > reached and r.run < last_run and coalesce(r.closed_at, before) < before
      order by r.tenant, r.run limit missing
    ) i order by i.run;
    get diagnostics got = row_count;
    missing := missing - got;
    select min(r.tenant) into here from wovyr.instances r where r.tenant > here;
    reached := '';
  end loop;
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."runnable_1"(asked_shards integer[], parked boolean, after_run text, after_tenant text, most integer)
RETURNS TABLE (instance text) LANGUAGE plpgsql STABLE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan AS $$
declare
  few integer := greatest(1, least(most, 32 + 2 * most / greatest(1, cardinality(asked_shards))));
  missing integer := most;
  got integer;
  reached_run text := after_run;
  reached_tenant text := after_tenant;
  last_run text;
  last_tenant text;
  tenants text[];
  runs text[];
begin
  while missing > 0 loop
    if parked then
      select array_agg(e.tenant order by e.run, e.tenant), array_agg(e.run order by e.run, e.tenant) into tenants, runs
      from unnest(asked_shards) s(id) cross join lateral (
        select i.run, i.tenant from wovyr.instances i where i.shard = s.id and i.status = 'parked' and (i.run, i.tenant) > (reached_run, reached_tenant)
        order by i.run, i.tenant limit few
      ) e;
      select e.run, e.tenant into last_run, last_tenant
      from unnest(asked_shards) s(id) cross join lateral (
        select i.run, i.tenant from wovyr.instances i where i.shard = s.id and i.status = 'parked' and (i.run, i.tenant) > (reached_run, reached_tenant)
        order by i.run, i.tenant offset few - 1 limit 1
      ) e order by e.run, e.tenant limit 1;
    else
      select array_agg(e.tenant order by e.run, e.tenant), array_agg(e.run order by e.run, e.tenant) into tenants, runs
      from unnest(asked_shards) s(id) cross join lateral (
        select i.run, i.tenant from wovyr.instances i where i.shard = s.id and i.busy and (i.run, i.tenant) > (reached_run, reached_tenant)
        order by i.run, i.tenant limit few
      ) e;
      select e.run, e.tenant into last_run, last_tenant
      from unnest(asked_shards) s(id) cross join lateral (
        select i.run, i.tenant from wovyr.instances i where i.shard = s.id and i.busy and (i.run, i.tenant) > (reached_run, reached_tenant)
        order by i.run, i.tenant offset few - 1 limit 1
      ) e order by e.run, e.tenant limit 1;
    end if;
    return query
    select i.instance
    from unnest(tenants, runs) with ordinality k(tenant, run, place)
    cross join lateral (
      select wovyr.instance_1(i, (select a.attributes from wovyr.instance_attributes a where a.tenant = i.tenant and a.run = i.run)) as instance
      from wovyr.instances i where i.tenant = k.tenant and i.run = k.run offset 0
    ) i
    where last_run is null or (k.run, k.tenant) <= (last_run, last_tenant)
    order by k.place limit missing;
    get diagnostics got = row_count;
    missing := missing - got;
    exit when last_run is null;
    reached_run := last_run;
    reached_tenant := last_tenant;
  end loop;
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."strike_1"(asked_tenant text, asked_run text, asked_tail integer, asked_workflow text) RETURNS void LANGUAGE sql AS $$
  insert into wovyr.strikes as s (tenant, run, tail, workflow, count) values (asked_tenant, asked_run, asked_tail, asked_workflow, 1)
  on conflict (tenant, run, tail) do update set count = s.count + 1
$$;
